"""Any window from two states: what a layer's errors averaged between an earlier moment and a later one."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum
from typing import Any, NamedTuple

from gradeq.certificate import coordinate_names
from gradeq.certificate_reading import Reading
from gradeq.equilibrium import averaged
from gradeq.errors import BadInput
from gradeq.kernels.account import GRADIENT, MOVED, ROWS, WEIGHT
from gradeq.ledger import facts as fact
from gradeq.numerics import over


class Window(NamedTuple):
    """Averages over the labels posted between two states, summed row by row and read off the states.

    ``rows``: labels in the window. ``average_gradient`` and ``from_state``: by coordinate, over all its rows;
    ``bias``: by coordinate, over its own rows. ``gap``: the largest disagreement of the two, rounding apart 0 (with a
    step that varied, of the sum of eta times gradient and the move of the parameter).
    """

    rows: int
    average_gradient: dict[str, float]
    from_state: dict[str, float]
    bias: dict[str, float]
    gap: float


def window(first: Reading, last: Reading, older: Sequence[Any] = (), skipped: int = 0) -> Window:
    """What happened between two states of one layer (copies, or read back from JSON).

    ``older``: revisions of labels from before the first state, which are left out; ``skipped``: parameters of the
    layer that come before the first of the readings.
    """
    posted = [reading.state.facts[fact.POSTED] for reading in (first, last)]
    if posted[0] > posted[1] or len(first.names) > len(last.names):
        raise BadInput(
            "window: the first state is later than the second; give the earlier one first"
        )
    known = {name: c for c, name in enumerate(coordinate_names(first))}
    whole = [reading.total(0) for reading in (first, last)]
    divisor = whole[1][WEIGHT] - whole[0][WEIGHT] - fsum(r.sign * r.weight for r in older)
    rows = whole[1][ROWS] - whole[0][ROWS] - fsum(r.sign for r in older)
    revised = sums_of(older, last.width, skipped)
    eta = last.state.facts[fact.STEP_HIGH] if last.constant else None
    average, state, bias, gap = {}, {}, {}, 0.0
    for c, name in enumerate(coordinate_names(last)):
        at = known.get(name)
        after = last.account(c)
        before = [0.0] * len(after) if at is None else first.account(at)
        u = last.terms.start[c % last.width] if at is None else first.state.u[at]
        gradient, applied = after[GRADIENT] - before[GRADIENT], after[MOVED] - before[MOVED]
        weight = after[WEIGHT] - before[WEIGHT]
        pulled = 0.0
        if last.penalty is not None:
            applied += last.state.drags[c] - (0.0 if at is None else first.state.drags[at])
            pulled = last.state.pulls[c] - (0.0 if at is None else first.state.pulls[at])
        if c in revised:
            heavier, error, moved = revised[c]
            weight, gradient, applied = weight - heavier, gradient - error, applied - moved
            u -= moved
        own = averaged(gradient, pulled, 0.0, applied, u - last.state.u[c], divisor, eta)
        average[name], state[name], gap = own.gradient, own.from_state, max(gap, own.gap)
        bias[name] = over(gradient, weight)
    return Window(int(rows), average, state, bias, gap)


def sums_of(
    revisions: Sequence[Any], width: int, skipped: int
) -> dict[int, tuple[float, float, float]]:
    """What revisions added to each coordinate: to its weight, its gradients, and its gradients times the step."""
    found: dict[int, list[tuple[float, float, float]]] = {}
    for own in revisions:
        heavy = own.sign * own.weight
        for j, z in zip(own.params, own.values, strict=True):
            for k, error in enumerate(own.errors):
                gradient = heavy * error * z
                at = found.setdefault((j - skipped) * width + k, [])
                at.append((heavy, gradient, own.eta * gradient))
    return {
        c: (fsum(t[0] for t in terms), fsum(t[1] for t in terms), fsum(t[2] for t in terms))
        for c, terms in found.items()
    }
