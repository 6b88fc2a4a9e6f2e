"""Matrix products and attention of GPT-2 124M by PyTorch on a card, as one line of JSON: TFLOP/s of each shape, forward, of both gradients; a
vocabulary of 50257 beside one of 50304; attention by each of PyTorch's libraries, deterministic and not; the card's properties and the versions of
its libraries.

    products.py [--tokens 65536]

The median of 7 of each, by events, on random data. Exit 77, with the reason: there is no PyTorch or no card.
"""
import argparse
import json
import statistics
import sys

try:
    import torch
except ImportError as error:
    print(f"no PyTorch: {error}")
    sys.exit(77)

REPEATS = 7
# What a token passes through: name, inputs, outputs.
LAYERS = {"qkv": (768, 2304), "projection": (768, 768), "expand": (768, 3072), "contract": (3072, 768), "head 50304": (768, 50304), "head 50257": (768, 50257)}


def seconds(function):
    function()
    taken = []
    for _ in range(REPEATS):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        function()
        end.record()
        end.synchronize()
        taken.append(start.elapsed_time(end) * 1e-3)
    return statistics.median(taken)


def product(m, k, n, dtype, transpose_a, transpose_b):
    a = torch.randn((k, m) if transpose_a else (m, k), device="cuda", dtype=dtype)
    b = torch.randn((n, k) if transpose_b else (k, n), device="cuda", dtype=dtype)
    a, b = a.t() if transpose_a else a, b.t() if transpose_b else b
    taken = seconds(lambda: a @ b)
    return {"m": m, "k": k, "n": n, "seconds": taken, "tflops": 2 * m * k * n / taken * 1e-12}


def layer(tokens, inputs, outputs, dtype):
    """y = x Wᵀ, dx = dy W, dW = dyᵀ x."""
    return {"forward": product(tokens, inputs, outputs, dtype, False, True), "dx": product(tokens, outputs, inputs, dtype, False, False),
            "dw": product(outputs, tokens, inputs, dtype, True, False)}


def attention(backend, deterministic, batch=32, heads=12, length=1024, width=64):
    """Causal, bf16. FLOP of the pairs that the mask allows: two products forward, five backward."""
    query, key, value = (torch.randn((batch, heads, length, width), device="cuda", dtype=torch.bfloat16, requires_grad=True) for _ in range(3))
    torch.use_deterministic_algorithms(deterministic)

    def forward():
        with torch.nn.attention.sdpa_kernel(backend):
            return torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)

    try:
        out = forward()
        grad = torch.randn_like(out)
        taken = {"forward": seconds(forward), "backward": seconds(lambda: torch.autograd.grad(out, (query, key, value), grad, retain_graph=True))}
    except RuntimeError as error:
        return {"failed": str(error).strip().splitlines()[0]}
    finally:
        torch.use_deterministic_algorithms(False)
    product_flops = 2 * batch * heads * width * length * (length + 1) / 2
    return {part: {"seconds": taken[part], "tflops": products * product_flops / taken[part] * 1e-12} for part, products in (("forward", 2), ("backward", 5))}


def all_attention():
    backends = torch.nn.attention.SDPBackend
    return {f"{name}{', deterministic' if deterministic else ''}": attention(backend, deterministic)
            for name, backend in (("flash", backends.FLASH_ATTENTION), ("cudnn", backends.CUDNN_ATTENTION)) for deterministic in (False, True)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tokens", type=int, default=65536)
    tokens = parser.parse_args().tokens
    if not torch.cuda.is_available():
        print("PyTorch sees no card")
        return 77
    card = torch.cuda.get_device_properties(0)
    properties = {name: getattr(card, name) for name in dir(card) if not name.startswith("_") and isinstance(getattr(card, name), (int, str, float))}
    bf16 = {name: layer(tokens, *sizes, torch.bfloat16) for name, sizes in LAYERS.items()}
    f32 = {name: layer(tokens // 8, *sizes, torch.float32) for name, sizes in LAYERS.items() if not name.startswith("head")}
    square = product(8192, 8192, 8192, torch.bfloat16, False, False)
    a, b = (torch.empty(1 << 30, dtype=torch.uint8, device="cuda") for _ in range(2))
    print(json.dumps({"torch": torch.__version__, "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version(), "properties": properties,
                      "copy_bytes_per_second": 2 * a.numel() / seconds(lambda: b.copy_(a)), "square_8192": square, "bf16": bf16, "f32": f32, "attention": all_attention()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
