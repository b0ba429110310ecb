"""Any window from two states: what a layer's errors averaged between an earlier moment and a later one."""

from __future__ import annotations

from typing import Any, NamedTuple

from gradeq.engine.margin import account
from gradeq.errors import BadInput
from gradeq.kernels.loops import COLUMNS, GRADIENT, MOVED, ROWS, WEIGHT
from gradeq.layers.certify import over
from gradeq.layers.layer import check_same_settings


class Window(NamedTuple):
    """Averages over the labels posted between two states, summed row by row and read off the states.

    ``rows``: labels in the window. ``average_gradient`` and ``from_state``: by parameter, over all its rows;
    ``bias``: by parameter, over the parameter's own rows. ``gap``: the largest disagreement of the two, rounding
    apart 0 (with a step that varied, of the sum of eta times gradient and the move of the parameter).
    """

    rows: int
    average_gradient: dict[str, float]
    from_state: dict[str, float]
    bias: dict[str, float]
    gap: float


def window(earlier: Any, later: Any) -> Window:
    """What happened between two states of one layer (copies, or read back from JSON)."""
    check_same_settings(later, earlier)
    first, last = earlier.certified, later.certified
    count = len(getattr(later, "levels", (0,)))
    names = getattr(later, "names", None) or list(later.roster.names)
    if earlier.desk.posted > later.desk.posted or len(first.u) > len(last.u):
        raise BadInput(
            "window: the first state is later than the second; give the earlier one first"
        )
    if last.penalty is not None:
        raise BadInput(
            "window: with a penalty the states also hold its slopes; compare equilibrium() instead"
        )
    totals = [account(head.total or head.sums, 0) for head in (first, last)]
    divisor = totals[1][WEIGHT] - totals[0][WEIGHT]
    start = getattr(later, "start", [0.0])
    gap = 0.0
    average, state, bias = {}, {}, {}
    for j, name in enumerate(names):
        known = (j + 1) * COLUMNS <= len(first.sums)
        before = account(first.sums, j) if known else [0.0] * COLUMNS
        after = account(last.sums, j)
        u = first.u[j] if known else start[j % count]
        gradient, moved = after[GRADIENT] - before[GRADIENT], u - last.u[j]
        average[name] = over(gradient, divisor)
        bias[name] = over(gradient, after[WEIGHT] - before[WEIGHT])
        if last.pace.constant:
            state[name] = over(moved, last.pace.high * divisor)
            gap = max(gap, abs(average[name] - state[name]))
        else:
            state[name] = average[name]
            gap = max(gap, abs(after[MOVED] - before[MOVED] - moved))
    return Window(int(totals[1][ROWS] - totals[0][ROWS]), average, state, bias, gap)
