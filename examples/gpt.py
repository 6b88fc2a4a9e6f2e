"""The GPT of the examples `char` and `gpt2`, in plain PyTorch, and the export of its structure.

Pre-norm blocks, learned positions, a head tied to the token embedding: the architecture of GPT-2 (Radford et al., 2019). Attention is
`scaled_dot_product_attention`, as most code is written today.
"""
import logging
import math
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

import onnx
import torch
from torch import nn
from torch.nn import functional

LARGEST = 300 * 1024


@dataclass
class Sizes:
    layers: int
    width: int
    heads: int
    positions: int
    vocabulary: int
    dropout: float = 0.0


class Attention(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.heads, self.dropout = sizes.heads, sizes.dropout
        self.qkv = nn.Linear(sizes.width, 3 * sizes.width)
        self.projection = nn.Linear(sizes.width, sizes.width)

    def forward(self, x):
        batch, length, width = x.shape
        query, key, value = (part.view(batch, length, self.heads, width // self.heads).transpose(1, 2)
                             for part in self.qkv(x).split(width, dim=2))
        y = functional.scaled_dot_product_attention(query, key, value, is_causal=True,
                                                    dropout_p=self.dropout if self.training else 0.0)
        return self.projection(y.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.norm_1 = nn.LayerNorm(sizes.width)
        self.attention = Attention(sizes)
        self.norm_2 = nn.LayerNorm(sizes.width)
        self.expand = nn.Linear(sizes.width, 4 * sizes.width)
        self.contract = nn.Linear(4 * sizes.width, sizes.width)
        self.dropout = nn.Dropout(sizes.dropout) if sizes.dropout else nn.Identity()

    def forward(self, x):
        x = x + self.dropout(self.attention(self.norm_1(x)))
        hidden = functional.gelu(self.expand(self.norm_2(x)), approximate="tanh")
        return x + self.dropout(self.contract(hidden))


class GPT(nn.Module):
    """[batch, length] token numbers to [batch, length, vocabulary] logits of each next token."""

    def __init__(self, sizes):
        super().__init__()
        self.tokens = nn.Embedding(sizes.vocabulary, sizes.width)
        self.positions = nn.Embedding(sizes.positions, sizes.width)
        self.blocks = nn.ModuleList(Block(sizes) for _ in range(sizes.layers))
        self.norm = nn.LayerNorm(sizes.width)
        self.head = nn.Linear(sizes.width, sizes.vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        self.apply(self._initialise)
        # Each block adds twice to the residual stream: its outputs start smaller.
        for block in self.blocks:
            for linear in (block.attention.projection, block.contract):
                nn.init.normal_(linear.weight, std=0.02 / math.sqrt(2 * sizes.layers))

    @staticmethod
    def _initialise(module):
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1], device=ids.device))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def strip(model):
    """Keeps, of what the exporter notes about each node, what names its module and its parameters: stack traces hold paths of the
    exporting machine, and the rest is half of the file."""
    kept = {"pkg.torch.onnx.name_scopes", "pkg.torch.onnx.class_hierarchy", "pkg.torch.onnx.fx_node"}
    graph = model.graph
    del graph.value_info[:]
    for holder in [model, graph, *graph.node, *graph.input, *graph.output, *graph.initializer]:
        is_constant = getattr(holder, "op_type", "") == "Constant"
        entries = [entry for entry in holder.metadata_props if entry.key in kept and not is_constant]
        del holder.metadata_props[:]
        holder.metadata_props.extend(entries)


def export_structure(sizes, output, length=None):
    """Writes the model without its weights, of `length` tokens, or of a length named `seq` that the recipe or the job sets."""
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    model = GPT(sizes).train()
    dims = {0: torch.export.Dim("batch", min=1, max=65536)}
    if length is None:
        dims[1] = torch.export.Dim("seq", min=2, max=sizes.positions)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / output.name
        torch.onnx.export(model, (torch.zeros(2, length or 16, dtype=torch.int64),), str(path), dynamo=True, optimize=False,
                          opset_version=23, external_data=True, input_names=["ids"], output_names=["logits"],
                          dynamic_shapes=(dims,), verbose=False)
        exported = onnx.load(str(path), load_external_data=False)
    strip(exported)
    content = exported.SerializeToString(deterministic=True)
    assert len(content) <= LARGEST, f"{len(content)} bytes: the weights are inside"
    output.write_bytes(content)
    print(f"export: {output}: {len(content)} bytes, {sum(p.numel() for p in model.parameters())} parameters, no weights")
