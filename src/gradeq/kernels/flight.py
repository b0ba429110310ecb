"""How late labels come, and the step that a label may take: one text for events and for columns.

The lateness of a label is counted in the rows of its cell (a group, or the whole layer) served from its ticket to its
posting, the ticket's own included: 1 is at once. A cell's peak lateness P is renewed in growing epochs, so that one
very late label does not hold the layer down for ever; a ticket that is never labelled has no influence at all.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from gradeq.kernels.account import Floats, Ints
from gradeq.numerics import SMALLEST

# Numbers of a cell: peak of this epoch and the last, peak of this epoch, labels in it, its length; largest ever.
PEAK, RECENT, COUNT, LENGTH, LATEST = range(5)
LATENESS = 5
# Of a layer: rows served when the last label came (0: none has), and the most served from one label to the next.
HEARD_AT, SILENCE = range(2)
EPOCH = 50.0  # labels of the first epoch; later ones are longer by as much, and at least four times the peak


def peak_after(late: Floats, at: int, d: float) -> float:
    """The peak of a cell once a label of lateness d is posted: with the last label of an epoch, that epoch's own."""
    ends = late[at + COUNT] + 1.0 >= late[at + LENGTH]
    peak: float = max(late[at + RECENT] if ends else late[at], d)
    return peak


def note(late: Floats, at: int, d: float) -> None:
    """A label of lateness d was posted in the cell whose numbers begin at ``at``."""
    late[at] = peak_after(late, at, d)
    late[at + RECENT] = max(late[at + RECENT], d)
    late[at + LATEST] = max(late[at + LATEST], d)
    late[at + COUNT] = late[at + COUNT] + 1.0
    if late[at + COUNT] >= late[at + LENGTH]:
        late[at + RECENT] = 0.0
        late[at + COUNT] = 0.0
        late[at + LENGTH] = max(late[at + LENGTH] + EPOCH, 4.0 * late[at])


# The largest weight of a key, the number of its row in the layer (0: not known), its place among its key's weights.
LARGEST_WEIGHT, LARGEST_ROW, LARGEST_PLACE = range(3)
LARGEST = 3


def weigh(w: float, k: int, number: float, counts: Floats, means: Floats, largest: Floats) -> float:
    """A positive weight relative to the mean of those so far, its own included: only ratios of weights matter."""
    counts[k] = counts[k] + 1.0
    means[k] = means[k] + (w - means[k]) / counts[k]
    if w > largest[k * LARGEST]:
        largest[k * LARGEST] = w
        largest[k * LARGEST + LARGEST_ROW] = number
        largest[k * LARGEST + LARGEST_PLACE] = counts[k]
    return max(w / means[k], SMALLEST)


def weigh_all(
    keys: Ints, given: Floats, before: Floats, counts: Floats, means: Floats, largest: Floats, weights: Floats
) -> None:  # fmt: skip
    """The same of many rows in the order of serving; a weight of 0 stays 0 and is not among the mean.

    ``before``: rows served before these, and 1; both are 0 where rows are not numbered.
    """
    for i in range(len(given)):
        if given[i] > 0.0:
            weights[i] = weigh(given[i], keys[i], before[0] + before[1] * (i + 1.0), counts, means, largest)


def capped(eta: float, limit: float, w: float, total: float, most: float, norm: float) -> float:
    """min(eta, c / (w P)) once the peak is 2 or more; P adds up the row's cells, times Z^2 with features."""
    if most >= 2.0 and norm > 0.0:
        return min(eta, limit / (w * total * norm))
    return eta


# What a pass tells of its labels: the smallest and the largest step, how many were capped, the largest weight and
# lateness, rows of the layer served between ticket and label: their sum and the most; the largest step times weight.
LOW, HIGH, HELD, HEAVIEST, LATE, WAITED, LONGEST, HEAVIEST_STEP = range(8)
NO_LABELS = (math.inf, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)


class PostingOrder(NamedTuple):
    """Rows and when their labels are posted, as a pass reads them.

    ``limit``: c of the cap, 0 without one. Rows before ``first`` were served in an earlier run, as rows
    ``numbers`` of the layer; ``before`` rows were served before row ``first``. ``norms`` are squared norms (empty
    without features).
    """

    limit: float
    first: int
    before: float
    numbers: Floats
    cuts: Ints
    posts: Ints
    starts: Ints
    cells: Ints
    weights: Floats
    norms: Floats
    keys: Ints


class LatenessBuffers(NamedTuple):
    """What a pass writes: ``opened`` are the counts of each row's cells when it was served (given for rows before
    the first), ``widest`` the largest norm so far by key, ``delays`` the lateness of each row's label."""

    opened: Floats
    widest: Floats
    rows: Floats
    late: Floats
    etas: Floats
    delays: Floats
    told: Floats


def flown(order: PostingOrder, kept: LatenessBuffers) -> None:
    """Count the rows of every cell as they are served and give each label, as it is posted, its step in ``etas``."""
    p = 0
    n = len(order.weights)
    # Numbers of all labels are held until the end: written down at each, they would be waited for.
    low, high, held, heaviest, late, waited, longest, stride = kept.told
    for i in range(order.first, n + 1):
        due = order.cuts[i] if i < n else len(order.posts)
        while p < due:
            k = order.posts[p]
            total = 0.0
            most = 0.0
            latest = 0.0
            for a in range(order.starts[k], order.starts[k + 1]):
                d = max(1.0, kept.rows[order.cells[a]] - kept.opened[a] + 1.0)
                note(kept.late, order.cells[a] * LATENESS, d)
                peak = kept.late[order.cells[a] * LATENESS]
                total = total + peak
                most = max(most, peak)
                latest = max(latest, d)
            norm = 1.0
            if len(order.norms) > 0:
                kept.widest[order.keys[k]] = max(kept.widest[order.keys[k]], order.norms[k])
                norm = kept.widest[order.keys[k]]
            w, step = order.weights[k], kept.etas[k]
            eta = step
            if order.limit > 0.0:
                eta = capped(step, order.limit, w, total, most, norm)
            number = order.numbers[k] if k < order.first else order.before + (k - order.first) + 1.0
            ago = max(0.0, order.before + (i - order.first) - number)
            kept.etas[k] = eta
            kept.delays[k] = latest
            low = min(low, eta)
            high = max(high, eta)
            held = held + (1.0 if eta < step else 0.0)
            heaviest = max(heaviest, w)
            stride = max(stride, eta * w)
            late = max(late, latest)
            waited = waited + ago
            longest = max(longest, ago)
            p += 1
        if i < n:
            for a in range(order.starts[i], order.starts[i + 1]):
                kept.rows[order.cells[a]] = kept.rows[order.cells[a]] + 1.0
                kept.opened[a] = kept.rows[order.cells[a]]
    kept.told[:] = low, high, held, heaviest, late, waited, longest, stride
