"""Closed forms of what the ranks of a job exchange in one step, from the shapes of its parameters alone."""
import math
from collections import Counter
from dataclasses import dataclass

LOSS = 4  # bytes of the loss sum in f32
COUNTS = 8 + 8  # of the count of valid targets and the stop flags in i64
SQUARES = 4  # bytes of the gradients' sum of squares
EXACT_SQUARES = 10 * 8  # of the integers that it is added up in under mesh.reduce = "tree"
SHARDED = ("zero1", "zero2", "fsdp", "hsdp")  # strategies that cut something along axis `shard`


@dataclass(frozen=True)
class Exchange:
    """How a job divides its work. `every`: microbatches of a rank between two sums over an axis, by axis; k is deferred, 1 immediate."""
    strategy: str
    replicate: int
    shard: int
    microbatches: int  # k, of a rank
    every: dict
    reshard: str = "always"
    gradient_bytes: int = 4  # of an element on its way
    compute_bytes: int = 4  # of an element of a matrix where it is computed with
    tables: tuple = ()  # names of parameters whose rows are looked up, which is done in f32
    tied: tuple = ()  # of those, what products read too
    tree: bool = False  # sums that depend on the microbatches alone: the loss is summed as gradients are, tensors are cut along dimension 0

    @property
    def axes(self):
        return tuple(name for name, ranks in (("replicate", self.replicate), ("shard", self.shard)) if ranks > 1)

    @property
    def sums(self):
        """[(axes, times in a step)] of what all ranks sum: over both axes at once, where that is as often."""
        if len({self.every[axis] for axis in self.axes}) == 1:
            return [(self.axes, self.microbatches // self.every[self.axes[0]])]
        return [((axis,), self.microbatches // self.every[axis]) for axis in self.axes]

    @property
    def gathers_parameters(self):
        return self.strategy in ("fsdp", "hsdp")


def padded_elements(shape, ranks, tree=False):
    """Elements of a tensor that `ranks` hold in equal parts, padding included; None: too small to be cut."""
    elements = math.prod(shape)
    if elements < ranks or not shape:
        return None
    padded = [elements // extent * -(-extent // ranks) * ranks for extent in shape]
    return padded[0] if tree or padded[0] - elements <= elements / 16 else min(padded)


def gathered_bytes(exchange, name, shape):
    """Bytes of an element of all gathers of a parameter in forward. A gather follows the cast of what products read; two casts are two gathers."""
    if len(shape) < 2 or exchange.compute_bytes == 4:
        return 4
    return (4 if name in exchange.tables else 0) + (exchange.compute_bytes if name not in exchange.tables or name in exchange.tied else 0)


def step_payload(exchange, shapes):
    """{(kind, axes, phase): bytes of one rank's sources in a step}, where all parameters of {name: shape} are trained. What is gathered for backward
    depends on what backward reads: it is left out."""
    k, shard = exchange.microbatches, exchange.shard
    payload = Counter()
    scalars, squares = (COUNTS, EXACT_SQUARES) if exchange.tree else (COUNTS + LOSS, SQUARES)
    for axes, times in exchange.sums if exchange.tree else []:
        payload["all_reduce", axes, "backward"] += times * LOSS
    if exchange.strategy not in SHARDED:
        for axes, times in exchange.sums:
            payload["all_reduce", axes, "backward"] += times * exchange.gradient_bytes * sum(map(math.prod, shapes.values()))
        payload["all_reduce", exchange.axes, "update"] += scalars
        return payload
    for name, shape in shapes.items():
        padded = padded_elements(shape, shard, exchange.tree)
        if padded is None:
            for axes, times in exchange.sums:
                payload["all_reduce", axes, "backward"] += times * exchange.gradient_bytes * math.prod(shape)
            continue
        payload["reduce_scatter", ("shard",), "backward"] += k // exchange.every["shard"] * exchange.gradient_bytes * padded
        if exchange.replicate > 1:
            payload["all_reduce", ("replicate",), "backward"] += k // exchange.every["replicate"] * exchange.gradient_bytes * padded // shard
        if exchange.gathers_parameters:
            times = 1 if exchange.reshard == "step" else k
            payload["all_gather", ("shard",), "forward"] += times * gathered_bytes(exchange, name, shape) * padded // shard
        else:
            payload["all_gather", ("shard",), "update"] += 4 * padded // shard
    if exchange.replicate > 1:
        payload["all_reduce", ("shard",), "update"] += squares
        payload["all_reduce", exchange.axes, "update"] += scalars
    else:
        payload["all_reduce", exchange.axes, "update"] += scalars + squares
    return payload


def payload_of(rows):
    """The same of the rows of a ledger, those of gathers for backward left out."""
    payload = Counter()
    for row in rows:
        if row["function"] == "step" and (row["kind"], row["phase"]) != ("all_gather", "backward"):
            payload[row["kind"], tuple(row["axes"]), row["phase"]] += row["payload"]
    return payload
