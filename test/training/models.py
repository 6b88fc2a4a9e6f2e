"""The models of the training references, each with its data, its exports and its recipes.

A case is (make, inputs, targets, recipes): `make` builds the module, `inputs` are the shapes of its inputs without
the batch, `targets` draws the targets of n samples, `recipes` are TOML texts by name, without the tables that all
have in common (COMMON). A language model has `vocabulary`: its input is token numbers, its targets are the next ones; with the input
`attention_mask`, some samples end early. A model of text with other targets has `tokens`: its inputs are token numbers from 1 on, as 0 pads.
"""
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import bert_models
import gpt_models
from export_model import LISTING

COMMON = """\
[data]
train = "data.npz"
shuffle = false

[train]
steps = 20
"""

ADAMW = '[optimizer]\nkind = "adamw"\nlr = 3e-3\nbetas = [0.9, 0.95]\nweight_decay = 0.1\n'
ADAM = '[optimizer]\nkind = "adam"\nlr = 2e-3\neps = 1e-7\n'
SGD = '[optimizer]\nkind = "sgd"\nlr = 0.05\nmomentum = 0.9\n'
BATCH = "[batch]\nmicro = 8\nglobal = 8\n"
ACCUMULATE = "[batch]\nmicro = 4\nglobal = 16\n"


def loss(kind, extra=""):
    return f'[loss]\nkind = "{kind}"\n{extra}'


@dataclass
class Case:
    make: object
    inputs: dict
    targets: object
    recipes: dict
    samples: int = 40
    vocabulary: int = 0
    tokens: int = 0
    padded: bool = False  # every second sample of tokens ends early, in zeros
    left_padded: bool = False  # most samples of text begin late, by their attention mask
    folded: dict = field(default_factory=dict)  # by export: parameters of which the exporter leaves only what it computed from them
    instead: dict = field(default_factory=dict)  # by export and parameter: what the export has of it (compare_state)
    updates: bool = False  # compare each parameter's own update: only where rounding does not decide any
    names: dict = field(default_factory=dict)  # by export: what its names file says
    training: bool = False  # PyTorch trains it in train mode, as norms of the batch ask for; else in eval mode, without dropout
    metadata: set = None  # of the exports, by key; None: all, of a language model NAMING
    exports: list = field(default_factory=lambda: ["dynamo-train", "dynamo-optimized", "legacy-train", "legacy-eval"])


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.ModuleDict({"up": nn.Linear(10, 20), "down": nn.Linear(20, 10)})
        self.norm = nn.LayerNorm(10, eps=1e-6)
        self.head = nn.Linear(16, 4, bias=False)

    def forward(self, left, right):
        x = left + self.inner["down"](F.gelu(self.inner["up"](self.norm(left)), approximate="tanh"))
        return self.head(torch.cat([x, right], dim=-1))


class TwiceUsed(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 12)
        self.shared = nn.Linear(12, 12)
        self.last = nn.Linear(12, 3)

    def forward(self, x):
        x = torch.tanh(self.first(x))
        return self.last(torch.tanh(self.shared(torch.tanh(self.shared(x)))))


class CalledTwice(nn.Module):
    """A block that is called twice, beside a norm and biases that start with its values: an exporter merges all of them, and only the
    block's may stay one."""

    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(8), nn.Linear(8, 8), nn.Linear(8, 8)
        self.last, self.head = nn.LayerNorm(8), nn.Linear(8, 3)
        gpt_models.fresh(self)

    def block(self, x):
        return x + self.down(torch.tanh(self.up(self.norm(x))))

    def forward(self, x):
        return self.head(self.last(self.block(self.block(x))))


class Decoder(nn.Module):
    """Attention to the target and to the memory. Norms, biases and layers start unequal: nn.TransformerDecoder copies its layer, values
    included, and an exporter takes copies for one."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerDecoderLayer(12, 2, 20, dropout=0.0, batch_first=True)
        self.decoder = nn.TransformerDecoder(layer, 2)
        self.head = nn.Linear(12, 4)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.05)

    def forward(self, target, memory):
        return self.head(self.decoder(target, memory).mean(1))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(12, 12)
        self.decoder = nn.Linear(12, 12)
        self.decoder.weight = self.encoder.weight

    def forward(self, x):
        return self.decoder(F.silu(self.encoder(x)))


class TiedSequence(nn.Module):
    """A tied pair beside norms that merely start equal: exporters merge both, and only the pair may stay one.
    Legacy exports in eval mode write Identity for either; optimized dynamo exports merge without a trace in the
    graph, but fx_node metadata still names each use."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 6)
        self.second = nn.Linear(6, 6)
        self.norms = nn.ModuleList(nn.LayerNorm(6) for _ in range(2))
        self.second.weight = self.first.weight

    def forward(self, x):
        return self.norms[1](self.second(torch.tanh(self.norms[0](self.first(x)))))


class Functional(nn.Module):
    """Shape operations between layers, as people write them: flatten, reshape, split, transpose, slices."""

    def __init__(self):
        super().__init__()
        self.project = nn.Linear(36, 24)
        self.mix = nn.Linear(12, 12)
        self.out = nn.Linear(12, 5)

    def forward(self, image):
        x = F.relu(self.project(image.flatten(1)))
        gate, value = x.chunk(2, dim=1)
        x = torch.sigmoid(gate) * self.mix(value)
        x = x.reshape(-1, 3, 4).transpose(1, 2).reshape(-1, 12)
        return self.out(torch.cat([x[:, 6:], x[:, :6]], dim=1))


class Words(nn.Module):
    """A text as the mean of its words: look-ups without attention."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(61, 20, padding_idx=0)
        self.head = nn.Linear(20, 5)

    def forward(self, ids):
        return self.head(torch.tanh(self.words(ids)).mean(1))


class Sequence(nn.Module):
    """Linear layers over [batch, position, feature]: exporters write MatMul and Add, and fold the transpose."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))
                                    for _ in range(2))
        self.head = nn.Linear(8, 7, bias=False)

    def forward(self, x):
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)


class OwnParameters(nn.Module):
    """Parameters that no nn.Linear holds, in layouts of the author's choice, and softmax in the middle."""

    def __init__(self):
        super().__init__()
        self.mixing = nn.Parameter(torch.randn(10, 14) * 0.3)
        self.scale = nn.Parameter(torch.ones(14) * 1.1)
        self.gain = nn.Parameter(torch.tensor(0.7))
        self.output = nn.ParameterList([nn.Parameter(torch.randn(14, 2) * 0.3)])

    def forward(self, x):
        h = (x @ self.mixing) * self.scale
        weights = torch.softmax(h, dim=-1)
        centred = h - h.mean(dim=1, keepdim=True)
        return (weights * centred * self.gain) @ self.output[0]


class Routed(nn.Module):
    """A mixture of experts: the two best scores of a position go by their indices into its row of gates, and a power of the sum on."""

    def __init__(self):
        super().__init__()
        self.router = nn.Linear(8, 5, bias=False)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(8, 12), nn.SiLU(), nn.Linear(12, 8)) for _ in range(5))
        self.exponents = nn.Parameter(torch.linspace(0.6, 1.4, 8))
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        scores = torch.softmax(self.router(x), dim=-1)
        best, chosen = torch.topk(scores, 2, dim=-1)
        gates = torch.zeros_like(scores).scatter(-1, chosen, best / best.sum(-1, keepdim=True))
        mixed = sum(gates[..., i:i + 1] * expert(x) for i, expert in enumerate(self.experts))
        return self.head(x + (mixed * mixed + 0.1) ** self.exponents)


class Convolutions(nn.Module):
    """Strides, dilation, groups, depthwise; pools with overlapping and with cut windows; a residual sum and a flatten behind channels."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.pool = nn.MaxPool2d(3, 2, 1)
        self.inner = nn.Conv2d(8, 8, 3, padding=1, bias=False)
        self.depthwise = nn.Conv2d(8, 8, 5, padding=2, groups=8)
        self.pointwise = nn.Conv2d(8, 16, 1)
        self.grouped = nn.Conv2d(16, 16, 3, padding=2, dilation=2, groups=4)
        self.average = nn.AvgPool2d(2, ceil_mode=True)
        self.head = nn.Linear(16 * 4, 5)

    def forward(self, x):
        x = self.pool(F.relu(self.stem(x)))
        x = x + F.relu(self.inner(x))
        x = F.silu(self.grouped(F.gelu(self.pointwise(self.depthwise(x)))))
        return self.head(self.average(x).flatten(1))


class Segmentation(nn.Module):
    """Down, up by transposed convolutions, and a joint; classes are channels."""

    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(1, 4, 3, padding=1)
        self.inner = nn.Conv2d(4, 8, 3, padding=1)
        self.up = nn.ConvTranspose2d(8, 4, 3, 2, 1, output_padding=1, groups=2)
        self.out = nn.Conv2d(8, 3, (1, 3), padding=(0, 1), padding_mode="replicate")

    def forward(self, x):
        left = F.relu(self.down(x))
        right = self.up(F.relu(self.inner(F.max_pool2d(left, 2))))
        return self.out(torch.cat([right, left], 1))


class Recurrent(nn.Module):
    """Two layers in both directions, and an encoder whose last state is the first one of a decoder."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(11, 6)
        self.both = nn.LSTM(6, 5, num_layers=2, bidirectional=True, batch_first=True)
        self.encoder = nn.GRU(10, 7)
        self.decoder = nn.LSTM(10, 7)
        self.out = nn.Linear(7, 11)

    def forward(self, ids):
        x = self.both(self.words(ids))[0].transpose(0, 1)
        _, h = self.encoder(x)
        y, (_, c) = self.decoder(x, (h, torch.tanh(h)))
        return self.out((y + c).transpose(0, 1))


class PlainRecurrent(nn.Module):
    """Layers without gates. torch.export writes their steps one by one, the other exporter an op."""

    def __init__(self):
        super().__init__()
        self.relu = nn.RNN(5, 6, num_layers=2, nonlinearity="relu", bias=False)
        self.tanh = nn.RNN(6, 4)

    def forward(self, x):
        return self.tanh(self.relu(x.transpose(0, 1))[0])[1][0]


class Resampled(nn.Module):
    """Larger by repetition and by cubic interpolation, smaller by linear interpolation."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Conv2d(1, 3, 3, stride=2, padding=1)
        self.head = nn.Conv2d(6, 3, 1)

    def forward(self, x):
        x = torch.tanh(self.inner(x))
        near = F.interpolate(x, scale_factor=2, mode="nearest")
        smooth = F.interpolate(x, scale_factor=2, mode="bicubic", align_corners=False)
        both = self.head(torch.cat([near, smooth], 1))
        return F.interpolate(both, size=(5, 3), mode="bilinear", align_corners=True).permute(0, 2, 3, 1)


class Windows(nn.Module):
    """A convolution on a circle, and windows that are taken, mixed and added where they overlap."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Conv2d(2, 4, 3, padding=(1, 2), dilation=(1, 2), padding_mode="circular")
        self.mix = nn.Linear(4 * 9, 3 * 6)
        self.head = nn.Linear(3 * 6 * 5, 4)

    def forward(self, x):
        windows = F.unfold(torch.tanh(self.inner(x)), 3, padding=1, stride=2)
        mixed = torch.tanh(self.mix(windows.transpose(1, 2))).transpose(1, 2)
        return self.head(F.fold(mixed, (6, 5), (3, 2), dilation=(1, 2), padding=1, stride=2).flatten(1))


class FixedStatistics(nn.Module):
    """Batch normalisation as eval() has it, with statistics that are no fresh ones."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 6, 3)
        self.norm = nn.BatchNorm1d(6, eps=1e-3)
        self.head = nn.Linear(6, 4)
        with torch.no_grad():
            self.norm.running_mean.normal_()
            self.norm.running_var.uniform_(0.5, 2)
            self.norm.weight.normal_(1, 0.1)

    def forward(self, x):
        return self.head(F.adaptive_avg_pool1d(F.relu(self.norm(self.conv(x))), 1).flatten(1))


class BatchNorms(nn.Module):
    """A residual block between norms of the batch, one of which is called twice."""

    def __init__(self):
        super().__init__()
        self.stem, self.norm = nn.Conv2d(2, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6, momentum=0.3)
        self.conv, self.inner = nn.Conv2d(6, 6, 3, padding=1, bias=False), nn.BatchNorm2d(6, eps=1e-3)
        self.head = nn.Linear(6, 4)

    def forward(self, x):
        x = F.relu(self.norm(self.stem(x)))
        return self.head(F.relu(x + self.norm(self.inner(self.conv(x)))).mean((2, 3)))


class ChannelNorms(nn.Module):
    """Norms of groups, of instances and of whole images, whose ones and zeros exporters take for each other."""

    def __init__(self):
        super().__init__()
        self.stem, self.groups = nn.Conv2d(2, 6, 3, padding=1), nn.GroupNorm(3, 6)
        self.conv, self.instances = nn.Conv2d(6, 6, 3, padding=1), nn.InstanceNorm2d(6, affine=True, eps=1e-3)
        self.plain, self.single = nn.InstanceNorm2d(6), nn.GroupNorm(6, 6)
        self.image, self.all = nn.LayerNorm([6, 5, 4]), nn.GroupNorm(1, 6)
        self.last = nn.GroupNorm(2, 6, affine=False)
        self.head = nn.Linear(6, 4)

    def forward(self, x):
        x = F.silu(self.groups(self.stem(x)))
        x = x + self.plain(F.relu(self.instances(self.conv(x))))
        x = self.all(self.image(self.single(x)))
        return self.head(F.relu(self.last(x)).mean((2, 3)))


class SequenceNorms(nn.Module):
    """Norms of groups of features, which positions come between: no convolution is near."""

    def __init__(self):
        super().__init__()
        self.inner, self.groups = nn.Linear(5, 8), nn.GroupNorm(2, 8)
        self.second, self.instances = nn.Linear(8, 6, bias=False), nn.InstanceNorm1d(6, affine=True)
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        x = F.gelu(self.groups(self.inner(x).transpose(1, 2))).transpose(1, 2)
        return self.head(torch.tanh(self.instances(self.second(x).transpose(1, 2))).mean(2))


class LossInside(nn.Module):
    """The model's output is its loss."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(5, 9)
        self.head = nn.Linear(9, 2)

    def forward(self, x, wanted):
        return ((self.head(F.elu(self.layer(x))) - wanted) ** 2).mean()


class WeightedLoss(nn.Module):
    """The model's output is its loss, for which classes count differently and one does not."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(5, 8)
        self.head = nn.Linear(48, 5)
        self.loss = nn.CrossEntropyLoss(weight=torch.tensor([0.2, 1.0, 3.0, 0.7, 1.5]), ignore_index=3)

    def forward(self, ids, wanted):
        return self.loss(self.head(self.words(ids).flatten(1)), wanted)


def labels(classes, shape=(), ignored=None):
    def draw(random, n):
        values = random.integers(0, classes, (n, *shape))
        if ignored is not None:
            values[random.random(values.shape) < 0.2] = ignored
        return values.astype(np.int64)
    return draw


def real(*shape):
    return lambda random, n: random.standard_normal((n, *shape)).astype(np.float32)


def binary(*shape):
    return lambda random, n: (random.random((n, *shape)) < 0.4).astype(np.float32)


CASES = {
    "relu": Case(
        lambda: nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 5)),
        {"x": (12,)}, labels(5),
        {
            "adamw": ADAMW + BATCH,
            "sgd": SGD + BATCH,
            "sgd-nesterov-decay": SGD + "nesterov = true\nweight_decay = 0.05\n" + BATCH,
            "adam": ADAM + BATCH,
            "adam-decay": ADAM + "weight_decay = 0.1\n" + BATCH,
            "cosine-clip": ADAMW + "clip_norm = 0.5\n" + BATCH
                + '[schedule]\nkind = "cosine"\nwarmup_steps = 5\nmin_lr_ratio = 0.1\n',
            "linear": SGD + BATCH + '[schedule]\nkind = "linear"\nwarmup_steps = 3\nsteps = 15\n',
            "wsd": ADAMW + BATCH + '[schedule]\nkind = "wsd"\nwarmup_steps = 4\nmin_lr_ratio = 0.05\n',
            "accumulate": ADAMW + "clip_norm = 1.0\n" + ACCUMULATE,
            "groups": ADAMW + 'no_decay = ["*.bias", "4.*"]\n[[optimizer.group]]\nmatch = "0.*"\nlr_scale = 0.5\n'
                + '[[optimizer.group]]\nmatch = "2.*"\nweight_decay = 0.3\n' + BATCH,
        }, exports=["dynamo-train", "dynamo-eval", "dynamo-optimized", "legacy-train", "legacy-eval", "legacy-13"]),
    "norm-gelu": Case(
        lambda: nn.Sequential(nn.Linear(9, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 6)),
        {"features": (9,)}, labels(6, ignored=-1),
        {
            "smoothing-ignore": loss("cross_entropy", "ignore_index = -1\nlabel_smoothing = 0.1\n") + ADAMW + BATCH,
            "ignore-accumulate": loss("cross_entropy", "ignore_index = -1\n") + SGD + ACCUMULATE,
        }, exports=["dynamo-train", "dynamo-optimized", "legacy-train", "legacy-eval", "legacy-13"]),
    "activations": Case(
        lambda: nn.Sequential(nn.Linear(7, 11), nn.Tanh(), nn.Linear(11, 11), nn.Sigmoid(), nn.Linear(11, 11),
                              nn.SiLU(), nn.Linear(11, 11), nn.LeakyReLU(0.1), nn.Linear(11, 4), nn.Softplus()),
        {"x": (7,)}, real(4), {"mse-adam": loss("mse") + ADAM + BATCH}),
    "residual": Case(Residual, {"left": (10,), "right": (6,)}, real(4),
                     {"l1-sgd": loss("l1") + SGD + BATCH, "mse-clip": loss("mse") + ADAMW + "clip_norm = 0.3\n" + ACCUMULATE}),
    "twice-used": Case(TwiceUsed, {"x": (6,)}, real(3), {"mse-adamw": loss("mse") + ADAMW + BATCH}),
    # Folded constants: a cross-attention's in_proj_weight and in_proj_bias are in two tensors each. The gradient of a bias of keys is rounding
    # errors alone, which Adam makes updates of unless eps is above them.
    "decoder": Case(Decoder, {"target": (5, 12), "memory": (7, 12)}, labels(4),
                    {"adam": ADAM.replace("1e-7", "1e-4") + BATCH, "sgd": SGD + ACCUMULATE}, exports=["legacy-eval"]),
    "tied": Case(Tied, {"x": (12,)}, binary(12), {"bce-adamw": loss("bce_with_logits") + ADAMW + BATCH}),
    "tied-sequence": Case(TiedSequence, {"x": (5, 6)}, real(5, 6), {"mse-adamw": loss("mse") + ADAMW + BATCH},
                          exports=["dynamo-train", "dynamo-optimized", "legacy-train", "legacy-eval", "legacy-13"]),
    "frozen": Case(
        lambda: nn.Sequential(nn.Linear(8, 10), nn.ReLU(), nn.Linear(10, 10), nn.ReLU(), nn.Linear(10, 3)),
        {"x": (8,)}, labels(3),
        {"first-frozen": '[model]\nfrozen = ["0.*"]\n' + ADAMW + "clip_norm = 0.5\n" + BATCH,
         "middle-bias-frozen": '[model]\nfrozen = ["2.bias"]\n' + SGD + BATCH}),
    "functional": Case(Functional, {"image": (1, 6, 6)}, labels(5), {"adam": ADAM + BATCH}),
    "log-softmax": Case(
        lambda: nn.Sequential(nn.Flatten(), nn.Linear(16, 12), nn.Tanh(), nn.Linear(12, 4), nn.LogSoftmax(dim=1)),
        {"x": (4, 4)}, labels(4), {"sgd": SGD + BATCH}),
    # A microbatch of 8 looks up more rows than one tile of a card's kernel has.
    "words": Case(Words, {"ids": (64,)}, labels(5), {"adamw": ADAMW + BATCH, "sgd": SGD + "clip_norm = 1.0\n" + ACCUMULATE},
                  tokens=61, padded=True, exports=["dynamo-train", "legacy-train"],
                  names={"legacy-train": '["words.weight"]\npadding_idx = 0\n'}),
    "sequence": Case(Sequence, {"x": (6, 8)}, labels(7, (6,), ignored=-100), {"adamw": ADAMW + ACCUMULATE},
                     exports=["dynamo-train", "dynamo-optimized", "legacy-train", "legacy-eval", "legacy-13"]),
    "own-parameters": Case(OwnParameters, {"x": (10,)}, real(2), {"mse-sgd": loss("mse") + SGD + BATCH}),
    "routed": Case(Routed, {"x": (6, 8)}, labels(4, (6,)), {"adamw": ADAMW + BATCH, "sgd": SGD + ACCUMULATE}),
    "loss-inside": Case(LossInside, {"x": (5,), "wanted": (2,)}, None,
                        {"output": loss("output") + ADAM + BATCH, "output-accumulate": loss("output") + ADAM + ACCUMULATE},
                        exports=["dynamo-train", "legacy-train"]),
    "loss-weighted": Case(WeightedLoss, {"ids": (6,), "wanted": ()}, None,
                          {"output": loss("output") + ADAM + BATCH, "output-accumulate": loss("output") + SGD + ACCUMULATE},
                          tokens=5, exports=["dynamo-train", "legacy-train"]),
    "convolutions": Case(Convolutions, {"image": (3, 13, 14)}, labels(5), {"adamw": ADAMW + BATCH, "sgd": SGD + ACCUMULATE},
                         exports=["dynamo-train", "legacy-eval"]),
    "segmentation": Case(Segmentation, {"image": (1, 8, 8)}, labels(3, (8, 8)),
                         {"adamw": loss("cross_entropy", "class_dim = 1\n") + ADAMW + BATCH,
                          "sgd": loss("cross_entropy", "class_dim = -3\nclass_weights = [0.2, 1.0, 2.5]\n") + SGD + ACCUMULATE,
                          "smoothed": loss("cross_entropy", "class_dim = 1\nclass_weights = [0.2, 1.0, 2.5]\nlabel_smoothing = 0.2\nignore_index = 1\n")
                          + SGD + ACCUMULATE},
                         exports=["dynamo-optimized", "legacy-train"]),
    "resampled": Case(Resampled, {"image": (1, 6, 4)}, labels(3, (5, 3)), {"adamw": ADAMW + BATCH, "sgd": SGD + ACCUMULATE},
                      exports=["dynamo-train", "legacy-eval"]),
    # Only torch.export writes an op for the sum of windows.
    "windows": Case(Windows, {"image": (2, 6, 5)}, labels(4), {"adamw": ADAMW + BATCH, "sgd": SGD + ACCUMULATE},
                    exports=["dynamo-train", "dynamo-eval", "dynamo-optimized"]),
    "recurrent": Case(Recurrent, {"ids": (6,)}, labels(11, (6,)), {"adamw": ADAMW + BATCH, "sgd": SGD + ACCUMULATE},
                      tokens=11, exports=["dynamo-train", "dynamo-optimized", "legacy-train"]),
    "recurrent-plain": Case(PlainRecurrent, {"x": (5, 5)}, labels(4), {"adamw": ADAMW + BATCH, "sgd": SGD + ACCUMULATE},
                            exports=["legacy-train", "dynamo-train"]),
    "fixed-statistics": Case(FixedStatistics, {"x": (2, 9)}, labels(4), {"adamw": ADAMW + BATCH, "sgd": SGD + ACCUMULATE},
                             exports=["dynamo-eval"]),
    # With SGD: what a bias in front of a norm gets is rounding alone, of which Adam makes updates. The legacy exporter moves the statistics.
    "batch-norms": Case(BatchNorms, {"image": (2, 6, 5)}, labels(4),
                        {"sgd": SGD + BATCH, "accumulate": SGD + "clip_norm = 1.0\n" + ACCUMULATE},
                        training=True, exports=["dynamo-train"]),
    # With SGD, as batch-norms: a bias in front of a norm of instances gets rounding alone.
    "channel-norms": Case(ChannelNorms, {"image": (2, 5, 4)}, labels(4),
                          {"sgd": SGD + BATCH, "accumulate": SGD + "clip_norm = 1.0\n" + ACCUMULATE},
                          exports=["dynamo-train", "dynamo-optimized", "legacy-train", "legacy-eval"]),
    "sequence-norms": Case(SequenceNorms, {"x": (7, 5)}, labels(3), {"adamw": ADAMW + BATCH, "sgd": SGD + ACCUMULATE},
                           exports=["dynamo-train", "dynamo-eval", "legacy-eval"]),
    "dropout-eval": Case(
        lambda: nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 3)),
        {"x": (8,)}, labels(3), {"adamw": ADAMW + BATCH}, exports=["dynamo-eval", "dynamo-optimized", "legacy-eval"]),
}

LANGUAGE_MODELS = {
    "gpt-nano": gpt_models.nano,
    "gpt-course": gpt_models.course,
    "gpt-llama": gpt_models.llama,
    "gpt-llama-tied": gpt_models.tied_llama,
    "gpt-masked": gpt_models.masked,
}
GPT_RECIPES = {
    "sgd": SGD + "clip_norm = 1.0\n" + BATCH,
    "adamw": ADAMW + BATCH,
    "accumulate": ADAMW + 'no_decay = ["*.bias", "*ln_*"]\nclip_norm = 0.5\n' + ACCUMULATE
        + '[schedule]\nkind = "cosine"\nwarmup_steps = 5\nmin_lr_ratio = 0.1\n',
}
# The rows of the positions 0, 1, 2, ...: a constant, to an exporter that folds constants.
POSITIONS = {export: ["wpe.weight"] for export in ("dynamo-optimized", "legacy-eval")}
TOKENS = {"ids": (gpt_models.LENGTH,)}
CASES |= {name: Case(make, TOKENS | ({"attention_mask": (gpt_models.LENGTH,)} if name == "gpt-masked" else {}), None, GPT_RECIPES, vocabulary=gpt_models.VOCABULARY,
                     folded={} if name.startswith("gpt-llama") else POSITIONS,
                     exports=["dynamo-train"] if name == "gpt-llama-tied" else ["dynamo-train", "dynamo-optimized", "legacy-train", "legacy-eval"])
          for name, make in LANGUAGE_MODELS.items()}

# Padding adds to the rounding of gradients that are zero, those of the keys' biases, which Adam turns into updates.
CASES["gpt-masked"].recipes = GPT_RECIPES | {"adamw": ADAMW + "eps = 1e-5\n" + BATCH}

# As Hugging Face makes it: biases are zero and norms one, which exporters remove and merge. Adam would turn the rounding of gradients
# that are zero, those of the keys' biases, into updates.
CASES["gpt-fresh"] = Case(
    gpt_models.HuggingFace, TOKENS, None, {"sgd": SGD + BATCH, "accumulate": SGD + "clip_norm = 1.0\n" + ACCUMULATE},
    vocabulary=gpt_models.VOCABULARY, updates=True, metadata=LISTING, exports=["dynamo-optimized"],
    instead={"dynamo-optimized": {"model.transformer.wpe.weight": {
        "name": "model.transformer.add_0.weight", "rows": gpt_models.LENGTH, "shape": [1, gpt_models.LENGTH, 16]}}})


# The loss counts the queries that have no key left.
CASES["gpt-left-padded"] = Case(
    gpt_models.LeftPadded, TOKENS | {"attention_mask": (gpt_models.LENGTH,)}, None, {"sgd": SGD + BATCH, "accumulate": SGD + "clip_norm = 1.0\n" + ACCUMULATE},
    vocabulary=gpt_models.VOCABULARY, updates=True, left_padded=True, exports=["dynamo-train", "legacy-train"])

TEXT = {"input_ids": (gpt_models.LENGTH,)}
CASES |= {
    "bert": Case(bert_models.classifier, TEXT, labels(bert_models.CLASSES), {"adamw": ADAMW + BATCH},
                 tokens=gpt_models.VOCABULARY, exports=["legacy-train"]),
    # The row of padding is known from node metadata; without them from the names file.
    "bert-padding": Case(bert_models.with_padding, TEXT, labels(bert_models.CLASSES), {"adamw": ADAMW + BATCH, "sgd": SGD + ACCUMULATE},
                         tokens=gpt_models.VOCABULARY, padded=True, exports=["dynamo-train", "legacy-train"],
                         names={"legacy-train": '["bert.embeddings.word_embeddings.weight"]\npadding_idx = 0\n'}),
    "sines": Case(bert_models.with_fixed_positions, TEXT, labels(bert_models.CLASSES), {"sgd": SGD + BATCH},
                  tokens=gpt_models.VOCABULARY, exports=["legacy-train", "legacy-eval", "dynamo-train"]),
}


def made_up(names, products):
    """What stands in an export without metadata: other names, of a norm for both of its parameters; the matrices of products by their number,
    transposed."""
    instead = {}
    for name, other in names.items():
        pair = "." in other
        instead |= {name: {"name": other}} if pair else {f"{name}.{leaf}": {"name": f"{other}.{leaf}"} for leaf in ("weight", "bias")}
    return instead | {f"{name}.weight": {"name": f"matmul_{i}.weight", "transposed": True} for name, i in products.items()}


# Converted to an older opset, which drops all metadata: norms and biases are merged, and nothing says whose they were.
CASES["gpt-merged"] = Case(
    lambda: gpt_models.fresh(gpt_models.nano()), TOKENS, None, {"sgd": SGD + BATCH, "accumulate": SGD + "clip_norm = 1.0\n" + ACCUMULATE},
    vocabulary=gpt_models.VOCABULARY, updates=True, exports=["dynamo-17"], instead={"dynamo-17": made_up(
        {"wpe.weight": "add_0.weight", "h.0.ln_2": "layernormalization_1", "h.1.ln_1": "layernormalization_2",
         "h.1.ln_2": "layernormalization_3", "ln_f": "layernormalization_4", "h.0.attn.c_proj.bias": "add_3.bias",
         "h.0.mlp.c_proj.bias": "add_8.bias", "h.1.attn.c_attn.bias": "add_10.bias", "h.1.attn.c_proj.bias": "add_12.bias",
         "h.1.mlp.c_fc.bias": "add_14.bias", "h.1.mlp.c_proj.bias": "add_17.bias"},
        {"h.0.attn.c_proj": 3, "h.0.mlp.c_proj": 5,
         "h.1.attn.c_attn": 6, "h.1.attn.c_proj": 9, "h.1.mlp.c_fc": 10, "h.1.mlp.c_proj": 11})})
CASES["called-twice"] = Case(
    CalledTwice, {"x": (5, 8)}, real(5, 3), {"mse-sgd": loss("mse") + SGD + BATCH}, updates=True, exports=["dynamo-17"],
    instead={"dynamo-17": made_up({"up.bias": "add_0.bias", "down.bias": "add_1.bias", "last": "layernormalization_2"},
                                  {"up": 0, "down": 1})})


class Moment(nn.Module):
    """Second moment of what draws random numbers: for x = 1 and scale = 1, the mean over elements of draw(1)^2."""

    def __init__(self, draw):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(1.0))
        self.draw = draw

    def forward(self, x):
        return (self.draw(x * self.scale) ** 2).mean()


class Drawn(nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


DROP_RATE = 0.3


def depth_by_bernoulli(x, rows):
    """Stochastic depth as in torchvision.ops.stochastic_depth and timm.layers.drop_path: of a sample, or of the batch."""
    mask = x.new_empty((x.shape[0] if rows else 1,) + (1,) * (x.ndim - 1)).bernoulli_(1 - DROP_RATE)
    return x * mask.div_(1 - DROP_RATE)


def depth_by_floor(x):
    """Stochastic depth as in the models of Hugging Face's transformers (drop_path)."""
    mask = (1 - DROP_RATE + torch.rand((x.shape[0],) + (1,) * (x.ndim - 1), dtype=x.dtype)).floor_()
    return x.div(1 - DROP_RATE) * mask


# What check_random.py knows the statistics of. PyTorch's legacy exporter refuses dropout of channels in training.
RANDOM = {
    "dropout": (lambda: nn.Dropout(DROP_RATE), ["dynamo-train", "legacy-train"]),
    "depth-rows": (lambda: Drawn(lambda x: depth_by_bernoulli(x, rows=True)), ["dynamo-train", "legacy-train"]),
    "depth-batch": (lambda: Drawn(lambda x: depth_by_bernoulli(x, rows=False)), ["dynamo-train", "legacy-train"]),
    "depth-floor": (lambda: Drawn(depth_by_floor), ["dynamo-train", "legacy-train"]),
    "channels": (lambda: Drawn(lambda x: nn.functional.dropout1d(x.unflatten(1, (8, 8)), DROP_RATE, True).flatten(1)),
                 ["dynamo-train"]),
    "normal": (lambda: Drawn(lambda x: x * (1 + torch.randn_like(x))), ["dynamo-train", "legacy-train"]),
    "uniform": (lambda: Drawn(lambda x: x * (1 + torch.rand_like(x))), ["dynamo-train", "legacy-train"]),
    "normal-rows": (lambda: Drawn(lambda x: x * torch.randn(x.shape[0], 1)), ["dynamo-train", "legacy-train"]),
    "bernoulli": (lambda: Drawn(lambda x: x * torch.bernoulli(torch.full_like(x, 1 - DROP_RATE))), ["dynamo-train"]),
}
