"""JAX: one jitted step with donated state; AdamW written out, as optax computes it; bf16 by casting weights for the products.

    jax_jit.py FOLDER f32|bf16
"""
import itertools

import protocol

protocol.limit_threads()
import jax
import jax.numpy as jnp
from safetensors.numpy import load_file

import problem

folder, precision, row = problem.arguments()
LOW = jnp.bfloat16 if precision == "bf16" else jnp.float32
weights = {name: jnp.asarray(tensor) for name, tensor in load_file(folder / "weights.safetensors").items()}


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


def step(p, m, v, t, ids, targets):
    loss, gradients = jax.value_and_grad(loss_of)(p, ids, targets)
    t = t + 1
    beta1, beta2 = problem.BETAS
    m = jax.tree.map(lambda m, g: beta1 * m + (1 - beta1) * g, m, gradients)
    v = jax.tree.map(lambda v, g: beta2 * v + (1 - beta2) * g * g, v, gradients)

    def update(p, m, v):
        direction = (m / (1 - beta1**t)) / (jnp.sqrt(v / (1 - beta2**t)) + problem.EPSILON)
        return p - problem.LEARNING_RATE * (direction + problem.WEIGHT_DECAY * p)

    return jax.tree.map(update, p, m, v), m, v, t, loss


step = jax.jit(step, donate_argnums=(0, 1, 2, 3))
state = [weights, jax.tree.map(jnp.zeros_like, weights), jax.tree.map(jnp.zeros_like, weights), jnp.float32(0)]
del weights
ids, targets = (jnp.asarray(part.astype("int32")) for part in problem.batches(folder, row))
data = itertools.cycle(list(zip(ids, targets)))


def train(steps):
    global state
    for x, y in itertools.islice(data, steps):
        *state, loss = step(*state, x, y)
    return float(jax.block_until_ready(loss))


protocol.serve(train, jax.__version__, problem.WARM_UP, problem.CHECKED)
