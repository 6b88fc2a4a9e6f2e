"""The benchmark of language models on a card: what all contenders train, and on what."""
import numpy as np

BATCHES = 8  # different batches, used in turn
LEARNING_RATE, BETAS, EPSILON, WEIGHT_DECAY = 3e-4, (0.9, 0.95), 1e-8, 0.1
CHECKED = 3  # losses that all contenders must agree on: of the first batch, and after one and two updates
WARM_UP = 3  # steps behind those, which are not measured
MEASURED = 8  # steps of which the median counts
TOLERANCE = 1e-2  # relative, of the checked losses: products are of bf16


# Standard deviations of fresh weights by model; embeddings have 0.02 anyway, norms 1. What is added to the residual stream: 0.02 / sqrt(2 x layers).
GPT2 = {"*.projection.weight": 0.00408, "*.contract.weight": 0.00408, "blocks.*.qkv.weight": 0.02, "blocks.*.expand.weight": 0.02}
LLAMA = {"*.projection.weight": 0.00354, "*.contract.weight": 0.00354, "blocks.*.attention.*.weight": 0.02, "blocks.*.gate.weight": 0.02,
         "blocks.*.expand.weight": 0.02}


def fresh_text(deviations):
    rules = (f'[[model.init_rule]]\nmatch = "{match}"\nstd = {deviation}\n' for match, deviation in deviations.items())
    return '[model]\ninit = "fresh"\n' + "".join(rules)


def recipe(batch, deviations=None):
    """The text of Titan's recipe. With `deviations`, GPT2 or LLAMA, the job draws the weights, and the others get them from its first checkpoint;
    without they are the file's."""
    return (fresh_text(deviations) if deviations else "") + f"""\
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


def token_type(row):
    """What a file of tokens holds: Titan reads wider words where the vocabulary asks for them."""
    return np.dtype(row.get("token_type", "uint16"))


def write_tokens(path, row):
    """Tokens of the row's vocabulary; a batch is consecutive windows."""
    count = BATCHES * row["batch"] * row["length"] + 1
    np.random.default_rng(0).integers(0, row["tokens"], count, token_type(row)).tofile(path)


def batches(path, row):
    """BATCHES pairs of [batch, length]: numbers of tokens and of the tokens that follow them, int64."""
    text = np.fromfile(path, token_type(row)).astype(np.int64)
    shape = (BATCHES, row["batch"], row["length"])
    return list(zip(text[:-1].reshape(shape), text[1:].reshape(shape)))
