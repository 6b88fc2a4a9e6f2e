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
    compute_bytes: int = 4  # of an element of a matrix, or of the bias beside it, where it is computed with
    tables: tuple = ()  # names of parameters whose rows are looked up, which is done in f32
    tied: tuple = ()  # of those, what products read too
    tree: bool = False  # sums that depend on the microbatches alone: the loss is summed as gradients are, tensors are cut along dimension 0
    bucket: int = 25_000_000  # mesh.bucket
    rows: tuple = ()  # (buffer, elements) of each row that a microbatch leaves: the statistics of its batch

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
    def row_gathers(self):
        """[(axes, rows before, rows after)] of what is gathered of the microbatches' rows: one gather for each loop that axes divide, that of the outer
        loop first. The next takes what it joined."""
        if not self.rows:
            return []
        divisions = list(reversed(self.sums)) if self.sums[0][1] > self.sums[-1][1] else self.sums
        joined, gathers = self.microbatches, []
        for axes, _ in divisions:
            before, joined = joined, joined * math.prod({"replicate": self.replicate, "shard": self.shard}[axis] for axis in axes)
            gathers.append((axes, before, joined))
        return gathers

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


def is_read_by_products(name, shapes):
    """A matrix, or the bias beside one."""
    return len(shapes[name]) > 1 or (name.endswith("bias") and len(shapes.get(name.removesuffix("bias") + "weight", ())) > 1)


def gathered_bytes(exchange, name, shapes):
    """Bytes of an element of all gathers of a parameter in forward. A gather follows the cast of what products read; two casts are two gathers."""
    if not is_read_by_products(name, shapes) or exchange.compute_bytes == 4:
        return 4
    return (4 if name in exchange.tables else 0) + (exchange.compute_bytes if name not in exchange.tables or name in exchange.tied else 0)


def step_payload(exchange, shapes):
    """{(kind, axes, phase): bytes of one rank's sources in a step}, where all parameters of {name: shape} are trained. What is gathered for backward
    depends on what backward reads: it is left out."""
    k, shard = exchange.microbatches, exchange.shard
    payload = Counter()
    for axes, rows, _ in exchange.row_gathers:
        payload["all_gather", axes, "update"] += rows * 4 * sum(elements for _, elements in exchange.rows)
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
            payload["all_gather", ("shard",), "forward"] += times * gathered_bytes(exchange, name, shapes) * padded // shard
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


def greedy(sizes, limit, goes_at_once):
    """How many of `sizes` in a row are in each bucket: as many as have `limit` together, or one that has more and what has a sixteenth of `limit` beside
    it. `goes_at_once`: a full one does not wait for what is small."""
    buckets = []
    for size in sizes:
        last = [*(buckets[-1] if buckets else []), size]
        fits = sum(last) <= limit or sum(last) - max(last) <= limit // 16
        if buckets and fits and not (goes_at_once and sum(buckets[-1]) >= limit):
            buckets[-1] = last
        else:
            buckets.append([size])
    return [len(bucket) for bucket in buckets]


def whole_sizes(exchange, name, shapes, kind, phase):
    """Bytes of a parameter, or its gradient, as it is exchanged, in the order of a step: one size an exchange. A table in bf16 that is tied has two in
    forward, and is read by products alone in backward. A sum over `replicate` alone is of parts where there are some."""
    padded = padded_elements(shapes[name], exchange.shard, exchange.tree) if exchange.strategy in SHARDED else None
    elements = math.prod(shapes[name]) if padded is None else padded
    if kind != "all_gather":
        return [exchange.gradient_bytes * elements]
    if phase == "update" or not is_read_by_products(name, shapes) or exchange.compute_bytes == 4:
        return [4 * elements]
    narrow = exchange.compute_bytes * elements
    if name not in exchange.tables:
        return [narrow]
    return [narrow] if phase == "backward" else [4 * elements, narrow] if name in exchange.tied else [4 * elements]


def wrong_buckets(exchange, shapes, rows):
    """What is wrong with the buckets that the rows of a step's ledger are, a list of lines: in their order, tensors are cut as `greedy` says. Which tensors
    there are and their bytes is said by `step_payload`; what stands in a loop and what behind it has rows, and buckets, of its own,
    and so have statistics of batches, which are read before parameters are updated."""
    wrong = []
    groups = {}
    for row in rows:
        if row["function"] == "step" and not (row["phase"] == "update" and row["kind"] == "all_reduce"):
            names = row["source"].split(", ")
            group = (row["kind"], tuple(row["axes"]), row["phase"], row["count"], set(names) <= dict(exchange.rows).keys())
            groups.setdefault(group, []).append(names)
    for (kind, axes, phase, *_), buckets in groups.items():
        rows = {name: 4 * elements * after for over, _, after in exchange.row_gathers if over == axes for name, elements in exchange.rows}
        sizes, seen = [], Counter()
        for name in (name for bucket in buckets for name in bucket):
            if name in rows:
                sizes.append(rows[name])
                continue
            known = whole_sizes(exchange, name, shapes, kind, phase)
            size = known[min(seen[name], len(known) - 1)]
            is_part = axes == ("replicate",) and exchange.strategy in SHARDED and padded_elements(shapes[name], exchange.shard) is not None
            sizes.append(size // exchange.shard if is_part else size)
            seen[name] += 1
        found, expected = [len(bucket) for bucket in buckets], greedy(sizes, exchange.bucket, kind != "all_gather" or phase == "update")
        if found != expected:
            wrong.append(f"{kind} over {', '.join(axes)} in {phase}: buckets of {found} tensors, by their bytes {expected}")
    return wrong
