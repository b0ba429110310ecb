"""How late labels come, and the step that a label may take: one text for events and for columns.

The lateness of a label is counted in the rows of its cell (a group, or the whole layer) served from its ticket to its
posting, the ticket's own included: 1 is at once. A cell's peak lateness P is renewed in growing epochs, so that one
very late label does not hold the layer down for ever; a ticket that is never labelled has no influence at all.
"""

from __future__ import annotations

from gradeq.kernels.account import Floats, Ints

# Numbers of a cell: peak of this epoch and the last, peak of this epoch, labels in it, its length; largest ever.
PEAK, RECENT, COUNT, LENGTH, LATEST = range(5)
LATENESS = 5
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


def capped(eta: float, limit: float, w: float, total: float, most: float, norm: float) -> float:
    """min(eta, c / (w P)) once the peak is 2 or more; P adds up the row's cells, times Z^2 with features."""
    if most >= 2.0 and norm > 0.0:
        return min(eta, limit / (w * total * norm))
    return eta


def flown(
    capping: bool,
    limit: float,
    first: int,
    cuts: Ints,
    posts: Ints,
    opened: Ints,
    starts: Ints,
    cells: Ints,
    weights: Floats,
    norms: Floats,
    widest: Floats,
    keys: Ints,
    rows: Floats,
    late: Floats,
    etas: Floats,
    delays: Floats,
) -> None:
    """Count the rows of every cell as they are served and give each label, as it is posted, its step in ``etas``.

    ``opened`` are the counts of each row's cells when it was served (given for rows before ``first``); ``delays``
    takes the lateness of each row's label. ``norms`` are squared norms (empty without features), ``widest`` their
    largest so far by key.
    """
    p = 0
    for i in range(first, len(weights) + 1):
        due = cuts[i] if i < len(weights) else len(posts)
        while p < due:
            k = posts[p]
            total = 0.0
            most = 0.0
            latest = 0.0
            for a in range(starts[k], starts[k + 1]):
                d = max(1.0, rows[cells[a]] - opened[a] + 1.0)
                note(late, cells[a] * LATENESS, d)
                peak = late[cells[a] * LATENESS]
                total = total + peak
                most = max(most, peak)
                latest = max(latest, d)
            norm = 1.0
            if len(norms) > 0:
                widest[keys[k]] = max(widest[keys[k]], norms[k])
                norm = widest[keys[k]]
            if capping:
                etas[k] = capped(etas[k], limit, weights[k], total, most, norm)
            delays[k] = latest
            p += 1
        if i < len(weights):
            for a in range(starts[i], starts[i + 1]):
                rows[cells[a]] = rows[cells[a]] + 1.0
                opened[a] = rows[cells[a]]
