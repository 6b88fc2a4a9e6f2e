"""The sources of the models that Titan knows by name: PyTorch modules of the same sizes, names and layouts."""
from dataclasses import dataclass, field

import numpy as np
import torch
import transformers
from torch import nn

LENGTH, VOCABULARY, SAMPLES = 16, 64, 32

TEXT_RECIPE = """[loss]
kind = "cross_entropy"

[optimizer]
kind = "adamw"
lr = 3e-3
weight_decay = 0.1
no_decay = ["*.bias"]
clip_norm = 1.0

[batch]
micro = 2
global = 4

[data]
shuffle = false

[train]
steps = 20
"""

IMAGE_RECIPE = """[loss]
kind = "cross_entropy"

[optimizer]
kind = "sgd"
lr = 0.0005
momentum = 0.9

[batch]
micro = 16
global = 32

[data]
shuffle = false

[train]
steps = 20
"""


@dataclass
class Known:
    name: str
    request: str  # what titan-compile is asked for
    make: object
    recipe: str
    data: object  # numpy's generator to {name: array}
    shard: str = ""  # the size of a file of weights; empty: one file
    aliases: list = field(default_factory=list)
    dims: dict = field(default_factory=dict)  # of the export, behind the batch: {dimension: (name, least, most)}

    def source(self):
        return f"torch {torch.__version__}, transformers {transformers.__version__}"


def text(random):
    """Windows of one text in which each token follows from the one before more often than by chance."""
    tokens = [0]
    while len(tokens) <= SAMPLES * LENGTH:
        tokens.append((3 * tokens[-1] + 1) % VOCABULARY if random.random() < 0.6 else int(random.integers(VOCABULARY)))
    tokens = np.array(tokens, np.int64)
    return {"input_ids": tokens[:-1].reshape(-1, LENGTH), "targets": tokens[1:].reshape(-1, LENGTH)}


def images(random):
    """Noise around a pattern of each of five classes, in steps that compress well."""
    patterns = random.integers(-2, 3, (5, 3, 40, 40))
    targets = random.integers(5, size=SAMPLES)
    noise = random.integers(-1, 2, (SAMPLES, 3, 40, 40))
    return {"images": (patterns[targets] + noise).astype(np.float32) / 2, "targets": targets}


def gpt():
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(
        n_layer=2, n_embd=32, n_head=4, vocab_size=VOCABULARY, n_positions=LENGTH + 4, resid_pdrop=0, embd_pdrop=0, attn_pdrop=0,
        bos_token_id=0, eos_token_id=0, attn_implementation="sdpa"))


def llama():
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(
        num_hidden_layers=2, hidden_size=32, num_attention_heads=4, num_key_value_heads=2, intermediate_size=48, vocab_size=VOCABULARY,
        max_position_embeddings=LENGTH, rms_norm_eps=1e-5, rope_theta=10000.0, tie_word_embeddings=False, attn_implementation="sdpa"))


def convolution(inputs, outputs, kernel, stride):
    return nn.Conv2d(inputs, outputs, kernel, stride, padding=kernel // 2, bias=False)


class BasicBlock(nn.Module):
    """He et al., Deep residual learning for image recognition, arXiv:1512.03385, figure 5; attributes as in torchvision."""

    widening = 1

    def __init__(self, inputs, width, stride):
        super().__init__()
        self.conv1, self.bn1 = convolution(inputs, width, 3, stride), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = convolution(width, width, 3, 1), nn.BatchNorm2d(width)
        self.downsample = shortcut(inputs, width, stride)

    def forward(self, x):
        y = torch.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        return torch.relu(y + (x if self.downsample is None else self.downsample(x)))


class Bottleneck(nn.Module):
    """The same with three convolutions; the second one has the stride, as in torchvision."""

    widening = 4

    def __init__(self, inputs, width, stride):
        super().__init__()
        self.conv1, self.bn1 = convolution(inputs, width, 1, 1), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = convolution(width, width, 3, stride), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = convolution(width, 4 * width, 1, 1), nn.BatchNorm2d(4 * width)
        self.downsample = shortcut(inputs, 4 * width, stride)

    def forward(self, x):
        y = torch.relu(self.bn1(self.conv1(x)))
        y = torch.relu(self.bn2(self.conv2(y)))
        y = self.bn3(self.conv3(y))
        return torch.relu(y + (x if self.downsample is None else self.downsample(x)))


def shortcut(inputs, outputs, stride):
    if stride == 1 and inputs == outputs:
        return None
    return nn.Sequential(convolution(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))


class ResNet(nn.Module):
    """[batch, 3, size, size] images to logits; attributes as in torchvision."""

    def __init__(self, block, counts, width, classes):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, width, 7, 2, padding=3, bias=False), nn.BatchNorm2d(width)
        self.maxpool = nn.MaxPool2d(3, 2, padding=1)
        inputs = width
        for stage, count in enumerate(counts):
            blocks = []
            for i in range(count):
                blocks.append(block(inputs, width << stage, 2 if stage and i == 0 else 1))
                inputs = (width << stage) * block.widening
            setattr(self, f"layer{stage + 1}", nn.Sequential(*blocks))
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(inputs, classes)

    def forward(self, images):
        x = self.maxpool(torch.relu(self.bn1(self.conv1(images))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


MODELS = [
    Known("gpt", f"nn:gpt?layers=2,width=32,heads=4,vocab={VOCABULARY},length={LENGTH + 4}", gpt,
          TEXT_RECIPE.replace("[loss]", f"[model]\ndims = {{ seq = {LENGTH} }}\n\n[loss]"), text,
          aliases=[["transformer.wte.weight", "lm_head.weight"]], dims={1: ("seq", 2, LENGTH + 4)}),
    Known("llama", f"nn:llama?layers=2,width=32,heads=4,groups=2,hidden=48,vocab={VOCABULARY},length={LENGTH},theta=10000,tied=false",
          llama, TEXT_RECIPE, text, shard="40KB"),
    Known("resnet", "nn:resnet?depth=18,width=4,size=40,classes=5", lambda: ResNet(BasicBlock, (2, 2, 2, 2), 4, 5), IMAGE_RECIPE, images),
]
