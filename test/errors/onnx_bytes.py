"""ONNX files, right and wrong, written byte by byte: a small encoder of the protobuf wire format and the messages of
onnx.proto that the tests need, by field number."""
import struct

import numpy as np

FLOAT, INT64 = 1, 7  # TensorProto.DataType


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def block(field, content):
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def tensor(name, array, raw=None, dims=None):
    """TensorProto; `raw` and `dims` replace what `array` has."""
    array = np.asarray(array)
    kind = {np.dtype(np.float32): FLOAT, np.dtype(np.int64): INT64}[array.dtype]
    raw = array.tobytes() if raw is None else raw
    return (b"".join(number(1, d) for d in (array.shape if dims is None else dims))
            + number(2, kind) + block(8, name) + block(9, raw))


def external_tensor(name, dims, location, offset=None, length=None):
    entries = {"location": location, "offset": offset, "length": length}
    return (b"".join(number(1, d) for d in dims) + number(2, FLOAT) + block(8, name)
            + b"".join(block(13, block(1, key) + block(2, str(value)))
                       for key, value in entries.items() if value is not None)
            + number(14, 1))


def attribute(name, value):
    """AttributeProto of an int, a float, a list of ints or a subgraph (bytes)."""
    if isinstance(value, list):
        return block(1, name) + b"".join(number(8, v) for v in value) + number(20, 7)
    if isinstance(value, int):
        return block(1, name) + number(3, value) + number(20, 2)
    if isinstance(value, float):
        return block(1, name) + varint(2 << 3 | 5) + struct.pack("<f", value) + number(20, 1)
    return block(1, name) + block(6, value) + number(20, 5)


def node(op, inputs, outputs, name="", domain="", **attributes):
    return (b"".join(block(1, i) for i in inputs) + b"".join(block(2, o) for o in outputs)
            + (block(3, name) if name else b"") + block(4, op)
            + b"".join(block(5, attribute(key, value)) for key, value in attributes.items())
            + (block(7, domain) if domain else b""))


def value(name, dims, kind=FLOAT):
    """ValueInfoProto; a string is a symbolic dim."""
    shape = b"".join(block(1, block(2, d) if isinstance(d, str) else number(1, d)) for d in dims)
    return block(1, name) + block(2, block(1, number(1, kind) + block(2, shape)))


def graph(nodes, inputs, outputs, initializers=()):
    return (b"".join(block(1, n) for n in nodes) + block(2, "graph") + b"".join(block(5, t) for t in initializers)
            + b"".join(block(11, i) for i in inputs) + b"".join(block(12, o) for o in outputs))


def model(graph_bytes, opset=18, domain="", functions=(), ir_version=8, producer=""):
    return (number(1, ir_version) + (block(2, producer) if producer else b"") + block(7, graph_bytes) + block(8, (block(1, domain) if domain else b"") + number(2, opset))
            + b"".join(block(25, f) for f in functions))


def function(name, nodes, domain="local", inputs=("a",), outputs=("b",), opset=18):
    return (block(1, name) + b"".join(block(4, i) for i in inputs) + b"".join(block(5, o) for o in outputs)
            + b"".join(block(7, n) for n in nodes) + block(9, number(2, opset)) + block(10, domain))


def linear(initializers=None, nodes=None, inputs=None, outputs=None, inputs_count=12, classes=5, opset=18, **options):
    """y = x w^T + b with whatever replaced."""
    if initializers is None:
        initializers = [tensor("fc.weight", np.ones((classes, inputs_count), np.float32)),
                        tensor("fc.bias", np.zeros(classes, np.float32))]
    if nodes is None:
        nodes = [node("Gemm", ["x", "fc.weight", "fc.bias"], ["y"], "/fc/Gemm", transB=1)]
    inputs = inputs or [value("x", ["batch", inputs_count])]
    outputs = outputs or [value("y", ["batch", classes])]
    return model(graph(nodes, inputs, outputs, initializers), opset, **options)
