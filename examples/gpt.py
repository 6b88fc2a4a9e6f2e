"""The GPT of the examples `char` and `gpt2`, in plain PyTorch, and the command that exports its structure.

Pre-norm blocks, learned positions, a head tied to the token embedding: the architecture of GPT-2 (Radford et al., 2019). Attention is
`scaled_dot_product_attention`, as most code is written today.
"""
import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional


@dataclass
class Sizes:
    layers: int
    width: int
    heads: int
    positions: int
    vocabulary: int
    dropout: float = 0.0


CHAR = Sizes(layers=6, width=384, heads=6, positions=256, vocabulary=256)
GPT2 = Sizes(layers=12, width=768, heads=12, positions=1024, vocabulary=50304)  # 124M


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


def export(description, sizes, default):
    """The command that writes the structure of the model of `sizes`, to `default` unless it names another file."""
    from structure import NAMING, export_decoder  # needs packages that the model itself does not

    export_decoder(description, lambda: GPT(sizes), sizes.positions, default, notes=NAMING)
