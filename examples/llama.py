"""The Llama of the example `llama`, in plain PyTorch, and the command that exports its structure.

Pre-norm blocks of RMSNorm, rotary positions, grouped queries and SwiGLU, no biases, a head tied to the token embedding: the architecture of
Llama 3.2's small models (Touvron et al., arXiv:2302.13971; Grattafiori et al., arXiv:2407.21783), but for the scaling of long positions.
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
    key_heads: int
    hidden: int  # width between the two linear layers of a block
    positions: int
    vocabulary: int
    theta: float = 500000.0  # angles are position / theta^(2i / depth)


LLAMA_1B = Sizes(layers=16, width=2048, heads=32, key_heads=8, hidden=8192, positions=8192, vocabulary=128256)  # 1.24 billion


def rotate(x, cos, sin):
    """[batch, head, position, depth]: element i and i + depth / 2 are a point that turns. In f32, as are the angles, whatever x is of."""
    first, second = x.chunk(2, dim=-1)
    return (x * cos + torch.cat((-second, first), dim=-1) * sin).type_as(x)


class Attention(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.depth = sizes.width // sizes.heads
        self.query = nn.Linear(sizes.width, sizes.heads * self.depth, bias=False)
        self.key = nn.Linear(sizes.width, sizes.key_heads * self.depth, bias=False)
        self.value = nn.Linear(sizes.width, sizes.key_heads * self.depth, bias=False)
        self.projection = nn.Linear(sizes.width, sizes.width, bias=False)

    def forward(self, x, cos, sin):
        batch, length, width = x.shape
        query, key, value = (linear(x).view(batch, length, -1, self.depth).transpose(1, 2) for linear in (self.query, self.key, self.value))
        y = functional.scaled_dot_product_attention(rotate(query, cos, sin), rotate(key, cos, sin), value, is_causal=True, enable_gqa=True)
        return self.projection(y.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.norm_1 = nn.RMSNorm(sizes.width, eps=1e-5)
        self.attention = Attention(sizes)
        self.norm_2 = nn.RMSNorm(sizes.width, eps=1e-5)
        self.gate = nn.Linear(sizes.width, sizes.hidden, bias=False)
        self.expand = nn.Linear(sizes.width, sizes.hidden, bias=False)
        self.contract = nn.Linear(sizes.hidden, sizes.width, bias=False)

    def forward(self, x, cos, sin):
        x = x + self.attention(self.norm_1(x), cos, sin)
        y = self.norm_2(x)
        return x + self.contract(functional.silu(self.gate(y)) * self.expand(y))


class Llama(nn.Module):
    """[batch, length] token numbers to [batch, length, vocabulary] logits of each next token."""

    def __init__(self, sizes):
        super().__init__()
        self.tokens = nn.Embedding(sizes.vocabulary, sizes.width)
        self.blocks = nn.ModuleList(Block(sizes) for _ in range(sizes.layers))
        self.norm = nn.RMSNorm(sizes.width, eps=1e-5)
        self.head = nn.Linear(sizes.width, sizes.vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        self.depth, self.theta = sizes.width // sizes.heads, sizes.theta
        for name, parameter in self.named_parameters():
            if parameter.ndim > 1:
                # Each block adds twice to the residual stream: its outputs start smaller.
                adds = name.endswith(("projection.weight", "contract.weight"))
                nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * sizes.layers) if adds else 0.02)

    def forward(self, ids):
        speeds = self.theta ** (torch.arange(0, self.depth, 2, device=ids.device).float() / -self.depth)
        angles = torch.outer(torch.arange(ids.shape[1], device=ids.device).float(), speeds)
        angles = torch.cat((angles, angles), dim=-1)
        cos, sin = angles.cos(), angles.sin()
        x = self.tokens(ids)
        for block in self.blocks:
            x = block(x, cos, sin)
        return self.head(self.norm(x))


def export(description, sizes, default):
    """The command that writes the structure of the model of `sizes`, to `default` unless it names another file."""
    from structure import MODULES, export_decoder  # needs packages that the model itself does not

    export_decoder(description, lambda: Llama(sizes), sizes.positions, default, notes=MODULES)
