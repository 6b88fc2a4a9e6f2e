"""Small GPTs for the training references, each a dialect that people write: [batch, LENGTH] token numbers to logits."""
import math

import torch
import torch.nn.functional as F
from torch import nn

VOCABULARY, LENGTH, WIDTH, HEADS, LAYERS = 29, 12, 16, 2, 2
DEPTH = WIDTH // HEADS


class FusedAttention(nn.Module):
    """nanoGPT's: one projection for query, key and value, scaled_dot_product_attention."""

    def __init__(self, dropout=0.0):
        super().__init__()
        self.c_attn, self.c_proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.dropout = dropout

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = (part.view(batch, length, HEADS, DEPTH).transpose(1, 2) for part in self.c_attn(x).split(WIDTH, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=self.dropout if self.training else 0.0)
        return self.c_proj(y.transpose(1, 2).contiguous().view(batch, length, WIDTH))


class OpenAttention(nn.Module):
    """Products and softmax in the open, the causal mask a buffer; no biases."""

    def __init__(self):
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(4))
        self.register_buffer("mask", torch.tril(torch.ones(LENGTH, LENGTH)).view(1, 1, LENGTH, LENGTH))

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = (part(x).view(batch, length, HEADS, DEPTH).transpose(1, 2) for part in (self.query, self.key, self.value))
        scores = (q @ k.transpose(-2, -1)) / math.sqrt(DEPTH)
        scores = scores.masked_fill(self.mask[:, :, :length, :length] == 0, float("-inf"))
        y = F.softmax(scores, dim=-1) @ v
        return self.out(y.transpose(1, 2).contiguous().view(batch, length, WIDTH))


class Conv1D(nn.Module):
    """A linear layer with its weight the other way round, through addmm on flattened rows (Hugging Face's GPT-2)."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(inputs, outputs) * 0.2), nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return torch.addmm(self.bias, x.view(-1, x.size(-1)), self.weight).view(*x.shape[:-1], -1)


class MaskedAttention(nn.Module):
    """Hugging Face's: the smallest number instead of -inf, an attention mask added to the scores."""

    def __init__(self):
        super().__init__()
        self.c_attn, self.c_proj = Conv1D(WIDTH, 3 * WIDTH), Conv1D(WIDTH, WIDTH)

    def forward(self, x, mask):
        batch, length, _ = x.shape
        q, k, v = (part.view(batch, length, HEADS, DEPTH).permute(0, 2, 1, 3) for part in self.c_attn(x).split(WIDTH, dim=2))
        scores = torch.matmul(q, k.transpose(-1, -2)) / torch.full([], DEPTH ** 0.5, dtype=x.dtype)
        smallest = torch.finfo(x.dtype).min
        causal = torch.ones(length, length, dtype=torch.bool, device=x.device).tril().view(1, 1, length, length)
        scores = torch.where(causal, scores, torch.full([], smallest, dtype=x.dtype))
        scores = scores + (1.0 - mask[:, None, None, :].to(x.dtype)) * smallest
        y = torch.matmul(F.softmax(scores, dim=-1), v)
        return self.c_proj(y.permute(0, 2, 1, 3).contiguous().view(batch, length, WIDTH))


def new_gelu(x):
    return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


class ConvDense(nn.Module):
    def __init__(self):
        super().__init__()
        self.c_fc, self.c_proj = Conv1D(WIDTH, 4 * WIDTH), Conv1D(4 * WIDTH, WIDTH)

    def forward(self, x):
        return self.c_proj(new_gelu(self.c_fc(x)))


def rotate_half(x):
    return torch.cat((-x[..., x.shape[-1] // 2:], x[..., :x.shape[-1] // 2]), dim=-1)


class GroupedAttention(nn.Module):
    """Llama's: rotary positions, one key head for all query heads."""

    def __init__(self):
        super().__init__()
        self.q_proj = nn.Linear(WIDTH, WIDTH, bias=False)
        self.k_proj, self.v_proj = nn.Linear(WIDTH, DEPTH, bias=False), nn.Linear(WIDTH, DEPTH, bias=False)
        self.o_proj = nn.Linear(WIDTH, WIDTH, bias=False)
        frequencies = 1.0 / (10000.0 ** (torch.arange(0, DEPTH, 2).float() / DEPTH))
        self.register_buffer("inv_freq", frequencies, persistent=False)

    def forward(self, x):
        batch, length, _ = x.shape
        q = self.q_proj(x).view(batch, length, HEADS, DEPTH).transpose(1, 2)
        k, v = (part(x).view(batch, length, 1, DEPTH).transpose(1, 2) for part in (self.k_proj, self.v_proj))
        angles = torch.outer(torch.arange(length, device=x.device).to(x.dtype), self.inv_freq.to(x.dtype))
        angles = torch.cat((angles, angles), dim=-1)
        cos, sin = angles.cos(), angles.sin()
        q, k = (part * cos + rotate_half(part) * sin for part in (q, k))
        k, v = (part.expand(batch, HEADS, length, DEPTH) for part in (k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(y.transpose(1, 2).reshape(batch, length, WIDTH))


class RootMeanSquareNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))


class Dense(nn.Module):
    def __init__(self, activation):
        super().__init__()
        self.c_fc, self.c_proj, self.activation = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH), activation

    def forward(self, x):
        return self.c_proj(self.activation(self.c_fc(x)))


class Gated(nn.Module):
    """SwiGLU."""

    def __init__(self):
        super().__init__()
        self.gate_proj, self.up_proj = nn.Linear(WIDTH, 2 * WIDTH, bias=False), nn.Linear(WIDTH, 2 * WIDTH, bias=False)
        self.down_proj = nn.Linear(2 * WIDTH, WIDTH, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Block(nn.Module):
    def __init__(self, norm, attention, mlp, dropout):
        super().__init__()
        self.ln_1, self.attn, self.ln_2, self.mlp = norm(WIDTH), attention(), norm(WIDTH), mlp()
        self.dropout = nn.Dropout(dropout) if dropout else nn.Identity()

    def forward(self, x, mask=None):
        normed = self.ln_1(x)
        x = x + self.dropout(self.attn(normed) if mask is None else self.attn(normed, mask))
        return x + self.dropout(self.mlp(self.ln_2(x)))


class GPT(nn.Module):
    def __init__(self, norm, attention, mlp, positions=True, tied=False, dropout=0.0):
        super().__init__()
        self.wte = nn.Embedding(VOCABULARY, WIDTH)
        self.wpe = nn.Embedding(LENGTH, WIDTH) if positions else None
        self.h = nn.ModuleList(Block(norm, attention, mlp, dropout) for _ in range(LAYERS))
        self.ln_f, self.lm_head = norm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)
        if tied:
            self.lm_head.weight = self.wte.weight
        # Norms and biases that are not all equal: no exporter may take two of them for one.
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.mul_(0.5 if parameter.ndim > 1 else 1.0).add_(torch.randn_like(parameter) * 0.05)

    def forward(self, ids, attention_mask=None):
        x = self.wte(ids)
        if self.wpe is not None:
            x = x + self.wpe(torch.arange(ids.shape[1], device=ids.device))
        for block in self.h:
            x = block(x, attention_mask)
        return self.lm_head(self.ln_f(x))


def nano(dropout=0.0):
    """nanoGPT: fused attention, learned positions, tanh GELU, a head tied to the embedding."""
    return GPT(nn.LayerNorm, lambda: FusedAttention(dropout), lambda: Dense(nn.GELU(approximate="tanh")), tied=True,
               dropout=dropout)


def course():
    """As courses write it: attention in the open, exact GELU, an untied head."""
    return GPT(nn.LayerNorm, OpenAttention, lambda: Dense(nn.GELU()))


def llama():
    """RMSNorm, rotary positions, grouped queries, SwiGLU."""
    return GPT(RootMeanSquareNorm, GroupedAttention, Gated, positions=False)


def tied_llama():
    """Smaller Llamas: the head is the embedding's table."""
    return GPT(RootMeanSquareNorm, GroupedAttention, Gated, positions=False, tied=True)


def masked():
    """Hugging Face's GPT-2: transposed linear layers, GELU written out, an attention mask for padded samples."""
    return GPT(nn.LayerNorm, MaskedAttention, ConvDense, tied=True)


MASK_FORMS = {
    "where-min": lambda scores, allowed: torch.where(allowed, scores, torch.finfo(scores.dtype).min),
    "where-1e30": lambda scores, allowed: scores.masked_fill(~allowed, -1e30),
    "where-1e9": lambda scores, allowed: scores.masked_fill(~allowed, -1e9),
    "where-1e4": lambda scores, allowed: scores.masked_fill(~allowed, -1e4),
    "add-min": lambda scores, allowed: scores + (1.0 - allowed.to(scores.dtype)) * torch.finfo(scores.dtype).min,
    "add-1e30": lambda scores, allowed: scores + (1.0 - allowed.to(scores.dtype)) * -1e30,
    "add-1e9": lambda scores, allowed: scores + (1.0 - allowed.to(scores.dtype)) * -1e9,
    "add-1e4": lambda scores, allowed: scores + (1.0 - allowed.to(scores.dtype)) * -1e4,
}


class FormedAttention(nn.Module):
    """Attention behind its norm, whose mask is written in one of the forms."""

    def __init__(self, form):
        super().__init__()
        self.norm, self.c_attn, self.c_proj = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.form = MASK_FORMS[form]

    def forward(self, x, allowed):
        batch, length, _ = x.shape
        q, k, v = (part.view(batch, length, HEADS, DEPTH).transpose(1, 2) for part in self.c_attn(self.norm(x)).split(WIDTH, dim=2))
        weights = F.softmax(self.form(q @ k.transpose(-2, -1) / math.sqrt(DEPTH), allowed), dim=-1)
        return self.c_proj((weights @ v).transpose(1, 2).reshape(batch, length, WIDTH))


class LeftPadded(nn.Module):
    """Every way to forbid keys by a number, one a layer, for samples that are padded at their beginning: the first queries have no key."""

    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.h = nn.ModuleList(FormedAttention(form) for form in MASK_FORMS)
        self.ln_f, self.lm_head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.1)

    def forward(self, ids, attention_mask):
        length = ids.shape[1]
        x = self.wte(ids) + self.wpe(torch.arange(length, device=ids.device))
        causal = torch.ones(length, length, dtype=torch.bool, device=ids.device).tril()
        allowed = causal & (attention_mask != 0)[:, None, None, :]
        for layer in self.h:
            x = x + layer(x, allowed)
        return self.lm_head(self.ln_f(x))


class HuggingFace(nn.Module):
    """Hugging Face's own GPT-2 as it draws its weights, with more positions than are used."""

    def __init__(self):
        super().__init__()
        import transformers  # only the references of this model need it
        self.model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
            vocab_size=VOCABULARY, n_positions=LENGTH + 4, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, resid_pdrop=0, embd_pdrop=0,
            attn_pdrop=0))

    def forward(self, ids):
        return self.model(input_ids=ids, use_cache=False).logits


@torch.no_grad()
def fresh(module):
    """`module` with norms of one and biases of zero, as layers start: equal values, which exporters merge."""
    for name, parameter in module.named_parameters():
        if parameter.ndim == 1:
            parameter.fill_(1 if name.endswith("weight") else 0)
    return module
