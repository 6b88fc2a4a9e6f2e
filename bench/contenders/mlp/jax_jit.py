"""JAX, jitted."""
import with_jax  # before JAX itself: it limits the threads
import jax
import jax.numpy as jnp

import problem


def initial():
    keys = jax.random.split(jax.random.key(0), 2)
    sizes = [(problem.FEATURES, problem.HIDDEN), (problem.HIDDEN, problem.CLASSES)]
    return [(jax.random.normal(key, size) / size[0] ** 0.5, jnp.zeros(size[1])) for key, size in zip(keys, sizes)]


def loss_of(parameters, x, y):
    (w1, b1), (w2, b2) = parameters
    logits = jax.nn.relu(x @ w1 + b1) @ w2 + b2
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), y[:, None], axis=1))


with_jax.serve(problem, initial(), loss_of, problem.batches())
