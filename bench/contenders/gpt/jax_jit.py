"""JAX, jitted; bf16 by casting weights for the products.

    jax_jit.py FOLDER f32|bf16
"""
import with_jax  # before JAX itself: it limits the threads
import jax
import jax.numpy as jnp
from safetensors.numpy import load_file

import problem

folder, precision, row = problem.arguments()
LOW = jnp.bfloat16 if precision == "bf16" else jnp.float32


def weights():
    return {name: jnp.asarray(tensor) for name, tensor in load_file(folder / "weights.safetensors").items()}


def norm(p, name, x):
    x = x.astype(jnp.float32)
    centred = x - x.mean(-1, keepdims=True)
    scale = jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5)
    return centred * scale * p[f"{name}.weight"] + p[f"{name}.bias"]


def linear(p, name, x):
    y = jnp.einsum("btc,oc->bto", x.astype(LOW), p[f"{name}.weight"].astype(LOW))
    return y + p[f"{name}.bias"].astype(LOW)


def block(p, name, x):
    batch, length, width = x.shape
    qkv = linear(p, f"{name}.attention.qkv", norm(p, f"{name}.norm_1", x))
    query, key, value = (part.reshape(batch, length, row["heads"], -1) for part in jnp.split(qkv, 3, axis=-1))
    y = jax.nn.dot_product_attention(query, key, value, is_causal=True).reshape(batch, length, width)
    x = x + linear(p, f"{name}.attention.projection", y)
    hidden = jax.nn.gelu(linear(p, f"{name}.expand", norm(p, f"{name}.norm_2", x)), approximate=True)
    return x + linear(p, f"{name}.contract", hidden)


def loss_of(p, ids, targets):
    x = p["tokens.weight"][ids] + p["positions.weight"][: ids.shape[1]]
    for layer in range(row["layers"]):
        x = block(p, f"blocks.{layer}", x)
    logits = jnp.einsum("btc,vc->btv", norm(p, "norm", x).astype(LOW), p["tokens.weight"].astype(LOW)).astype(jnp.float32)
    chosen = jnp.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
    return jnp.mean(jax.nn.logsumexp(logits, axis=-1) - chosen)


with_jax.serve(problem, weights(), loss_of, problem.batches(folder, row))
