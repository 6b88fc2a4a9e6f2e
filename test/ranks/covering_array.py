"""Few rows in which each two values of any two factors meet (pairwise testing)."""
import itertools
import random


def covering_array(factors, is_valid, seed):
    """Rows {factor: value} that together have every pair of values of `factors` ({name: values}) that some valid row has. The seed decides which of many
    such arrays it is."""
    draw = random.Random(seed)
    names = list(factors)
    rows = [dict(zip(names, values)) for values in itertools.product(*factors.values())]
    rows = [row for row in rows if is_valid(row)]
    draw.shuffle(rows)
    pairs = list(itertools.combinations(names, 2))

    def pairs_of(row):
        return {(a, row[a], b, row[b]) for a, b in pairs}

    missing = set().union(*map(pairs_of, rows))
    chosen = []
    while missing:
        # The best of a sample: the best of all would take the same row first whatever the seed.
        sample = draw.sample(rows, min(len(rows), 400))
        best = max(sample, key=lambda row: len(pairs_of(row) & missing))
        if not pairs_of(best) & missing:
            best = next(row for row in rows if pairs_of(row) & missing)
        chosen.append(best)
        missing -= pairs_of(best)
    return chosen
