"""More GPTs for gpt_zoo.py: attention, positions and norms in the spellings that are rarer, on one skeleton."""
import math

import torch
import torch.nn.functional as F
from torch import nn

from gpt_zoo import HEADS, LAYERS, POSITIONS, VOCABULARY, WIDTH

HEAD = WIDTH // HEADS


def causal(length):
    return torch.ones(length, length, dtype=torch.bool).tril()


class GroupedEinsum(nn.Module):
    """The query heads of a group in a dimension of their own."""

    def __init__(self, groups):
        super().__init__()
        self.groups = groups
        self.q = nn.Linear(WIDTH, WIDTH, bias=False)
        self.kv = nn.Linear(WIDTH, 2 * groups * HEAD, bias=False)
        self.o = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x):
        B, T, _ = x.shape
        q = self.q(x).view(B, T, self.groups, HEADS // self.groups, HEAD)
        k, v = self.kv(x).view(B, T, 2, self.groups, HEAD).unbind(2)
        scores = torch.einsum("bqgrd,bkgd->bgrqk", q, k) / math.sqrt(HEAD)
        p = scores.masked_fill(~causal(T), -1e9).softmax(-1)
        return self.o(torch.einsum("bgrqk,bkgd->bqgrd", p, v).reshape(B, T, WIDTH))


class OneKeyHead(nn.Module):
    """PaLM: keys and values without a dimension of heads, a rotated key, a maximum that is subtracted."""

    def __init__(self):
        super().__init__()
        self.dims = (WIDTH, HEAD, HEAD)
        self.qkv, self.o = nn.Linear(WIDTH, sum(self.dims), bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.register_buffer("inv_freq", 1.0 / 10000 ** (torch.arange(0, HEAD, 2).float() / HEAD), persistent=False)

    def forward(self, x):
        T = x.shape[1]
        q, k, v = self.qkv(x).split(self.dims, dim=-1)
        angles = torch.einsum("i,j->ij", torch.arange(T).float(), self.inv_freq)
        angles = torch.cat((angles, angles), dim=-1)

        def rotate(t):
            a, b = t.chunk(2, dim=-1)
            return t * angles.cos() + torch.cat((-b, a), dim=-1) * angles.sin()

        q = rotate(q.unflatten(-1, (HEADS, HEAD)).transpose(1, 2)) * HEAD ** -0.5
        scores = torch.einsum("bhid,bjd->bhij", q, rotate(k)).masked_fill(~causal(T), -torch.finfo(torch.float32).max)
        p = (scores - scores.amax(dim=-1, keepdim=True).detach()).softmax(dim=-1)
        return self.o(torch.einsum("bhij,bjd->bhid", p, v).transpose(1, 2).flatten(2))


class Cosine(nn.Module):
    """Queries and keys of length 1, a trained temperature for each head."""

    def __init__(self):
        super().__init__()
        self.qkv, self.o = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.temperature = nn.Parameter(torch.full((HEADS, 1, 1), 3.0))

    def forward(self, x):
        B, T, _ = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, HEADS, HEAD).permute(2, 0, 3, 1, 4).unbind(0)
        scores = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1) * self.temperature
        p = scores.masked_fill(~causal(T), -torch.inf).softmax(-1)
        return self.o((p @ v).transpose(1, 2).flatten(2))


class Rotated(nn.Module):
    """Rotary positions by a product of complex numbers, or by the opposite rotation with a negated table."""

    def __init__(self, form):
        super().__init__()
        self.form = form
        self.qkv, self.o = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        inverse = 1.0 / 10000 ** (torch.arange(0, HEAD, 2).float() / HEAD)
        angles = torch.outer(torch.arange(POSITIONS + 2).float(), inverse)
        if form == "complex":
            self.register_buffer("turn", torch.polar(torch.ones_like(angles), angles), persistent=False)
        else:
            self.register_buffer("cos", angles.cos()[None, :, None], persistent=False)
            self.register_buffer("sin", angles.sin()[None, :, None], persistent=False)

    def rotate(self, x):
        T = x.shape[1]
        if self.form == "complex":
            pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
            return torch.view_as_real(pairs * self.turn[:T].view(1, T, 1, -1)).flatten(3)
        cos, sin = self.cos[:, :T], self.sin[:, :T]
        a, b = x.chunk(2, dim=3)
        return torch.cat((a * cos + b * sin, a * (-sin) + b * cos), 3)

    def forward(self, x):
        B, T, _ = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, HEADS, HEAD).unbind(2)
        q, k, v = (t.transpose(1, 2) for t in (self.rotate(q), self.rotate(k), v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o(y.transpose(1, 2).reshape(B, T, WIDTH))


class Capped(nn.Module):
    """Gemma 2: scores between -50 and 50."""

    def __init__(self):
        super().__init__()
        self.qkv, self.o = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        B, T, _ = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, HEADS, HEAD).permute(2, 0, 3, 1, 4).unbind(0)
        scores = torch.tanh(q @ k.transpose(-2, -1) * HEAD ** -0.5 / 50.0) * 50.0
        return self.o((scores.masked_fill(~causal(T), -1e30).softmax(-1) @ v).transpose(1, 2).flatten(2))


class Distances(nn.Module):
    """T5: a trained bias for each head and bucket of distances."""

    def __init__(self):
        super().__init__()
        self.qkv, self.o = nn.Linear(WIDTH, 3 * WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.bias = nn.Embedding(8, HEADS)

    def forward(self, x):
        B, T, _ = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, HEADS, HEAD).permute(2, 0, 3, 1, 4).unbind(0)
        positions = torch.arange(T)
        buckets = torch.clamp(positions[:, None] - positions[None, :], 0, 7)
        scores = q @ k.transpose(-2, -1) + self.bias(buckets).permute(2, 0, 1)[None]
        return self.o((scores.masked_fill(~causal(T), -torch.inf).softmax(-1) @ v).transpose(1, 2).flatten(2))


class LengthNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.g = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        return F.normalize(x, dim=-1) * WIDTH ** 0.5 * self.g


class Skeleton(nn.Module):
    """`positions`: looked up for every sample, or none."""

    def __init__(self, attention, positions=True, norm=lambda: nn.LayerNorm(WIDTH)):
        super().__init__()
        self.wte = nn.Embedding(VOCABULARY, WIDTH)
        self.wpe = nn.Embedding(POSITIONS + 2, WIDTH) if positions else None
        self.attentions = nn.ModuleList([attention() for _ in range(LAYERS)])
        self.norms = nn.ModuleList([norm() for _ in range(LAYERS)])
        self.final_norm, self.head = norm(), nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, tokens):
        B, T = tokens.shape
        x = self.wte(tokens)
        if self.wpe is not None:
            x = x + self.wpe(torch.arange(T).unsqueeze(0).expand(B, T))
        for norm, attention in zip(self.norms, self.attentions):
            x = x + attention(norm(x))
        return self.head(self.final_norm(x))


VARIANTS = {
    "grouped-einsum": lambda: Skeleton(lambda: GroupedEinsum(2)),
    "single-group": lambda: Skeleton(lambda: GroupedEinsum(1)),
    "one-key-head": lambda: Skeleton(OneKeyHead, positions=False, norm=LengthNorm),
    "cosine": lambda: Skeleton(Cosine),
    "rotary-complex": lambda: Skeleton(lambda: Rotated("complex"), positions=False),
    "rotary-opposite": lambda: Skeleton(lambda: Rotated("halves"), positions=False),
    "capped": lambda: Skeleton(Capped, norm=LengthNorm),
    "distances": lambda: Skeleton(Distances, positions=False),
}
