"""Partitions of one stream for the laws of merging: how they live, how trees of them are merged, what is compared."""

import numpy as np

from gradeq.ledger.pair_table import turned
from gradeq.ledger.state import KEEP, LEAST, MEAN, MOST, TIMES

EPS = 2.0**-53  # a rounding, relative to its result


def partition(kind, seed, rows=50, first=0, late=0.3):
    """A layer after some rows with ids, labels of some late, of the last few still to come."""
    rng, layer, waiting = np.random.default_rng(seed), kind.make(), []
    for i in range(first, first + rows):
        layer.predict(*kind.args(rng), **kind.where(rng), id=i)
        y = kind.label(rng)
        if rng.random() < late:
            waiting.append((i, y))
        else:
            layer.update(y, id=i)
        if waiting and rng.random() < 0.3:
            own, y = waiting.pop(int(rng.integers(len(waiting))))
            layer.update(y, id=own)
    return layer


def several(kind, count=4, **given):
    """Partitions with ids of their own, one of them with hardly a label."""
    return [partition(kind, seed, 3 if seed == 1 else 40, 1000 * seed, **given) for seed in range(count)]


def merged(parts, rng):
    """Copies of the parts, joined two at a time, whichever."""
    left = [part.copy() for part in parts]
    while len(left) > 1:
        one, other = (left.pop(int(rng.integers(len(left)))) for _ in range(2))
        one.merge(other)
        left.append(one)
    return left[0]


def written(layer):
    """The state with nothing left to enter; Elo's products as the logarithms that they mean."""
    write = getattr(layer.internals.rule, "written", None)
    return (layer.internals.state if write is None else write(layer.internals.state)).read()


def by_name(layer):
    """Every number of the state: (column, what it is about, which of its numbers) and the number."""
    state, names, found = written(layer), layer.internals.names, {}
    book = getattr(names, "book", None)
    about = {"parameter": list(names.names), "key": [""] if book is None else list(book.names), "layer": [""]}
    flip = []
    if hasattr(state, "met"):
        about["pair"], flip = pairs(state, names.names)
    for each in state.columns:
        table = state.view(each.name).reshape(-1, len(each.start)).copy()
        if each.per == "pair" and len(table) and each.name != "met":
            table[flip] = np.stack(turned(*table[flip].T), axis=1)
        if each.name == "met":
            continue  # it is what pairs are named by
        for name, numbers in zip(about[each.per], table.tolist(), strict=False):
            for c, number in enumerate(numbers):
                found[each.name, name, c] = number
    return found


def pairs(state, names):
    """The cells of a pair table by the names of both, in the order of the alphabet, and which were turned."""
    named, flip = [], []
    for i, j, h in state.view("met").reshape(-1, 3).tolist():
        a, b = names[int(i)], names[int(j)]
        flip.append(a > b)
        named.append((b, a, 0.0 - h) if a > b else (a, b, h))
    return named, np.array(flip, dtype=bool)


def joins(layer):
    """How each number of a column is joined, by column."""
    return {each.name: each.merge for each in layer.internals.state.columns}


def rounding(how, numbers, start):
    """How far two ways to join these numbers may be apart: k - 1 additions round each to 2^-53 of what they added.

    A mean takes a share, a difference, a product and a sum, whose terms are at most twice the largest number; a
    displacement is a difference first; factors are divided by the start, multiplied and scaled.
    """
    ways, joined = 2.0, len(numbers) - 1
    if how in (LEAST, MOST, KEEP):
        return 0.0
    if how == MEAN:
        return ways * joined * 12.0 * EPS * max(map(abs, numbers))
    if how == TIMES:
        return ways * joined * 6.0 * EPS
    return ways * joined * 2.0 * EPS * sum(abs(x) + abs(start) for x in numbers)
