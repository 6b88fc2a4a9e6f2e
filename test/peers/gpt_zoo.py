"""GPTs as people write them in PyTorch: the same architecture family in each of the dialects that are around. All are
small; widths, heads, vocabulary and positions are pairwise different numbers, so that a confusion of two is an error.

`MODELS[name]` is (make, inputs): `make()` gives the module, `inputs(batch, positions)` a dict of example tensors.
"""
import math

import torch
import torch.nn.functional as F
from torch import nn

VOCABULARY, WIDTH, HEADS, LAYERS, POSITIONS = 29, 24, 4, 2, 10


# nanoGPT: a fused projection, F.scaled_dot_product_attention, learned positions, a tied head, dropout.

class NanoAttention(nn.Module):
    def __init__(self, dropout, bias, width=WIDTH, heads=HEADS):
        super().__init__()
        self.c_attn = nn.Linear(width, 3 * width, bias=bias)
        self.c_proj = nn.Linear(width, width, bias=bias)
        self.resid_dropout = nn.Dropout(dropout)
        self.dropout, self.width, self.heads = dropout, width, heads

    def attend(self, q, k, v, T):
        return F.scaled_dot_product_attention(q, k, v, attn_mask=None, dropout_p=self.dropout if self.training else 0, is_causal=True)

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(self.width, dim=2)
        k = k.view(B, T, self.heads, C // self.heads).transpose(1, 2)
        q = q.view(B, T, self.heads, C // self.heads).transpose(1, 2)
        v = v.view(B, T, self.heads, C // self.heads).transpose(1, 2)
        y = self.attend(q, k, v, T)
        return self.resid_dropout(self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C)))


class MinAttention(NanoAttention):
    """minGPT, and nanoGPT without flash attention: a mask buffer, masked_fill and softmax."""

    def __init__(self, dropout, bias, width=WIDTH, heads=HEADS, positions=POSITIONS + 2, persistent=True):
        super().__init__(dropout, bias, width, heads)
        self.attn_dropout = nn.Dropout(dropout)
        self.register_buffer("bias", torch.tril(torch.ones(positions, positions)).view(1, 1, positions, positions), persistent=persistent)

    def attend(self, q, k, v, T):
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        return self.attn_dropout(F.softmax(att, dim=-1)) @ v


class NewGelu(nn.Module):
    def forward(self, x):
        return 0.5 * x * (1.0 + torch.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))))


class NanoLayerNorm(nn.Module):
    def __init__(self, width, bias):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None

    def forward(self, x):
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, 1e-5)


class NanoMlp(nn.Module):
    def __init__(self, dropout, bias, gelu):
        super().__init__()
        self.c_fc = nn.Linear(WIDTH, 4 * WIDTH, bias=bias)
        self.gelu = gelu()
        self.c_proj = nn.Linear(4 * WIDTH, WIDTH, bias=bias)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.dropout(self.c_proj(self.gelu(self.c_fc(x))))


class NanoBlock(nn.Module):
    def __init__(self, attention, dropout, bias, gelu):
        super().__init__()
        self.ln_1 = NanoLayerNorm(WIDTH, bias)
        self.attn = attention(dropout, bias)
        self.ln_2 = NanoLayerNorm(WIDTH, bias)
        self.mlp = NanoMlp(dropout, bias, gelu)

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class NanoGpt(nn.Module):
    def __init__(self, attention=NanoAttention, dropout=0.0, bias=True, gelu=nn.GELU, tied=True):
        super().__init__()
        self.transformer = nn.ModuleDict(dict(
            wte=nn.Embedding(VOCABULARY, WIDTH),
            wpe=nn.Embedding(POSITIONS + 2, WIDTH),
            drop=nn.Dropout(dropout),
            h=nn.ModuleList([NanoBlock(attention, dropout, bias, gelu) for _ in range(LAYERS)]),
            ln_f=NanoLayerNorm(WIDTH, bias),
        ))
        self.lm_head = nn.Linear(WIDTH, VOCABULARY, bias=False)
        if tied:
            self.transformer.wte.weight = self.lm_head.weight

    def forward(self, idx):
        b, t = idx.size()
        pos = torch.arange(0, t, dtype=torch.long, device=idx.device)
        x = self.transformer.drop(self.transformer.wte(idx) + self.transformer.wpe(pos))
        for block in self.transformer.h:
            x = block(x)
        return self.lm_head(self.transformer.ln_f(x))


class LossInside(nn.Module):
    """forward(idx, targets) gives the loss, as training scripts have it: `kind = "output"`."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, idx, targets):
        logits = self.model(idx)
        return F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)


class PickedLoss(nn.Module):
    """The same loss by log_softmax and gather."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, idx, targets):
        scores = F.log_softmax(self.model(idx), dim=-1)
        return -scores.gather(-1, targets.unsqueeze(-1)).squeeze(-1).mean()


# Llama: RMSNorm, rotary embedding, grouped-query attention, SwiGLU, no biases.

class RmsNorm(nn.Module):
    def __init__(self, width, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)).type_as(x) * self.weight


def rotate_half(x):
    a, b = x.chunk(2, dim=-1)
    return torch.cat((-b, a), dim=-1)


def rotary_half(x, cos, sin):
    return x * cos + rotate_half(x) * sin


def rotary_pairs(x, cos, sin):
    """x [B, H, T, D]; pairs of neighbours; cos and sin [T, D / 2]."""
    pairs = x.reshape(*x.shape[:-1], -1, 2)
    a, b = pairs[..., 0], pairs[..., 1]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2)


class LlamaAttention(nn.Module):
    def __init__(self, repeat, interleaved, groups):
        super().__init__()
        self.repeat, self.interleaved, self.groups = repeat, interleaved, groups
        head = WIDTH // HEADS
        self.wq = nn.Linear(WIDTH, WIDTH, bias=False)
        self.wk = nn.Linear(WIDTH, groups * head, bias=False)
        self.wv = nn.Linear(WIDTH, groups * head, bias=False)
        self.wo = nn.Linear(WIDTH, WIDTH, bias=False)

    def forward(self, x, cos, sin):
        B, T, C = x.shape
        head = C // HEADS
        q = self.wq(x).view(B, T, HEADS, head).transpose(1, 2)
        k = self.wk(x).view(B, T, self.groups, head).transpose(1, 2)
        v = self.wv(x).view(B, T, self.groups, head).transpose(1, 2)
        rotate = rotary_pairs if self.interleaved else rotary_half
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        options = dict(is_causal=True)
        copies = HEADS // self.groups
        if self.repeat == "interleave":
            k, v = k.repeat_interleave(copies, dim=1), v.repeat_interleave(copies, dim=1)
        elif self.repeat == "expand":
            k = k[:, :, None].expand(B, self.groups, copies, T, head).reshape(B, HEADS, T, head)
            v = v[:, :, None].expand(B, self.groups, copies, T, head).reshape(B, HEADS, T, head)
        else:
            options["enable_gqa"] = True
        y = F.scaled_dot_product_attention(q, k, v, **options)
        return self.wo(y.transpose(1, 2).reshape(B, T, C))


class SwiGlu(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1 = nn.Linear(WIDTH, 56, bias=False)
        self.w2 = nn.Linear(56, WIDTH, bias=False)
        self.w3 = nn.Linear(WIDTH, 56, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class LlamaBlock(nn.Module):
    def __init__(self, norm, *arguments):
        super().__init__()
        self.attention = LlamaAttention(*arguments)
        self.feed_forward = SwiGlu()
        self.attention_norm, self.ffn_norm = norm(WIDTH), norm(WIDTH)

    def forward(self, x, cos, sin):
        h = x + self.attention(self.attention_norm(x), cos, sin)
        return h + self.feed_forward(self.ffn_norm(h))


class Llama(nn.Module):
    """`angles`: cos and sin are computed from a buffer of inverse frequencies, or sliced from stored tables."""

    def __init__(self, norm=RmsNorm, repeat="interleave", interleaved=False, groups=2, angles="computed"):
        super().__init__()
        self.interleaved, self.angles = interleaved, angles
        self.tok_embeddings = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList([LlamaBlock(norm, repeat, interleaved, groups) for _ in range(LAYERS)])
        self.norm = norm(WIDTH)
        self.output = nn.Linear(WIDTH, VOCABULARY, bias=False)
        head = WIDTH // HEADS
        inverse = 1.0 / 10000 ** (torch.arange(0, head, 2).float() / head)
        self.register_buffer("inv_freq", inverse, persistent=False)
        table = torch.outer(torch.arange(POSITIONS + 2).float(), inverse)
        if not interleaved:
            table = torch.cat((table, table), dim=-1)
        if angles == "stored":
            self.register_buffer("cos", table.cos())
            self.register_buffer("sin", table.sin())

    def forward(self, tokens):
        T = tokens.shape[1]
        x = self.tok_embeddings(tokens)
        if self.angles == "stored":
            cos, sin = self.cos[:T], self.sin[:T]
        else:
            angles = torch.outer(torch.arange(T, device=x.device).float(), self.inv_freq)
            angles = angles if self.interleaved else torch.cat((angles, angles), dim=-1)
            cos, sin = angles.cos(), angles.sin()
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.output(self.norm(x))


# GPT-NeoX: attention and MLP read the same input; a part of each head is rotated; one fused projection per head.

class NeoxBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.input_layernorm = nn.LayerNorm(WIDTH)
        self.post_attention_layernorm = nn.LayerNorm(WIDTH)
        self.query_key_value = nn.Linear(WIDTH, 3 * WIDTH)
        self.dense = nn.Linear(WIDTH, WIDTH)
        self.dense_h_to_4h = nn.Linear(WIDTH, 4 * WIDTH)
        self.dense_4h_to_h = nn.Linear(4 * WIDTH, WIDTH)
        self.rotated = 4
        self.register_buffer("inv_freq", 1.0 / 10000 ** (torch.arange(0, 4, 2).float() / 4))

    def attention(self, x):
        B, T, C = x.shape
        head = C // HEADS
        q, k, v = self.query_key_value(x).view(B, T, HEADS, 3 * head).permute(0, 2, 1, 3).chunk(3, dim=-1)
        angles = torch.einsum("i,j->ij", torch.arange(T, device=x.device, dtype=torch.float32), self.inv_freq)
        angles = torch.cat((angles, angles), dim=-1)[None, None]
        cos, sin = angles.cos(), angles.sin()
        r = self.rotated
        q = torch.cat((rotary_half(q[..., :r], cos, sin), q[..., r:]), dim=-1)
        k = torch.cat((rotary_half(k[..., :r], cos, sin), k[..., r:]), dim=-1)
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(head)
        causal = torch.ones(T, T, dtype=torch.bool, device=x.device).tril()
        scores = torch.where(causal, scores, torch.finfo(scores.dtype).min)
        y = torch.matmul(scores.softmax(dim=-1), v)
        return self.dense(y.permute(0, 2, 1, 3).reshape(B, T, C))

    def forward(self, x):
        hidden = F.gelu(self.dense_h_to_4h(self.post_attention_layernorm(x)), approximate="tanh")
        return x + self.attention(self.input_layernorm(x)) + self.dense_4h_to_h(hidden)


class Neox(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed_in = nn.Embedding(VOCABULARY, WIDTH)
        self.layers = nn.ModuleList([NeoxBlock() for _ in range(LAYERS)])
        self.final_layer_norm = nn.LayerNorm(WIDTH)
        self.embed_out = nn.Linear(WIDTH, VOCABULARY, bias=False)

    def forward(self, input_ids):
        x = self.embed_in(input_ids)
        for layer in self.layers:
            x = layer(x)
        return self.embed_out(self.final_layer_norm(x))


# PyTorch's own modules.

class TorchEncoder(nn.Module):
    """nn.TransformerEncoder with a causal mask; positions are a parameter that is added."""

    def __init__(self, norm_first=True, activation="gelu", dropout=0.0):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Parameter(torch.randn(1, POSITIONS + 2, WIDTH) * 0.02)
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout, activation, batch_first=True,
                                           norm_first=norm_first)
        self.encoder = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, x):
        T = x.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(T)
        h = self.embedding(x) * math.sqrt(WIDTH) + self.positions[:, :T]
        return self.head(self.encoder(h, mask=mask, is_causal=True))


class TorchAttention(nn.Module):
    """nn.MultiheadAttention with a boolean mask that is a buffer."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH) for _ in range(LAYERS)])
        self.attentions = nn.ModuleList([nn.MultiheadAttention(WIDTH, HEADS, batch_first=True) for _ in range(LAYERS)])
        self.head = nn.Linear(WIDTH, VOCABULARY)
        self.register_buffer("mask", torch.triu(torch.ones(POSITIONS, POSITIONS, dtype=torch.bool), 1))

    def forward(self, x):
        h = self.embedding(x)
        for norm, attention in zip(self.norms, self.attentions):
            y = norm(h)
            h = h + attention(y, y, y, attn_mask=self.mask[: x.shape[1], : x.shape[1]], need_weights=False)[0]
        return self.head(h)


# GPTs of courses: one module per head, concatenated.

class Head(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.key = nn.Linear(WIDTH, size, bias=False)
        self.query = nn.Linear(WIDTH, size, bias=False)
        self.value = nn.Linear(WIDTH, size, bias=False)
        self.register_buffer("tril", torch.tril(torch.ones(POSITIONS, POSITIONS)))

    def forward(self, x):
        T = x.shape[1]
        k, q = self.key(x), self.query(x)
        wei = q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5
        wei = wei.masked_fill(self.tril[:T, :T] == 0, float("-inf"))
        return F.softmax(wei, dim=-1) @ self.value(x)


class CourseBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleList([Head(WIDTH // HEADS) for _ in range(HEADS)])
        self.proj = nn.Linear(WIDTH, WIDTH)
        self.net = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.ReLU(), nn.Linear(4 * WIDTH, WIDTH))
        self.ln1, self.ln2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)

    def forward(self, x):
        y = self.ln1(x)
        x = x + self.proj(torch.cat([h(y) for h in self.heads], dim=-1))
        return x + self.net(self.ln2(x))


class Course(nn.Module):
    def __init__(self):
        super().__init__()
        self.token_embedding_table = nn.Embedding(VOCABULARY, WIDTH)
        self.position_embedding_table = nn.Embedding(POSITIONS, WIDTH)
        self.blocks = nn.Sequential(*[CourseBlock() for _ in range(LAYERS)])
        self.ln_f = nn.LayerNorm(WIDTH)
        self.lm_head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, idx):
        x = self.token_embedding_table(idx) + self.position_embedding_table(torch.arange(idx.shape[1]))
        return self.lm_head(self.ln_f(self.blocks(x)))


# Hugging Face.

class LogitsOf(nn.Module):
    """The tensor of a Hugging Face model's output; `names` are its inputs."""

    def __init__(self, model, names):
        super().__init__()
        self.model, self.names = model, names

    def forward(self, input_ids, extra=None):
        arguments = {name: value for name, value in zip(self.names, (input_ids, extra))}
        return self.model(**arguments, use_cache=False).logits


def hugging_face(kind, names=("input_ids",), attention="sdpa", **options):
    def make():
        import transformers
        common = dict(vocab_size=VOCABULARY, attn_implementation=attention)
        if kind == "gpt2":
            config = transformers.GPT2Config(n_positions=POSITIONS + 2, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, **common,
                                             **({"resid_pdrop": 0, "embd_pdrop": 0, "attn_pdrop": 0} | options))
            model = transformers.GPT2LMHeadModel(config)
        elif kind == "neox":
            config = transformers.GPTNeoXConfig(hidden_size=WIDTH, intermediate_size=56, num_hidden_layers=LAYERS,
                                                num_attention_heads=HEADS, max_position_embeddings=POSITIONS + 2,
                                                hidden_dropout=0, attention_dropout=0, **common, **options)
            model = transformers.GPTNeoXForCausalLM(config)
        elif kind in ("opt", "bloom", "falcon"):
            name = {"opt": "OPT", "bloom": "Bloom", "falcon": "Falcon"}[kind]
            sizes = {"opt": dict(num_hidden_layers=LAYERS, num_attention_heads=HEADS, ffn_dim=56, dropout=0,
                                 max_position_embeddings=POSITIONS + 2, word_embed_proj_dim=WIDTH, pad_token_id=None),
                     "bloom": dict(n_layer=LAYERS, n_head=HEADS, pad_token_id=None),
                     "falcon": dict(num_hidden_layers=LAYERS, num_attention_heads=HEADS)}[kind]
            config = getattr(transformers, name + "Config")(hidden_size=WIDTH, bos_token_id=1, eos_token_id=2,
                                                            **common, **sizes, **options)
            model = getattr(transformers, name + "ForCausalLM")(config)
        else:
            name = {"phi3": "Phi3", "llama": "Llama", "mistral": "Mistral", "qwen2": "Qwen2", "qwen3": "Qwen3", "gemma": "Gemma"}[kind]
            config = getattr(transformers, name + "Config")(
                hidden_size=WIDTH, intermediate_size=56, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
                num_key_value_heads=2, max_position_embeddings=POSITIONS + 2, pad_token_id=None, bos_token_id=1, eos_token_id=2,
                head_dim=WIDTH // HEADS, **common, **options)
            model = getattr(transformers, name + "ForCausalLM")(config)
        return LogitsOf(model, names)
    return make


def tokens(name="idx"):
    return lambda batch, positions: {name: torch.randint(0, VOCABULARY, (batch, positions))}


def tokens_and_targets(batch, positions):
    draw = lambda: torch.randint(0, VOCABULARY, (batch, positions))
    return {"idx": draw(), "targets": draw()}


def tokens_and_mask(batch, positions):
    mask = torch.ones(batch, positions, dtype=torch.int64)
    mask[0, positions - 3:] = 0
    return {"input_ids": torch.randint(0, VOCABULARY, (batch, positions)), "extra": mask}


def tokens_and_positions(batch, positions):
    return {"input_ids": torch.randint(0, VOCABULARY, (batch, positions)),
            "extra": torch.arange(positions).expand(batch, positions).contiguous()}


def tanh_gelu():
    return nn.GELU(approximate="tanh")


MODELS = {
    "nano": (NanoGpt, tokens()),
    "nano-dropout": (lambda: NanoGpt(dropout=0.1, bias=False), tokens()),
    "nano-untied": (lambda: NanoGpt(tied=False, gelu=tanh_gelu), tokens()),
    "min": (lambda: NanoGpt(attention=MinAttention, gelu=NewGelu), tokens()),
    "min-dropout": (lambda: NanoGpt(attention=MinAttention, dropout=0.1, tied=False), tokens()),
    "nano-loss": (lambda: LossInside(NanoGpt()), tokens_and_targets),
    "nano-picked": (lambda: PickedLoss(NanoGpt()), tokens_and_targets),
    "llama": (Llama, tokens("tokens")),
    "llama-norm": (lambda: Llama(norm=nn.RMSNorm, repeat="expand", angles="stored"), tokens("tokens")),
    "llama-gqa": (lambda: Llama(repeat="gqa", interleaved=True), tokens("tokens")),
    "llama-pairs": (lambda: Llama(interleaved=True, groups=4, angles="stored"), tokens("tokens")),
    "neox": (Neox, tokens("input_ids")),
    "encoder": (TorchEncoder, tokens("x")),
    "encoder-post": (lambda: TorchEncoder(norm_first=False, activation="relu", dropout=0.1), tokens("x")),
    "mha": (TorchAttention, tokens("x")),
    "course": (Course, tokens()),
    "hf-gpt2": (hugging_face("gpt2"), tokens("input_ids")),
    "hf-gpt2-mask": (hugging_face("gpt2", ("input_ids", "attention_mask")), tokens_and_mask),
    "hf-gpt2-positions": (hugging_face("gpt2", ("input_ids", "position_ids"), attention="eager"), tokens_and_positions),
    "hf-llama": (hugging_face("llama"), tokens("input_ids")),
    "hf-llama-mask": (hugging_face("llama", ("input_ids", "attention_mask")), tokens_and_mask),
    "hf-llama-eager": (hugging_face("llama", ("input_ids", "position_ids"), attention="eager", tie_word_embeddings=True),
                       tokens_and_positions),
    "hf-neox": (hugging_face("neox"), tokens("input_ids")),
    "hf-qwen3": (hugging_face("qwen3"), tokens("input_ids")),
    "hf-mistral": (hugging_face("mistral"), tokens("input_ids")),
    "hf-opt": (hugging_face("opt"), tokens("input_ids")),
    "hf-bloom": (hugging_face("bloom", attention="eager"), tokens("input_ids")),
    "hf-falcon-alibi": (hugging_face("falcon", attention="eager", alibi=True), tokens("input_ids")),
    "hf-phi3": (hugging_face("phi3"), tokens("input_ids")),
}

# The rarer spellings share this file's sizes.
from gpt_variants import VARIANTS  # noqa: E402

# An optimizing export has the biases of all distances instead of the trained ones of the buckets.
TAKEN_APART = {"distances"}
# The TorchScript exporter writes its own number of bfloat16 into a Cast, which is ONNX's of COMPLEX128: no valid file.
NOT_BY_TORCHSCRIPT = {"hf-falcon-alibi"}
MODELS |= {name: (make, tokens("tokens")) for name, make in VARIANTS.items()}
