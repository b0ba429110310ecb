"""Rounds: many rows, on any number of machines, served from one state; their labels are learned as exact sums.

A round is served from the state after all rounds before it. ``served`` and ``part_of`` may run piece by piece, in any
order, on any machine: a part consists of integers and parts add up exactly, so the state after a round does not
depend on how its rows were split. In the theory, a round serves all its rows and then learns all its labels: no label
is later than the rows of its cell in the round, and the late-label cap and its bounds hold. The order of the rows is
unknown, so every label counts as late as that of the first row.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any, NamedTuple, cast

import numpy as np

from gradeq.engine.label_stats import LabelStats
from gradeq.engine.lateness import AT_ONCE, PROMPT, hear
from gradeq.errors import BadInput
from gradeq.kernels.account import COLUMNS, GRADIENT, HIGH, LOW, MOVED, ROWS
from gradeq.kernels.flight import COUNT, LATENESS, LENGTH, capped, note, peak_after
from gradeq.layers.debiaser import Debiaser
from gradeq.ledger import facts as fact
from gradeq.ledger.batch import Floats, Ints
from gradeq.ledger.exact import UNIT, exact, exact_sums, read, rounded, written
from gradeq.ledger.state import State
from gradeq.ledger.values import Place, Row
from gradeq.records import copy_with
from gradeq.rules.descent import NEAR, Descent
from gradeq.rules.rule import Entries, diverging
from gradeq.schedules import Constant

ADDED = tuple(c for c in range(COLUMNS) if c not in (ROWS, MOVED, LOW, HIGH))


class RoundSums(NamedTuple):
    """The rows and labels of one parameter, and the sums of its account.

    ``added``: the additive numbers of the account, in units of 2^-1074; ``moved``: steps times gradients, in units of
    2^-2148, known once the round is posted; ``low`` and ``high``: the range of residuals.
    """

    rows: int = 0
    labels: int = 0
    added: tuple[int, ...] = (0,) * len(ADDED)
    moved: int = 0
    low: float = math.inf
    high: float = -math.inf

    def plus(self, other: RoundSums) -> RoundSums:
        added = tuple(a + b for a, b in zip(self.added, other.added, strict=True))
        ends = (min(self.low, other.low), max(self.high, other.high))
        return RoundSums(self.rows + other.rows, self.labels + other.labels, added, self.moved + other.moved, *ends)

    def state(self) -> list[object]:
        added = [written(units) for units in self.added]
        return [self.rows, self.labels, added, f"{self.moved:x}", repr(self.low), repr(self.high)]

    @classmethod
    def of(cls, state: Any) -> RoundSums:
        rows, labels, added, moved, low, high = state
        return cls(rows, labels, tuple(map(read, added)), int(moved, 16), float(low), float(high))


Part = dict[str, RoundSums]  # by the name of the parameter


class Round(NamedTuple):
    """Rows, labels, the most rows of one cell, the largest and smallest step, and the bound after the round."""

    rows: int
    labels: int
    lateness: int
    step: float
    smallest: float
    bound: float | None


def check_layer(layer: Any) -> None:
    """Refuse a layer whose postings are not sums over disjoint parameters with one step for a round."""
    plain = type(layer) is Debiaser and type(layer.internals.rule) is Descent and layer.penalty is None
    if not plain or type(layer.internals.rule.schedule) is not Constant:
        raise BadInput(
            "rounds are for a Debiaser with a given eta, link identity, logit or shift, and no penalty; "
            "give such as gradeq.Debiaser(eta=0.05)"
        )
    if layer.internals.names.features or len(layer.internals.names.groups) > 1 or layer.bins is not None:
        raise BadInput("rounds take one group column at most, no features and no bins")
    if layer.shadow or layer.frozen:
        raise BadInput("a layer that is frozen or in shadow mode learns nothing in rounds; resume it")


def served(layer: Debiaser, base: Floats, groups: Mapping[str, Iterable[object]] | None = None) -> Floats:
    """What the layer serves for these rows; the layer does not change."""
    return np.asarray(layer.copy().run(base, groups=cast(Any, groups)).served)


def part_of(
    layer: Debiaser, base: Floats, labels: Floats, groups: Mapping[str, Iterable[object]] | None = None
) -> tuple[Floats, Part]:
    """What is served for these rows, and the sums of their labels; a missing label is nan."""
    values = served(layer, base, groups)
    y = layer.label_column(labels, len(base))
    labelled = np.flatnonzero(~np.isnan(y))
    names, codes = names_of(layer, len(base), groups)
    table = accounts(layer, np.asarray(base, dtype=float)[labelled], values[labelled], y[labelled])
    if not np.isfinite(np.delete(table, (LOW, HIGH), axis=1)).all():
        raise BadInput("a label is so far from its prediction that its loss is not a number; leave it out")
    places, count = codes[labelled], len(names)
    sums = zip(*(exact_sums(table[:, c], places, count) for c in ADDED), strict=True)
    low, high = np.full(count, math.inf), np.full(count, -math.inf)
    np.minimum.at(low, places, table[:, LOW])
    np.maximum.at(high, places, table[:, HIGH])
    rows, counts = (np.bincount(column, minlength=count).tolist() for column in (codes, places))
    each = zip(rows, counts, sums, [0] * count, low.tolist(), high.tolist(), strict=True)
    return values, {name: RoundSums(*fields) for name, fields in zip(names, each, strict=True)}


def names_of(layer: Debiaser, n: int, groups: Mapping[str, Iterable[object]] | None) -> tuple[list[str], Ints]:
    if not layer.internals.names.groups:
        return [layer.internals.names.row(None)[0].names[0]], np.zeros(n, dtype=np.int64)
    (column,) = layer.internals.names.groups
    codes: dict[str, int] = {}
    each = (layer.internals.names.row({column: value})[0].names[0] for value in (groups or {})[column])
    at = np.fromiter((codes.setdefault(name, len(codes)) for name in each), np.int64, n)
    return list(codes), at


def accounts(layer: Debiaser, base: Floats, values: Floats, y: Floats) -> Floats:
    """The account of each label alone, row by row, computed by the rule."""
    n = len(y)
    if not n:
        return np.empty((0, COLUMNS))
    state = State(layer.internals.rule.columns())
    state.grow(n)
    places = [Place((i,), (i,), 0, 0) for i in range(n)]
    ones, row = np.ones(n), Row(("",), (1.0,))
    entries = Entries(
        places, [row] * n, base, values, base, y, [()] * n, ones, ones, ones, ones, ones, ones, [PROMPT] * n
    )  # fmt: skip
    with np.errstate(over="ignore", invalid="ignore"):  # of losses: squares of anything
        layer.internals.rule.account(state, entries)
    table: Floats = state.view("sums").reshape(n, COLUMNS).copy()
    return table


def together(one: Part, other: Part) -> Part:
    nothing = RoundSums()
    return {name: one.get(name, nothing).plus(other.get(name, nothing)) for name in {**one, **other}}


def posted(layer: Debiaser, sums: Part, part: Part) -> tuple[Debiaser, Part, Round]:
    """The layer and the sums of all rounds after this round, and the round itself; the arguments do not change.

    ``sums``: those after the last round, empty for a fresh layer. New names are entered in alphabetical order.
    """
    new = layer.copy()
    state, flight = new.internals.state, new.internals.lateness
    total, labels = sum(added.rows for added in part.values()), sum(added.labels for added in part.values())
    steps, after = [], dict(sums)
    state.number += total
    for name in sorted(part):
        added = part[name]
        count = float(added.labels)
        place = new.internals.enter(Row((name,), (1.0,)))
        (cell,) = place.cells
        state.rows[cell] += added.rows
        if added.labels:
            eta = step_of(new, cell, added.rows)
            flight.follow(state, place.params, eta, 1.0, count)
            capped_labels = count if eta < new.internals.rule.schedule.step(1) else 0.0
            delays = (count * (total - 1.0), total - 1.0)
            stats = LabelStats(eta, eta, capped_labels, 1.0, float(added.rows), *delays, eta)
            flight.record_stats(state, stats, 1.0, 1.0)
            note_lateness(new, cell, added.rows, added.labels)
            added = copy_with(added, moved=exact(eta) * added.added[ADDED.index(GRADIENT)])
        after[name] = after.get(name, RoundSums()).plus(added)
        if added.labels:
            enter(new, cell, after[name], eta)
            steps.append(eta)
    if labels:
        if hasattr(state, "total"):
            write(state.view("total"), reduce(RoundSums.plus, after.values()))
        state.facts[fact.POSTED] += labels
        hear(state.silence, float(state.number))
    most = max((added.rows for added in part.values()), default=0)
    ends = (max(steps, default=0.0), min(steps, default=0.0))
    return new, after, Round(total, labels, most, *ends, new.equilibrium().bound)


def step_of(layer: Debiaser, cell: int, late: int) -> float:
    """The step of all labels of a cell in a round: no label is later than the rows of its cell."""
    known, eta = layer.internals.state.late, layer.internals.rule.schedule.step(1)
    if layer.internals.lateness.limit is None:
        return float(eta)
    peak = peak_after(known, cell * LATENESS, float(late)) if len(known) else float(late)
    return float(capped(eta, layer.internals.lateness.limit, 1.0, peak, peak, 1.0))


def note_lateness(layer: Debiaser, cell: int, late: int, labels: int) -> None:
    """Note the lateness of these labels, epoch by epoch."""
    state, at = layer.internals.state, cell * LATENESS
    if not len(state.late):
        if late == AT_ONCE:
            return
        layer.internals.lateness.start_lateness(state, (cell,))
    while labels:
        in_epoch = min(labels, max(1, math.ceil(state.late[at + LENGTH] - state.late[at + COUNT])))
        state.late[at + COUNT] += in_epoch - 1.0
        note(state.late, at, float(late))
        labels -= in_epoch


def enter(layer: Debiaser, cell: int, sums: RoundSums, eta: float) -> None:
    account = layer.internals.state.view("sums")[cell * COLUMNS : (cell + 1) * COLUMNS]
    write(account, sums)
    u = -float(account[MOVED])
    rule = layer.internals.rule
    if isinstance(rule, Descent) and rule.ranged and abs(u) > NEAR * max(abs(sums.low), abs(sums.high)):
        raise diverging(eta)
    layer.internals.state.u[cell] = u


def write(account: Floats, sums: RoundSums) -> None:
    """Write exact sums to an account, each number rounded once."""
    account[ROWS], account[LOW], account[HIGH] = sums.labels, sums.low, sums.high
    account[list(ADDED)] = [rounded(units) for units in sums.added]
    account[MOVED] = sums.moved / (1 << 2 * UNIT)
