"""JAX, jitted, channels last; bf16 by casting what convolutions and products read. It has `resnet18` and `lstm`.

    jax_jit.py FOLDER ROW f32|bf16

Running statistics, which no loss of a training step reads, are left out.
"""
import with_jax  # before JAX itself: it limits the threads
import jax
import jax.numpy as jnp
from safetensors.numpy import load_file

import problem

folder, name, precision = problem.arguments()
row = problem.ROWS[name]
LOW = jnp.bfloat16 if precision == "bf16" else jnp.float32


def weights():
    """Those that are trained; kernels of convolutions as [height, width, in, out]."""
    tensors = {key: tensor for key, tensor in load_file(folder / "weights.safetensors").items() if "running" not in key and "tracked" not in key}
    return {key: jnp.asarray(tensor.transpose(2, 3, 1, 0) if tensor.ndim == 4 else tensor) for key, tensor in tensors.items()}


def linear(x, weight):
    return jnp.einsum("...i,oi->...o", x.astype(LOW), weight.astype(LOW))


def convolution(x, kernel, stride=1):
    padding = (kernel.shape[0] // 2,) * 2
    return jax.lax.conv_general_dilated(x.astype(LOW), kernel.astype(LOW), (stride, stride), (padding, padding),
                                        dimension_numbers=("NHWC", "HWIO", "NHWC"))


def batch_norm(p, layer, x):
    x = x.astype(jnp.float32)
    centred = x - x.mean((0, 1, 2))
    return centred * jax.lax.rsqrt((centred * centred).mean((0, 1, 2)) + 1e-5) * p[f"{layer}.weight"] + p[f"{layer}.bias"]


def residual(p, block, x, stride):
    y = jax.nn.relu(batch_norm(p, f"{block}.bn1", convolution(x, p[f"{block}.conv1.weight"], stride)))
    y = batch_norm(p, f"{block}.bn2", convolution(y, p[f"{block}.conv2.weight"]))
    if f"{block}.downsample.0.weight" in p:
        x = batch_norm(p, f"{block}.downsample.1", convolution(x, p[f"{block}.downsample.0.weight"], stride))
    return jax.nn.relu(y + x)


def resnet18(p, x):
    x = jax.nn.relu(batch_norm(p, "stem.1", convolution(x.transpose(0, 2, 3, 1), p["stem.0.weight"])))
    for stage in range(4):
        for block in range(2):
            x = residual(p, f"layers.{stage}.{block}", x, 2 if stage > 0 and block == 0 else 1)
    return linear(x.mean((1, 2)), p["fc.weight"]) + p["fc.bias"]


def lstm_layer(p, layer, x):
    """[time, batch, width] -> the same. The inputs' products are those of all steps at once."""
    inputs = linear(x, p[f"lstm.weight_ih_l{layer}"]) + p[f"lstm.bias_ih_l{layer}"] + p[f"lstm.bias_hh_l{layer}"]

    def step(state, projected):
        hidden, cell = state
        gates = projected + linear(hidden, p[f"lstm.weight_hh_l{layer}"])
        enter, forget, new, leave = jnp.split(gates, 4, axis=-1)
        cell = jax.nn.sigmoid(forget) * cell + jax.nn.sigmoid(enter) * jnp.tanh(new)
        hidden = jax.nn.sigmoid(leave) * jnp.tanh(cell)
        return (hidden, cell), hidden

    nothing = jnp.zeros(x.shape[1:], jnp.float32)
    return jax.lax.scan(step, (nothing, nothing), inputs)[1]


def lstm(p, ids):
    x = p["embedding.weight"][ids.T]
    for layer in range(2):
        x = lstm_layer(p, layer, x)
    return (linear(x, p["head.weight"]) + p["head.bias"]).swapaxes(0, 1)


MODELS = {"resnet18": resnet18, "lstm": lstm}


def loss_of(p, x, targets):
    logits = MODELS[name](p, x).astype(jnp.float32)
    chosen = jnp.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
    return jnp.mean(jax.nn.logsumexp(logits, axis=-1) - chosen)


with_jax.serve(problem, weights(), loss_of, problem.batches(folder, row.batch))
