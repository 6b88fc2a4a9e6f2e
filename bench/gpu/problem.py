"""The GPT benchmark on a card: what all contenders train, and on what."""
import numpy as np

BATCHES = 8  # different batches, used in turn
LEARNING_RATE, BETAS, EPSILON, WEIGHT_DECAY = 3e-4, (0.9, 0.95), 1e-8, 0.1
CHECKED = 3  # losses that all contenders must agree on: of the first batch, and after one and two updates
WARM_UP = 3  # steps behind those, which are not measured
MEASURED = 8  # steps of which the median counts
TOLERANCE = 1e-2  # relative, of the checked losses: products are of bf16


FRESH = """\
[model]
init = "fresh"
[[model.init_rule]]
match = "*.projection.weight"
std = 0.00408
[[model.init_rule]]
match = "*.contract.weight"
std = 0.00408
[[model.init_rule]]
match = "blocks.*.qkv.weight"
std = 0.02
[[model.init_rule]]
match = "blocks.*.expand.weight"
std = 0.02
"""


def recipe(batch, fresh=True):
    """The text of Titan's recipe. `fresh`: the job draws the weights, and the others get them from its first checkpoint; else they are the file's."""
    return (FRESH if fresh else "") + f"""\
[loss]
kind = "cross_entropy"
[optimizer]
kind = "adamw"
lr = {LEARNING_RATE}
betas = {list(BETAS)}
eps = {EPSILON}
weight_decay = {WEIGHT_DECAY}
no_decay = []
[precision]
compute = "bf16"
[batch]
micro = {batch}
global = {batch}
[data]
train = "tokens.bin"
shuffle = false
[train]
steps = 1000000
[checkpoint]
every = 1000000
keep = 1
"""


def write_tokens(path, row):
    """uint16 tokens of the row's vocabulary; a batch is consecutive windows."""
    count = BATCHES * row["batch"] * row["length"] + 1
    np.random.default_rng(0).integers(0, row["tokens"], count, np.uint16).tofile(path)


def batches(path, row):
    """BATCHES pairs of [batch, length]: numbers of tokens and of the tokens that follow them, int64."""
    text = np.fromfile(path, np.uint16).astype(np.int64)
    shape = (BATCHES, row["batch"], row["length"])
    return list(zip(text[:-1].reshape(shape), text[1:].reshape(shape)))
