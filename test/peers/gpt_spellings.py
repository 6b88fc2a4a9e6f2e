"""Blocks of GPTs as people write them: each spells its norms, positions, attention and activation in another way. Small, and over embedded
sequences [batch, position, width], so that an export is about the blocks alone. Whole GPTs are in gpt_zoo.py."""
import math

import torch
from torch import nn
from torch.nn import functional

from gpt_models import Conv1D, new_gelu, rotate_half
from gpt_zoo import MinAttention, RmsNorm

WIDTH, HEADS, LENGTH = 32, 4, 12
DEPTH = WIDTH // HEADS


class FusedAttention(nn.Module):
    """PyTorch's scaled_dot_product_attention, as most code is written today."""

    def __init__(self, dropout=0.0, masked=False):
        super().__init__()
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.dropout, self.masked = dropout, masked

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, HEADS, DEPTH).transpose(1, 2) for part in self.qkv(x).split(WIDTH, dim=2))
        p = self.dropout if self.training else 0.0
        if self.masked:
            mask = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()
            y = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=p)
        else:
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=p)
        return self.proj(y.transpose(1, 2).contiguous().view(batch, length, width))


class MinimumAttention(nn.Module):
    """`where` with the smallest number instead of -inf, a division by the root, the mask computed from positions."""

    def __init__(self):
        super().__init__()
        self.qkv, self.proj = Conv1D(WIDTH, 3 * WIDTH), Conv1D(WIDTH, WIDTH)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.view(batch, length, HEADS, DEPTH).permute(0, 2, 1, 3) for part in self.qkv(x).split(width, dim=2))
        scores = torch.matmul(q, k.transpose(-1, -2)) / torch.full([], DEPTH ** 0.5, dtype=x.dtype)
        positions = torch.arange(length, device=x.device)
        causal = positions[:, None] >= positions[None, :]
        scores = torch.where(causal, scores, torch.full([], torch.finfo(scores.dtype).min, dtype=scores.dtype))
        probabilities = functional.softmax(scores, dim=-1).type(v.dtype)
        y = torch.matmul(probabilities, v)
        return self.proj(y.permute(0, 2, 1, 3).contiguous().view(batch, length, width))


class EinsumAttention(nn.Module):
    """einsum on [batch, position, head, depth], an additive mask, the scale on the query."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.proj = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = (linear(x).view(batch, length, HEADS, DEPTH) for linear in (self.q, self.k, self.v))
        mask = torch.triu(torch.full((length, length), float("-inf"), device=x.device), diagonal=1)
        weights = torch.softmax(torch.einsum("bthd,bshd->bhts", q * DEPTH ** -0.5, k) + mask, dim=-1)
        return self.proj(torch.einsum("bhts,bshd->bthd", weights, v).reshape(batch, length, WIDTH))


class BatchedAttention(nn.Module):
    """bmm over batch and head as one dimension (OPT's and fairseq's way)."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.proj = (nn.Linear(WIDTH, WIDTH) for _ in range(4))

    def forward(self, x):
        batch, length, _ = x.shape

        def split(y):
            return y.view(batch, length, HEADS, DEPTH).transpose(1, 2).contiguous().view(batch * HEADS, length, DEPTH)

        q, k, v = split(self.q(x) * DEPTH ** -0.5), split(self.k(x)), split(self.v(x))
        scores = torch.bmm(q, k.transpose(1, 2))
        mask = torch.full((length, length), torch.finfo(x.dtype).min).triu(1)
        scores = scores.view(batch, HEADS, length, length) + mask
        weights = functional.softmax(scores.view(batch * HEADS, length, length), dim=-1)
        y = torch.bmm(weights, v).view(batch, HEADS, length, DEPTH).transpose(1, 2)
        return self.proj(y.reshape(batch, length, WIDTH))


class GroupedAttention(nn.Module):
    """Llama's: rotary positions, fewer key heads than query heads, softmax in f32, no biases."""

    def __init__(self, fused=True, groups=2, rotary=DEPTH):
        super().__init__()
        self.groups, self.fused, self.rotary = groups, fused, rotary
        self.q_proj = nn.Linear(WIDTH, WIDTH, bias=False)
        self.k_proj = nn.Linear(WIDTH, groups * DEPTH, bias=False)
        self.v_proj = nn.Linear(WIDTH, groups * DEPTH, bias=False)
        self.o_proj = nn.Linear(WIDTH, WIDTH, bias=False)
        self.register_buffer("inv_freq", 1.0 / (10000.0 ** (torch.arange(0, rotary, 2).float() / rotary)), persistent=False)

    def repeat(self, x):
        batch, groups, length, depth = x.shape
        repeats = HEADS // groups
        return x[:, :, None, :, :].expand(batch, groups, repeats, length, depth).reshape(batch, HEADS, length, depth)

    def turn(self, x, cos, sin):
        head, rest = x[..., : self.rotary], x[..., self.rotary:]
        turned = (head * cos) + (rotate_half(head) * sin)
        return torch.cat((turned, rest), dim=-1) if self.rotary < DEPTH else turned

    def forward(self, x):
        batch, length, _ = x.shape
        q = self.q_proj(x).view(batch, length, HEADS, DEPTH).transpose(1, 2)
        k = self.k_proj(x).view(batch, length, self.groups, DEPTH).transpose(1, 2)
        v = self.v_proj(x).view(batch, length, self.groups, DEPTH).transpose(1, 2)
        positions = torch.arange(length, device=x.device).unsqueeze(0)
        inv_freq = self.inv_freq[None, :, None].float().expand(positions.shape[0], -1, 1)
        freqs = (inv_freq.float() @ positions[:, None, :].float()).transpose(1, 2)
        emb = torch.cat((freqs, freqs), dim=-1)
        cos, sin = emb.cos().to(x.dtype).unsqueeze(1), emb.sin().to(x.dtype).unsqueeze(1)
        q, k = self.turn(q, cos, sin), self.turn(k, cos, sin)
        k, v = self.repeat(k), self.repeat(v)
        if self.fused:
            y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = torch.matmul(q, k.transpose(2, 3)) * DEPTH ** -0.5
            mask = torch.full((length, length), torch.finfo(x.dtype).min).triu(1)[None, None]
            weights = functional.softmax(scores + mask, dim=-1, dtype=torch.float32).to(q.dtype)
            y = torch.matmul(weights, v)
        return self.o_proj(y.transpose(1, 2).contiguous().reshape(batch, length, WIDTH))


class InterleavedAttention(nn.Module):
    """GPT-J's rotary: neighbouring elements are a pair; tables [position, depth / 2]; repeat_interleave of grouped keys."""

    def __init__(self):
        super().__init__()
        self.wq, self.wo = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH, bias=False)
        self.wk, self.wv = nn.Linear(WIDTH, 2 * DEPTH, bias=False), nn.Linear(WIDTH, 2 * DEPTH, bias=False)

    @staticmethod
    def turn(x, cos, sin):
        pairs = x.float().reshape(*x.shape[:-1], -1, 2)
        cos, sin = cos.view(1, pairs.size(1), 1, pairs.size(3)), sin.view(1, pairs.size(1), 1, pairs.size(3))
        turned = torch.stack([pairs[..., 0] * cos - pairs[..., 1] * sin, pairs[..., 1] * cos + pairs[..., 0] * sin], -1)
        return turned.flatten(3).type_as(x)

    def forward(self, x):
        batch, length, _ = x.shape
        freqs = 1.0 / (10000 ** (torch.arange(0, DEPTH, 2).float() / DEPTH))
        angles = torch.outer(torch.arange(length).float(), freqs)
        cos, sin = angles.cos(), angles.sin()
        q = self.turn(self.wq(x).view(batch, length, HEADS, DEPTH), cos, sin)
        k = self.turn(self.wk(x).view(batch, length, 2, DEPTH), cos, sin)
        v = self.wv(x).view(batch, length, 2, DEPTH)
        k, v = (part.repeat_interleave(HEADS // 2, dim=2) for part in (k, v))
        q, k, v = (part.transpose(1, 2) for part in (q, k, v))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(y.transpose(1, 2).contiguous().view(batch, length, -1))


class PaddedAttention(nn.Module):
    """A padding mask that the model computes from its input, joined with the causal one."""

    def __init__(self, boolean):
        super().__init__()
        self.qkv, self.proj, self.boolean = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH), boolean

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (part.unflatten(-1, (HEADS, DEPTH)).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        present = x[:, :, 0] < 5.0
        positions = torch.arange(length, device=x.device)
        causal = positions[None, :] <= positions[:, None]
        if self.boolean:
            mask = causal[None, None] & present[:, None, None, :]
            y = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        else:
            least = torch.finfo(x.dtype).min
            scores = torch.where(causal, q @ k.transpose(-2, -1) * DEPTH ** -0.5, least)
            scores = scores + (1.0 - present.to(x.dtype))[:, None, None, :] * least
            y = functional.softmax(scores, dim=-1) @ v
        return self.proj(y.transpose(1, 2).flatten(2))


class NormedAttention(nn.Module):
    """Norms of queries and keys per head, one key head for all, a window of four positions."""

    def __init__(self):
        super().__init__()
        self.q, self.kv, self.proj = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 2 * DEPTH), nn.Linear(WIDTH, WIDTH)
        self.q_norm, self.k_norm = RmsNorm(DEPTH), RmsNorm(DEPTH)

    def forward(self, x):
        batch, length, _ = x.shape
        q = self.q_norm(self.q(x).view(batch, length, HEADS, DEPTH).transpose(1, 2))
        k, v = self.kv(x).view(batch, length, 2, 1, DEPTH).permute(2, 0, 3, 1, 4).unbind(0)
        k = self.k_norm(k)
        distance = torch.arange(length)[:, None] - torch.arange(length)[None, :]
        mask = (distance < 0) | (distance >= 4)
        scores = (q @ k.transpose(-1, -2) / math.sqrt(DEPTH)).masked_fill(mask, float("-inf"))
        y = torch.softmax(scores.float(), -1).to(x.dtype) @ v
        return self.proj(y.transpose(1, 2).reshape(batch, length, WIDTH))


class LinearBiasAttention(nn.Module):
    """ALiBi: what is added to the scores falls with the distance, by head."""

    def __init__(self):
        super().__init__()
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, HEADS, 3, DEPTH).unbind(3)
        slopes = torch.tensor([2.0 ** -(h + 1) for h in range(HEADS)])
        bias = slopes[:, None, None] * torch.arange(length)[None, None, :]
        scores = torch.einsum("bqhd,bkhd->bhqk", q, k) * DEPTH ** -0.5 + bias
        mask = torch.ones(length, length, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(mask, torch.finfo(x.dtype).min)
        shifted = scores - scores.amax(-1, keepdim=True)
        weights = shifted.exp() / shifted.exp().sum(-1, keepdim=True)
        return self.proj(torch.einsum("bhqk,bkhd->bqhd", weights, v).flatten(2))


class LibraryAttention(nn.Module):
    """torch.nn.MultiheadAttention with a causal mask, positions first."""

    def __init__(self):
        super().__init__()
        self.inner = nn.MultiheadAttention(WIDTH, HEADS)

    def forward(self, x):
        x = x.transpose(0, 1)
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[0])
        return self.inner(x, x, x, attn_mask=mask, need_weights=False)[0].transpose(0, 1)


class DividedNorm(nn.Module):
    """RmsNorm by division, with x * x."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x):
        return x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-5) * self.weight


class OnePlusNorm(nn.Module):
    """Gemma's: the scale is one plus the weight."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(WIDTH))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * (1.0 + self.weight)


class Gated(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate_proj, self.up_proj = nn.Linear(WIDTH, 2 * WIDTH, bias=False), nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.down_proj = nn.Linear(2 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        return self.down_proj(functional.silu(self.gate_proj(x)) * self.up_proj(x))


class Dense(nn.Module):
    def __init__(self, activation, linear=nn.Linear):
        super().__init__()
        self.fc, self.proj, self.activation = linear(WIDTH, 4 * WIDTH), linear(4 * WIDTH, WIDTH), activation

    def forward(self, x):
        return self.proj(self.activation(self.fc(x)))


def quick_gelu(x):
    return x * torch.sigmoid(1.702 * x)


class Block(nn.Module):
    def __init__(self, norm, attention, mlp):
        super().__init__()
        self.ln_1, self.attn, self.ln_2, self.mlp = norm(), attention(), norm(), mlp()

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Model(nn.Module):
    def __init__(self, norm, attention, mlp, layers=2):
        super().__init__()
        self.h = nn.Sequential(*(Block(norm, attention, mlp) for _ in range(layers)))
        self.ln_f, self.head = norm(), nn.Linear(WIDTH, 50, bias=False)
        # Weights that differ, so that no exporter takes equal tensors for one.
        generator = torch.Generator().manual_seed(1)
        for parameter in self.parameters():
            with torch.no_grad():
                parameter += 0.02 * torch.randn(parameter.shape, generator=generator)

    def forward(self, x):
        return self.head(self.ln_f(self.h(x)))


def layer_norm():
    return nn.LayerNorm(WIDTH)


def rms_norm():
    return RmsNorm(WIDTH)


def buffer_attention(persistent=True):
    """Products and softmax in the open, the causal mask a buffer that is sliced."""
    return MinAttention(0.1, True, WIDTH, HEADS, 2 * LENGTH, persistent)


MODELS = {
    "fused": lambda: Model(layer_norm, FusedAttention, lambda: Dense(nn.GELU())),
    "fused-dropout": lambda: Model(layer_norm, lambda: FusedAttention(dropout=0.1), lambda: Dense(nn.GELU())),
    "fused-mask": lambda: Model(layer_norm, lambda: FusedAttention(masked=True), lambda: Dense(nn.ReLU())),
    "buffer": lambda: Model(layer_norm, buffer_attention, lambda: Dense(nn.GELU(approximate="tanh"))),
    "buffer-unsaved": lambda: Model(layer_norm, lambda: buffer_attention(persistent=False), lambda: Dense(nn.GELU())),
    "minimum": lambda: Model(layer_norm, MinimumAttention, lambda: Dense(new_gelu, Conv1D)),
    "einsum": lambda: Model(DividedNorm, EinsumAttention, lambda: Dense(quick_gelu)),
    "batched": lambda: Model(layer_norm, BatchedAttention, lambda: Dense(nn.ReLU())),
    "grouped": lambda: Model(rms_norm, GroupedAttention, Gated),
    "grouped-open": lambda: Model(lambda: nn.RMSNorm(WIDTH), lambda: GroupedAttention(fused=False), Gated),
    "partial-rotary": lambda: Model(OnePlusNorm, lambda: GroupedAttention(groups=4, rotary=DEPTH // 2), Gated),
    "padded": lambda: Model(layer_norm, lambda: PaddedAttention(boolean=True), lambda: Dense(nn.SiLU())),
    "padded-minimum": lambda: Model(layer_norm, lambda: PaddedAttention(boolean=False), lambda: Dense(nn.SiLU())),
    "normed": lambda: Model(rms_norm, NormedAttention, Gated),
    "linear-bias": lambda: Model(layer_norm, LinearBiasAttention, lambda: Dense(nn.GELU())),
    "library": lambda: Model(layer_norm, LibraryAttention, lambda: Dense(nn.GELU())),
    "interleaved": lambda: Model(rms_norm, InterleavedAttention, Gated),
}


def sample(batch=2):
    return torch.randn(batch, LENGTH, WIDTH, generator=torch.Generator().manual_seed(0))
