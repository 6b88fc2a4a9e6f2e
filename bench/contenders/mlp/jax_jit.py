"""JAX, jitted: jax_jit.py FOLDER"""
import with_jax  # before JAX itself: it limits the threads
import jax
import jax.numpy as jnp
from safetensors.numpy import load_file

import problem


def loss_of(p, x, y):
    hidden = jax.nn.relu(x @ p["0.weight"].T + p["0.bias"])
    logits = hidden @ p["2.weight"].T + p["2.bias"]
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], axis=1))


weights = {name: jnp.asarray(tensor) for name, tensor in load_file(problem.folder() / "weights.safetensors").items()}
with_jax.serve(problem, weights, loss_of, problem.batches())
