"""The summary on the terminal: one line of figures, the verdict in words, groups, warnings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from gradeq.cli.keys_words import lines
from gradeq.cli.learned import over, words_of
from gradeq.cli.options import labels_later
from gradeq.cli.outcome import GroupLine, Outcome, bound_beside
from gradeq.cli.task import final_step
from gradeq.equilibrium import LARGEST
from gradeq.informative import no_guarantee
from gradeq.report.markup import clean
from gradeq.report.numerals import some
from gradeq.report.of_state import (
    WHEN,
    coverage_bound,
    coverage_needed,
    coverages_of,
    in_short,
)
from gradeq.report.story import Coverage, Notice, Pair
from gradeq.report.words import FEW, subject, text, verdict_sentence
from gradeq.rounding import trusted
from gradeq.tables import aligned
from gradeq.upward import raised

SHOWN = 20
BEFORE_LIMITS = (
    "(coverage and loss as served; bounds are on coverage before --min and --max: see --json)"
)
_PLAIN = str.maketrans({"\u2212": "-", "\u2192": "->", "\u2013": "-", "`": None})


def terminal(outcome: Outcome) -> str:
    """Everything the terminal shows after a run."""
    parts = [figures(outcome), in_words(outcome), learning(outcome)]
    if any(line.counted for line in outcome.groups):
        parts.append("\n".join(group_table(outcome.groups, outcome)))
    if outcome.series is not None:
        parts.append(lines(outcome.task, outcome.series, short))
    parts += [said(notice) for notice in outcome.notices]
    parts.append("\n".join(places(outcome)))
    return "\n\n".join(part for part in parts if part)


def said(notice: Notice) -> str:
    """A warning as one paragraph."""
    mark = {"red": "STOP", "amber": "Warning", "note": "Note"}[notice.level]
    remedy = f" {notice.remedy}" if notice.remedy else ""
    return plain(f"{mark}: {notice.claim} {notice.evidence}{remedy}")


def figures(outcome: Outcome) -> str:
    """bias -0.113 -> -0.0075 over 6,787 rows; squared error 0.251 -> 0.208; certificate exact."""
    task = outcome.task
    rows = some(outcome.labelled, "row")
    if outcome.labelled < outcome.rows:
        rows = f"{outcome.labelled:,} labelled of {some(outcome.rows, 'row')}"
    if not outcome.labelled and labels_later(task.common):
        book = outcome.layer._book
        known = len(book.waiting) if book.maturity or book.early is not None else 0
        waiting = outcome.layer.in_flight["open"] - known
        said = f"{some(outcome.rows, 'row')} served; {waiting:,} waiting for a label in the state."
        if known:
            when = "when their rows are mature" if book.maturity else "later"
            said += f" {some(known, 'label')} known, to be learned {when}."
        since = f"Since the state began: {in_short(outcome.layer, outcome.equilibrium)}."
        if not outcome.continued:
            return f"{said} gradeq label with the same --state and --id brings the labels later."
        return f"{said} {since}"
    if not outcome.labelled:
        return f"{some(outcome.rows, 'row')} served, none labelled: nothing to judge"
    if not outcome.counted:
        return f"{some(outcome.rows, 'row')} served, every label of weight 0: nothing to judge"
    rows += weighting(outcome)
    if task.command == "debias":
        first = f"bias {arrow(*outcome.pair('bias'))} over {rows}"
        loss = f"squared error {arrow(*outcome.pair('loss'))}"
        if task.outcome == "binary":
            loss += f"; log loss {arrow(*outcome.pair('log'))}"
    else:
        shown = [
            f"{'coverage' if task.interval else f'coverage at {c.name}'} "
            f"{arrow(c.before, c.after)}, target {short(c.target)}{as_served(c)}"
            for c in coverages(outcome)
        ]
        first = f"{'; '.join(shown[:5])}; over {rows}"
        loss = f"pinball loss {arrow(*outcome.used('loss'))}"
    return f"{first}; {loss}; {certified(outcome)}; {step(outcome)}"


def weighting(outcome: Outcome) -> str:
    """, weighted by COL (12 of weight 0); nothing without weights."""
    column = outcome.task.common.weight
    if column is None:
        return ""
    none = outcome.labelled - outcome.counted
    return f", weighted by {clean(column, 40)}{f' ({none:,} of weight 0)' if none else ''}"


def certified(outcome: Any) -> str:
    """certificate exact (gap 1e-17); bound 0.0123. Its own figures stand in it where it is about other rows."""
    reached = outcome.equilibrium
    value, vacuous, needed = reached.bound, reached.vacuous, reached.needed
    off = reached.largest_apart  # with several parameters the bound is on this one, not on the bias
    of = "" if off is None or value is None or vacuous else f"{LARGEST} {short(off)}, "
    covered = coverages_of(outcome.layer, reached)
    if covered:
        value, vacuous = coverage_bound(covered)
        needed = coverage_needed(covered, reached.rows)
    said = f"{holds(reached)}; {of}{bounded(value, vacuous, needed)}"
    if not outcome.same_rows:
        if not reached.rows:
            return "no label learned from: nothing to certify"
        return f"certificate {over(outcome)}: {words_of(outcome, arrow)}, {said}"
    relative = outcome.task.link == "exp"
    whose = f" of the relative bias, {short(reached.bias_after)}," if relative else ""
    return f"certificate{whose} {said}"


def holds(reached: Any) -> str:
    """exact (gap 1e-17): whether sums and state agree."""
    return trusted(reached.balance, reached.exact, f"{reached.gap:.0e}")


def bounded(value: float | None, vacuous: bool | None, needed: int | None = None) -> str:
    """A bound for the eye; where it says nothing, that, and how many labels it needs."""
    if value is None:
        return "no bound applies"
    return no_guarantee(needed) if vacuous else f"bound {limit(value)}"


def step(outcome: Outcome) -> str:
    """step 0.025, capped down to 0.001 for 12,000 labels."""
    decay = outcome.task.common.decay
    falls = f" * t^-{decay:g}" if decay is not None else ""
    if outcome.eta is None:
        return "steps of the ensemble"
    eta = auto(outcome) if isinstance(outcome.eta, str) else f"{outcome.eta:g}{falls}"
    if outcome.capped is None:
        return f"step {eta}"
    held = outcome.capped
    return f"step {eta}, capped down to {held.least:.2g} for {some(held.rows, 'label')}"


def learning(outcome: Outcome) -> str:
    """How it learned, and how late labels came: one line."""
    if not outcome.labelled or outcome.eta is None:
        return ""
    said = str(outcome.equilibrium.learning)
    return f"Learning: {said}{' (since the state began)' if outcome.continued else ''}."


def auto(outcome: Any) -> str:
    """auto, certified at 0.03."""
    final = final_step(outcome.layer)
    return str(outcome.eta) if final is None else f"{outcome.eta}, certified at {final:g}"


def in_words(outcome: Outcome) -> str:
    """The verdict as sentences."""
    from gradeq.cli.notes import loss_of

    if outcome.counted < FEW:
        return ""
    bias = Pair(*outcome.pair("bias")) if outcome.task.command == "debias" else None
    covered = () if bias is not None else tuple(coverages(outcome))
    nothing = not outcome.equilibrium.rows
    who = subject(outcome.task.prediction)
    said = verdict_sentence(loss_of(outcome), bias, covered, outcome.counted, who, nothing=nothing)
    return plain(text(said))


def coverages(outcome: Outcome) -> list[Coverage]:
    """The coverage of the interval, or of each level."""
    task = outcome.task

    def one(name: str, target: str, measure: str) -> Coverage:
        held = Pair(*outcome.used(measure)) if task.limited else None
        return Coverage(name, float(target), *outcome.pair(measure), held)

    if task.interval is not None:
        return [one("interval", task.interval, "inside")]
    return [one(name, name, f"cover{k}") for k, name in enumerate(task.levels)]


def as_served(coverage: Coverage) -> str:
    """(as served 0.762 -> 0.778); nothing where limits changed nothing."""
    held = coverage.held
    if held is None or (held.before, held.after) == (coverage.before, coverage.after):
        return ""
    return f" (as served {arrow(held.before, held.after)})"


def group_table(groups: Sequence[GroupLine], outcome: Outcome) -> list[str]:
    """One line for each group, largest remaining error first."""
    lines = [line for line in groups if line.counted]
    measure, target = error_of(outcome)
    lines.sort(key=lambda line: -abs(line.means[f"{measure}_after"] - target))
    names = [f"{name}_{when}" for name in (measure, outcome.task.used("loss")) for when in WHEN]
    bounds = [bound_beside(outcome.task, line) for line in lines]
    rows = [
        GroupRow(line.name, line.counted, [line.means[name] for name in names], bound, line.vacuous)
        for line, bound in zip(lines, bounds, strict=True)
    ]
    table = tabled(rows, "bias" if measure == "bias" else "coverage")
    if not outcome.same_rows and any(g.bound is not None and not g.vacuous for g in lines):
        table.append(f"(bounds are on averages {over(outcome)}, not over the rows of this table)")
    if outcome.task.limited and any(
        bound is None and line.bound is not None for bound, line in zip(bounds, lines, strict=True)
    ):
        table.append(BEFORE_LIMITS)
    return table


class GroupRow(NamedTuple):
    """A group as a line of the terminal: its labels, error and loss before and after, and the bound."""

    name: str
    labels: int
    figures: list[float]
    bound: float | None
    vacuous: bool | None


def tabled(groups: Sequence[GroupRow], what: str) -> list[str]:
    """The first groups as lines of a table."""
    heads = ["group", "rows", f"{what} before", "after", "loss before", "after", "bound"]
    cells = [heads] + [
        [
            clean(group.name, 40),
            f"{group.labels:,}",
            *map(short, group.figures),
            "-" if group.bound is None else "none yet" if group.vacuous else limit(group.bound),
        ]
        for group in groups[:SHOWN]
    ]
    widths = [max(len(row[k]) for row in cells) for k in range(len(heads))]
    table = [aligned(row, widths) for row in cells]
    if len(groups) > SHOWN:
        table.append(f"... and {len(groups) - SHOWN:,} groups with less; --json lists all")
    return table


def error_of(outcome: Outcome) -> tuple[str, float]:
    """The measure whose remaining error sorts groups, and its target."""
    task = outcome.task
    if task.command == "debias":
        return task.errors[0], 0.0
    return task.errors[0], float(task.interval if task.interval is not None else task.levels[0])


def places(outcome: Outcome) -> list[str]:
    """What was written where."""
    common = outcome.task.common
    keys = getattr(outcome.task, "keys_out", None)
    named = (
        ("output", common.output), ("report", common.report), ("state", common.state),
        ("series", keys),
    )  # fmt: skip
    return [f"{name}  {clean(path, 200)}" for name, path in named if path is not None]


def arrow(before: float, after: float) -> str:
    """Before -> after."""
    return f"{short(before)} -> {short(after)}"


def short(x: float) -> str:
    """A figure for the eye: three digits, two when small.

    >>> short(-0.11288), short(-0.00746), short(1234.56), short(0.0)
    ('-0.113', '-0.0075', '1,234.6', '0')
    """
    if x == 0.0 or not math.isfinite(x):  # a mean of squares may be too large for a number
        return "0" if x == 0.0 else "-"
    return format(x, _digits(abs(x)))


def limit(x: float) -> str:
    """A bound for the eye, rounded up.

    >>> limit(0.84901), limit(0.00741), limit(1234.51)
    ('0.85', '0.0075', '1,234.6')
    """
    return short(raised(x, _digits(x)))


def _digits(size: float) -> str:
    """The format of a figure of this size."""
    if size >= 1e15:
        return ".3g"
    if size >= 100.0:
        return ",.1f"
    if size >= 1.0:
        return ".4g"
    return ".3g" if size >= 0.01 else ".2g"


def plain(sentence: str) -> str:
    """A sentence of the page in the characters of any terminal, names in it made printable."""
    return clean(sentence.translate(_PLAIN), 2000)
