"""Notices about limits, ties of labels and crossing forecasts: what coverage can mean there."""

import math
from collections.abc import Sequence
from typing import Any

from gradeq.report.numerals import count, percent, plain, some, target
from gradeq.report.story import Coverage, Notice


def clipped_coverage(
    low: float | None, high: float | None, coverage: Sequence[Coverage], loss: float
) -> Notice:
    """Coverage of the values held inside the limits beside the one that is judged."""
    ends = [f"at {plain(low)} or above"] if low is not None else []
    ends += [f"at {plain(high)} or below"] if high is not None else []
    listed = "; ".join(
        f"{percent(c.held.after)} of labels{_named(c.name)} (judged: {percent(c.after)}), "
        f"the raw forecast {percent(c.held.before)} (judged: {percent(c.before)})"
        for c in coverage[:9]
        if c.held is not None
    )
    return Notice(
        "note",
        f"What was served stays {' and '.join(ends)}.",
        f"As served it covers {listed}; pinball loss {loss:.4g}. Coverage is judged by the value "
        "before the limit, since labels that tie there would count as covered however low it falls.",
    )


def judged_before_limits(coverage: Sequence[Any]) -> Notice | None:
    """The coverage as served beside the judged one, where limits changed it; a state knows no more."""
    apart = [c for c in coverage if c.clipped is not None and c.clipped != c.after]
    if not apart:
        return None
    listed = ", ".join(
        f"{percent(c.clipped)} of labels (target {target(c.target)}, judged: {percent(c.after)})"
        for c in apart[:9]
    )
    return Notice(
        "note",
        "Coverage on this page is judged before the limits of the support.",
        f"Inside them, what was served covers {listed}. A state keeps no such figure of the raw forecast.",
    )


def tied_labels(
    value: float,
    below: float,
    equal: float,
    levels: Sequence[str],
    limited: bool,
    interval: bool = False,
) -> Notice:
    """Many labels are one value; ``levels`` are those that no single value can meet.

    ``limited``: what is served is held at that value; ``interval``: the levels are its ends.
    """
    shown = plain(value)
    least = percent(math.floor(1000.0 * (below + equal)) / 1000.0)
    most = f"at most {percent(math.ceil(1000.0 * below) / 1000.0)}" if below > 0.0 else "none"
    fact = f"Any value of {shown} or more covers at least {least} of labels, a lower one {most}"
    each = ", ".join(target(float(level)) for level in levels[:9])
    remedy = ""
    if not levels:
        fact += "; your levels lie outside that range and keep their usual meaning."
    elif limited and interval:
        fact += (
            f". A lower end held at {shown} is inclusive there, so the interval keeps its meaning."
        )
    elif limited:
        fact += f": held at {shown}, what is served covers more than the {each} you ask for."
        remedy = f"Read it as “{shown} is all you can expect at this level”."
    else:
        fact += (
            f", so no single value covers {each}: it is met on average, by values on both sides."
        )
        if below == 0.0:
            remedy = f"If labels are never below {shown}, say so with `--min {shown}`."
    return Notice("note", f"{percent(equal, 0)} of the labels are exactly {shown}.", fact, remedy)


def crossing(crossed: int, rows: int) -> Notice | None:
    """Forecasts were not in the order of their levels; where most are not, the columns may be in the wrong order."""
    if not crossed:
        return None
    said = f"{count(crossed)} of {some(rows, 'row')} had crossing forecasts; they were sorted."
    evidence = "The forecast of a higher level was below that of a lower one."
    if 2 * crossed <= rows:
        return Notice("note", said, evidence)
    remedy = "Give `--prediction` in the order of `--level`, for an interval the lower end first."
    return Notice("amber", said, f"{evidence} The columns may be given in the wrong order.", remedy)


def _named(name: str) -> str:
    return "" if name == "interval" else f" at level {name}"
