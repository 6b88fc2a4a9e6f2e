"""JAX: one jitted step with donated state; AdamW written out, as optax computes it."""
import itertools

import protocol

protocol.limit_threads()
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


def step(parameters, m, v, t, x, y):
    loss, gradients = jax.value_and_grad(loss_of)(parameters, x, y)
    t = t + 1
    beta1, beta2 = problem.BETAS
    m = jax.tree.map(lambda m, g: beta1 * m + (1 - beta1) * g, m, gradients)
    v = jax.tree.map(lambda v, g: beta2 * v + (1 - beta2) * g * g, v, gradients)

    def update(p, m, v):
        direction = (m / (1 - beta1**t)) / (jnp.sqrt(v / (1 - beta2**t)) + problem.EPSILON)
        return p - problem.LEARNING_RATE * (direction + problem.WEIGHT_DECAY * p)

    return jax.tree.map(update, parameters, m, v), m, v, t, loss


step = jax.jit(step, donate_argnums=(0, 1, 2, 3))
parameters = initial()
state = [parameters, jax.tree.map(jnp.zeros_like, parameters), jax.tree.map(jnp.zeros_like, parameters), jnp.float32(0)]
x, y = problem.batches()
data = itertools.cycle([(jnp.asarray(a), jnp.asarray(b.astype("int32"))) for a, b in zip(x, y)])


def train(steps):
    global state
    for a, b in itertools.islice(data, steps):
        *state, loss = step(*state, a, b)
    return float(jax.block_until_ready(loss))


protocol.serve(train, jax.__version__, problem.WARM_UP)
