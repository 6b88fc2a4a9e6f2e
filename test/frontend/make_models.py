#!/usr/bin/env python3
"""Writes the small ONNX models of the importer's tests into Inputs/ (needs torch, onnx and onnxscript).

Every PyTorch model is exported by both exporters, for training and for inference, and the names that a checkpoint must
have are written beside it (<model>.names, one `name shape` a line, as named_parameters() and named_buffers() give them).
Machine paths (stack traces) are stripped.
"""
import argparse
import pathlib
import warnings

import numpy as np
import onnx
import torch
import torch.nn as nn
import torch.nn.functional as F
from onnx import TensorProto, helper, numpy_helper

warnings.filterwarnings("ignore")


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(6, 8)
        self.norm = nn.LayerNorm(8)
        self.drop = nn.Dropout(0.1)
        self.fc2 = nn.Linear(8, 3)

    def forward(self, x):
        return self.fc2(self.drop(F.gelu(self.norm(self.fc1(x)))))


class Nested(nn.Module):
    """Sequentials in Sequentials, a ModuleList, no biases, activations as modules."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Flatten(), nn.Linear(12, 6, bias=False), nn.GELU(approximate="tanh"))
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(6, 6), nn.SiLU(), nn.Sequential(nn.Linear(6, 6, bias=False), nn.Tanh()))
            for _ in range(2)
        )
        self.head = nn.Linear(6, 4)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)


class Tied(nn.Module):
    """A weight of two modules, a parameter of the root, buffers, three-dimensional inputs (MatMul, not Gemm)."""

    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6, bias=False))
        self.dec = nn.Linear(6, 6)
        self.dec.weight = self.enc[0].weight
        self.w = nn.Parameter(torch.randn(6, 5))
        self.register_buffer("scale", torch.full((6,), 2.0))

    def forward(self, x):
        y = self.dec(self.enc(x)) * self.scale
        y = y.flatten(1).view(x.shape[0], 5, 6)
        return F.log_softmax((y @ self.w).mean(1), -1)


class Functional(nn.Module):
    """Parameters used by functions of the root module."""

    def __init__(self):
        super().__init__()
        self.Weight_A = nn.Parameter(torch.randn(5, 6))
        self.bias_a = nn.Parameter(torch.randn(5))
        self.gain = nn.Parameter(torch.ones(5))

    def forward(self, x):
        y = F.linear(x, self.Weight_A, self.bias_a)
        return F.dropout(torch.relu(F.layer_norm(y, (5,), self.gain)), 0.25, self.training)


class Gpt(nn.Module):
    """One block: a mask buffer, softmax spelled out, a head that is tied to the embedding."""

    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(7, 4)
        self.c_attn = nn.Linear(4, 12)
        self.ln = nn.LayerNorm(4)
        self.head = nn.Linear(4, 7, bias=False)
        self.head.weight = self.wte.weight
        self.register_buffer("bias", torch.tril(torch.ones(5, 5)).view(1, 1, 5, 5))

    def forward(self, x):
        B, T = x.shape
        h = self.wte(x)
        q, k, v = (part.view(B, T, 2, 2).transpose(1, 2) for part in self.c_attn(self.ln(h)).split(4, dim=2))
        scores = (q @ k.transpose(-2, -1)) * 2 ** -0.5
        scores = scores.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        h = h + (F.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(B, T, 4)
        return self.head(h)


class Squares(nn.Module):
    """Square matrices that are added to something: positions and a bias of scores, which are trained, and a mask, which is not."""

    def __init__(self):
        super().__init__()
        self.pos_emb = nn.Parameter(torch.randn(5, 5))
        self.score_bias = nn.Parameter(torch.randn(5, 5))
        self.register_buffer("mask", torch.full((5, 5), float("-inf")).triu(1))
        self.head = nn.Linear(5, 3)

    def forward(self, x):
        x = x + self.pos_emb
        x = x + F.softmax(x @ x.transpose(1, 2) + self.score_bias, dim=-1) @ x
        heads = x.unsqueeze(1)
        return self.head(F.scaled_dot_product_attention(heads, heads, heads, attn_mask=self.mask).squeeze(1))


class Recurrent(nn.Module):
    def __init__(self, kind, **options):
        super().__init__()
        self.rnn = kind(3, 2, batch_first=True, **options)
        self.head = nn.Linear(2 * self.rnn.hidden_size if self.rnn.bidirectional else self.rnn.hidden_size, 3)

    def forward(self, x):
        return self.head(self.rnn(x)[0][:, -1])


RECURRENT = {
    "lstm": lambda: Recurrent(nn.LSTM, num_layers=2, bidirectional=True),
    "gru": lambda: Recurrent(nn.GRU, num_layers=2),
    "gru-unbiased": lambda: Recurrent(nn.GRU, bias=False, bidirectional=True),
    "rnn": lambda: Recurrent(nn.RNN),
}

MODELS = {
    "mlp": (Mlp, (4, 6)),
    "nested": (Nested, (4, 3, 4)),
    "tied": (Tied, (4, 5, 6)),
    "functional": (Functional, (4, 6)),
    "gpt": (Gpt, (4, 3)),
}


def sample(name, *shape):
    return torch.randint(0, 7, shape) if name == "gpt" else torch.randn(*shape)


def strip(path):
    """Removes what names the exporting machine."""
    model = onnx.load(path)
    graphs = [model.graph.node] + [function.node for function in model.functions]
    for nodes in graphs:
        for node in nodes:
            kept = [entry for entry in node.metadata_props if not entry.key.endswith("stack_trace")]
            del node.metadata_props[:]
            node.metadata_props.extend(kept)
            node.doc_string = ""
    model.doc_string = ""
    onnx.save(model, path)
    assert b"/tmp/" not in path.read_bytes() and b"site-packages" not in path.read_bytes(), path


def export(out, name, make, shape):
    torch.manual_seed(0)
    module = make()
    lines = [f"{n} {list(p.shape)}" for n, p in module.named_parameters()]
    (out / f"{name}.names").write_text("\n".join(lines) + "\n")
    # What the module computes for a batch that no export was made with.
    io = out / f"{name}.io"
    io.mkdir(exist_ok=True)
    module.eval()
    x = sample(name, 3, *shape[1:])
    for kind, tensor in (("input", x), ("output", module(x).detach())):
        (io / f"{kind}_0.pb").write_bytes(numpy_helper.from_array(tensor.numpy(), kind).SerializeToString())
    batch = torch.export.Dim("batch")
    for train in (True, False):
        module.train(train)
        mode = "train" if train else "eval"
        x = sample(name, *shape)
        for optimize in (True, False):
            path = out / f"{name}-dynamo-{mode}{'-optimized' if optimize else ''}.onnx"
            torch.onnx.export(module, (x,), path, dynamo=True, optimize=optimize, external_data=False, verbose=False,
                              opset_version=18 if optimize else 20, input_names=["x"], output_names=["y"],
                              dynamic_shapes=None if optimize else ({0: batch},))
            strip(path)
        path = out / f"{name}-legacy-{mode}.onnx"
        torch.onnx.export(module, (x,), path, dynamo=False, do_constant_folding=not train, opset_version=13 if train else 17,
                          training=torch.onnx.TrainingMode.TRAINING if train else torch.onnx.TrainingMode.EVAL,
                          input_names=["x"], output_names=["y"], dynamic_axes={"x": {0: "batch"}} if train else None)
        strip(path)


def structure_only(path):
    """Says of every tensor that its data lies in a file, which there is not."""
    model = onnx.load(path)
    for tensor in [*model.graph.initializer]:
        if tensor.data_type == TensorProto.FLOAT and tensor.dims:
            size = 4 * int(np.prod(tensor.dims))
            onnx.external_data_helper.set_external_data(tensor, "not-there.data", offset=0, length=size)
            tensor.ClearField("raw_data")
    path.write_bytes(model.SerializeToString(deterministic=True))


def structures(out):
    torch.manual_seed(0)
    module, x = Squares().eval(), torch.randn(4, 5, 5)
    for way, options in {
        "dynamo-23": dict(dynamo=True, optimize=False, external_data=False, verbose=False, opset_version=23),
        "dynamo-18": dict(dynamo=True, optimize=False, external_data=False, verbose=False, opset_version=18),
        "legacy": dict(dynamo=False, do_constant_folding=False, opset_version=17),
    }.items():
        path = out / f"squares-{way}.onnx"
        torch.onnx.export(module, (x,), path, input_names=["x"], output_names=["y"], **options)
        strip(path)
        structure_only(path)


# What names are recovered from, as in test/training/export_model.py.
NAMING = {"pkg.torch.onnx.name_scopes", "pkg.torch.onnx.class_hierarchy", "pkg.torch.onnx.fx_node",
          "pkg.torch.export.ExportedProgram.graph_signature"}


def keep_naming(path):
    """Removes what outweighs the rest of a small model: other metadata, and the shapes of values."""
    model = onnx.load(path)
    graph = model.graph
    for holder in [model, graph, *graph.node, *graph.input, *graph.output, *graph.initializer]:
        kept = [entry for entry in holder.metadata_props if entry.key in NAMING]
        del holder.metadata_props[:]
        holder.metadata_props.extend(kept)
    del graph.value_info[:]
    path.write_bytes(model.SerializeToString(deterministic=True))


def recurrent(out):
    """nn.LSTM, nn.GRU and nn.RNN in every way of export; <model>.states has what their states start from, a graph of initializers."""
    out.mkdir(exist_ok=True)
    for name, make in RECURRENT.items():
        torch.manual_seed(0)
        module, x = make(), torch.randn(4, 5, 3)
        states = [numpy_helper.from_array(tensor.numpy(), key) for key, tensor in module.state_dict().items()]
        graph = helper.make_graph([], name, [], [], states)
        (out / f"{name}.states").write_bytes(graph.SerializeToString(deterministic=True))
        for way, options in {
            "dynamo": dict(dynamo=True, optimize=False, external_data=False, verbose=False, opset_version=20),
            "dynamo-optimized": dict(dynamo=True, optimize=True, external_data=False, verbose=False, opset_version=18),
            "legacy": dict(dynamo=False, do_constant_folding=False, opset_version=17),
            "legacy-folded": dict(dynamo=False, do_constant_folding=True, opset_version=17),
        }.items():
            path = out / f"{name}-{way}.onnx"
            torch.onnx.export(module.eval(), (x,), path, input_names=["x"], output_names=["y"], **options)
            strip(path)
            keep_naming(path)


def save(out, name, nodes, inputs, outputs, initializers, opset=17, ir_version=8, functions=(), opsets=None):
    graph = helper.make_graph(nodes, name, inputs, outputs, initializers)
    imports = opsets or [helper.make_opsetid("", opset)]
    model = helper.make_model(graph, opset_imports=imports, functions=list(functions), ir_version=ir_version,
                              producer_name="make_models")
    onnx.save(model, out / f"{name}.onnx")


def value(name, shape, kind=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def array(name, data, dtype=np.float32):
    return numpy_helper.from_array(np.asarray(data, dtype), name)


def handwritten(out):
    rng = np.random.default_rng(0)
    w = array("W1", rng.standard_normal((6, 4)))
    b = array("b1", rng.standard_normal(4))
    node = helper.make_node
    save(out, "plain", [node("MatMul", ["x", "W1"], ["h"], "mm"), node("Add", ["h", "b1"], ["a"], "add"),
                        node("Relu", ["a"], ["y"], "relu")], [value("x", ["N", 6])], [value("y", ["N", 4])], [w, b])
    # float_data instead of raw_data, an anonymous weight, an initializer that is listed as an input
    typed = helper.make_tensor("7", TensorProto.FLOAT, [6, 4], np.arange(24).astype(float).tolist())
    save(out, "anonymous", [node("Gemm", ["x", "7", "8"], ["y"])], [value("x", [2, 6]), value("7", [6, 4])],
         [value("y", [2, 4])], [typed, array("8", np.zeros(4))], ir_version=3)
    # three problems in one model, one of them in a module
    save(out, "unsupported", [node("STFT", ["x", "b1"], ["s"], "/enc/STFT"), node("Relu", ["s"], ["r"]),
                              node("Foo", ["r"], ["t"], "foo", domain="com.example"),
                              node("Det", ["x"], ["d"], "det"), node("Add", ["t", "d"], ["y"])],
         [value("x", ["N", 4])], [value("y", ["N", 4])], [b],
         opsets=[helper.make_opsetid("", 17), helper.make_opsetid("com.example", 1)])
    # a local function with an attribute, called twice
    linear = helper.make_function("local", "Scaled", ["X", "W"], ["Y"],
                                  [node("MatMul", ["X", "W"], ["M"]), helper.make_node("LeakyRelu", ["M"], ["Y"])],
                                  [helper.make_opsetid("", 17)], ["slope"])
    reference = linear.node[1].attribute.add()
    reference.name, reference.ref_attr_name, reference.type = "alpha", "slope", onnx.AttributeProto.FLOAT
    save(out, "local-function", [node("Scaled", ["x", "W1"], ["h"], "first", domain="local", slope=0.25),
                                 node("Scaled", ["h", "W2"], ["y"], "second", domain="local", slope=0.5)],
         [value("x", ["N", 6])], [value("y", ["N", 2])], [w, array("W2", rng.standard_normal((4, 2)))],
         functions=[linear], opsets=[helper.make_opsetid("", 17), helper.make_opsetid("local", 1)])
    # layer normalisation and both GELUs as old exporters spell them out
    axes = {"axes": [-1]}
    constants = [array("two", 2.0), array("eps", 1e-5), array("half", 0.5), array("one", 1.0), array("root2", 2 ** 0.5),
                 array("three", 3.0), array("cubic", 0.044715), array("slope", (2 / np.pi) ** 0.5)]
    save(out, "decomposed", [
        node("ReduceMean", ["x"], ["mean"], "mean", **axes), node("Sub", ["x", "mean"], ["d"], "sub"),
        node("Pow", ["d", "two"], ["sq"], "pow"), node("ReduceMean", ["sq"], ["var"], "var", **axes),
        node("Add", ["var", "eps"], ["ve"]), node("Sqrt", ["ve"], ["sd"]), node("Div", ["d", "sd"], ["n"]),
        node("Mul", ["n", "norm.weight"], ["nw"]), node("Add", ["nw", "norm.bias"], ["h"], "norm"),
        node("Div", ["h", "root2"], ["e0"]), node("Erf", ["e0"], ["e1"]), node("Add", ["e1", "one"], ["e2"]),
        node("Mul", ["h", "e2"], ["e3"]), node("Mul", ["e3", "half"], ["g"], "gelu"),
        node("Pow", ["g", "three"], ["t0"]), node("Mul", ["t0", "cubic"], ["t1"]), node("Add", ["g", "t1"], ["t2"]),
        node("Mul", ["t2", "slope"], ["t3"]), node("Tanh", ["t3"], ["t4"]), node("Add", ["t4", "one"], ["t5"]),
        node("Mul", ["half", "g"], ["t6"]), node("Mul", ["t6", "t5"], ["t7"], "tanh_gelu"),
        node("Sigmoid", ["t7"], ["s"]), node("Mul", ["t7", "s"], ["y"], "silu"),
    ], [value("x", ["N", 4])], [value("y", ["N", 4])],
        constants + [array("norm.weight", np.ones(4)), array("norm.bias", np.zeros(4))], opset=13)
    # the exported batch is held by a tensor that cannot follow
    save(out, "baked-constant", [node("Add", ["x", "table"], ["h"], "add_table"), node("MatMul", ["h", "W1"], ["y"])],
         [value("x", [4, 6])], [value("y", [4, 4])], [w, array("table", np.arange(24).reshape(4, 6))])
    # samples are mixed
    save(out, "baked-mix", [node("MatMul", ["x", "W1"], ["h"]), node("Softmax", ["h"], ["y"], "across", axis=0)],
         [value("x", [4, 6])], [value("y", [4, 4])], [w])
    # a batch of 1 that meets tensors with a leading 1
    save(out, "baked-one", [node("Reshape", ["x", "shape"], ["h"], "flatten"), node("Add", ["h", "shift"], ["a"]),
                            node("MatMul", ["a", "W1"], ["y"])],
         [value("x", [1, 2, 3])], [value("y", [1, 4])],
         [w, array("shape", [1, 6], np.int64), array("shift", np.arange(6).reshape(1, 6))])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent / "Inputs")
    out = parser.parse_args().out
    out.mkdir(exist_ok=True)
    for name, (make, shape) in MODELS.items():
        export(out, name, make, shape)
    structures(out)
    recurrent(out / "recurrent")
    handwritten(out)


if __name__ == "__main__":
    main()
