"""Training with JAX: one jitted step with donated state; AdamW written out, as optax computes it."""
import itertools

import protocol

protocol.limit_threads()
import jax
import jax.numpy as jnp


def serve(problem, parameters, loss_of, batches):
    """`loss_of(parameters, x, y)` of a tree of `parameters`, which the training reuses; `batches`: pairs of NumPy arrays, used in turn."""
    beta1, beta2 = problem.BETAS

    def step(p, m, v, t, x, y):
        loss, gradients = jax.value_and_grad(loss_of)(p, x, y)
        t = t + 1
        m = jax.tree.map(lambda m, g: beta1 * m + (1 - beta1) * g, m, gradients)
        v = jax.tree.map(lambda v, g: beta2 * v + (1 - beta2) * g * g, v, gradients)

        def update(p, m, v):
            direction = (m / (1 - beta1**t)) / (jnp.sqrt(v / (1 - beta2**t)) + problem.EPSILON)
            return p - problem.LEARNING_RATE * (direction + problem.WEIGHT_DECAY * p)

        return jax.tree.map(update, p, m, v), m, v, t, loss

    step = jax.jit(step, donate_argnums=(0, 1, 2, 3))
    state = [parameters, jax.tree.map(jnp.zeros_like, parameters), jax.tree.map(jnp.zeros_like, parameters), jnp.float32(0)]
    del parameters
    data = itertools.cycle([tuple(map(jnp.asarray, batch)) for batch in batches])  # int64 becomes int32

    def train(steps):
        nonlocal state
        for x, y in itertools.islice(data, steps):
            *state, loss = step(*state, x, y)
        return float(jax.block_until_ready(loss))

    protocol.serve(problem, jax.__version__, train)
