"""Rounds: many rows served from one state, wherever they are, and what their labels add as exact sums.

A round is served from the state that all rounds before it left behind. ``served`` and ``part_of`` can be done piece
by piece, in any order, on any machine: a part is whole numbers, parts add up exactly, and so the state after a round
does not depend on how its rows were cut. To the theory a round is a run that serves all its rows and then hears all
its labels: no label is later than the rows of its cell in the round, and the late-label cap and its bounds hold for
that. Which row came first is not known, so every label counts as late as the first row's might be.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from gradeq.engine.label_stats import LabelStats
from gradeq.engine.lateness import hear
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
    """What the rows of one parameter add: how many, how many of them with labels, and their account.

    ``added``: the numbers of the account that add up, in units of 2^-1074; ``moved``: steps times gradients, in units
    of 2^-2148, known only once the round is posted; ``low`` and ``high``: the range of residuals.
    """

    rows: int = 0
    labels: int = 0
    added: tuple[int, ...] = (0,) * len(ADDED)
    moved: int = 0
    low: float = math.inf
    high: float = -math.inf

    def plus(self, other: RoundSums) -> RoundSums:
        both = tuple(a + b for a, b in zip(self.added, other.added, strict=True))
        ends = (min(self.low, other.low), max(self.high, other.high))
        return RoundSums(self.rows + other.rows, self.labels + other.labels, both, self.moved + other.moved, *ends)

    def state(self) -> list[object]:
        added = [written(units) for units in self.added]
        return [self.rows, self.labels, added, f"{self.moved:x}", repr(self.low), repr(self.high)]

    @classmethod
    def of(cls, state: Any) -> RoundSums:
        rows, labels, added, moved, low, high = state
        return cls(rows, labels, tuple(map(read, added)), int(moved, 16), float(low), float(high))


Part = dict[str, RoundSums]  # by the name of the parameter


class Round(NamedTuple):
    """What a round was: rows, labels, the most rows of one cell, its largest and smallest step; the bound after."""

    rows: int
    labels: int
    lateness: int
    step: float
    smallest: float
    bound: float | None


def check_layer(layer: Any) -> None:
    """Refuse a layer whose postings are not sums over disjoint parameters with one step for a round."""
    known = type(layer) is Debiaser and type(layer.internals.rule) is Descent
    if not known or type(layer.internals.rule.schedule) is not Constant or layer.penalty is not None:
        raise BadInput(
            "rounds are for a Debiaser with a given eta, link identity, logit or shift, and no penalty; "
            "give such as gradeq.Debiaser(eta=0.05)"
        )
    if layer.internals.names.features or len(layer.internals.names.groups) > 1 or layer.bins is not None:
        raise BadInput("rounds take one group column at most, no features and no bins")
    if layer.shadow or layer.frozen:
        raise BadInput("a layer that is frozen or in shadow mode learns nothing in rounds; resume it")


def served(layer: Debiaser, base: Floats, groups: Mapping[str, Iterable[object]] | None = None) -> Floats:
    """What is served for rows from the state as it is; the layer stays as it was."""
    own = layer.copy()
    nothing = np.full(len(base), np.nan)
    return np.asarray(own.run(base, nothing, **({} if groups is None else {"groups": groups})).served)


def part_of(
    layer: Debiaser, base: Floats, labels: Floats, groups: Mapping[str, Iterable[object]] | None = None
) -> tuple[Floats, Part]:
    """What is served for these rows, and what their labels add; a missing label is nan."""
    shown = served(layer, base, groups)
    y = layer.label_column(labels, len(base))
    heard = np.flatnonzero(~np.isnan(y))
    names, at = names_of(layer, len(base), groups)
    table = accounts(layer, np.asarray(base, dtype=float)[heard], shown[heard], y[heard])
    if not np.isfinite(np.delete(table, (LOW, HIGH), axis=1)).all():
        raise BadInput("a label is so far from its prediction that its loss is no number; leave it out")
    rows, counts = (np.bincount(own, minlength=len(names)).tolist() for own in (at, at[heard]))
    sums = [exact_sums(table[:, c], at[heard], len(names)) for c in ADDED]
    low, high = np.full(len(names), math.inf), np.full(len(names), -math.inf)
    np.minimum.at(low, at[heard], table[:, LOW])
    np.maximum.at(high, at[heard], table[:, HIGH])
    ends = zip(low.tolist(), high.tolist(), strict=True)
    each = zip(names, rows, counts, zip(*sums, strict=True), ends, strict=True)
    return shown, {name: RoundSums(n, m, own, 0, *end) for name, n, m, own, end in each}


def names_of(layer: Debiaser, n: int, groups: Mapping[str, Iterable[object]] | None) -> tuple[list[str], Ints]:
    if not layer.internals.names.groups:
        return [layer.internals.names.row(None)[0].names[0]], np.zeros(n, dtype=np.int64)
    (column,) = layer.internals.names.groups
    values = list((groups or {})[column])
    found: dict[str, int] = {}
    at = np.empty(n, dtype=np.int64)
    for i, value in enumerate(values):
        name = layer.internals.names.row({column: value})[0].names[0]
        at[i] = found.setdefault(name, len(found))
    return list(found), at


def accounts(layer: Debiaser, base: Floats, shown: Floats, y: Floats) -> Floats:
    """The account of each label alone, row by row, computed by the rule."""
    n = len(y)
    if not n:
        return np.empty((0, COLUMNS))
    state = State(layer.internals.rule.columns())
    state.grow(n)
    places = [Place((i,), (i,), 0, 0) for i in range(n)]
    ones, row = np.ones(n), Row(("",), (1.0,))
    own = Entries(
        places, [row] * n, base, shown, base, y, [()] * n, ones, ones, ones, ones, ones, ones, [(1,)] * n
    )  # fmt: skip
    with np.errstate(over="ignore", invalid="ignore"):  # of losses: squares of anything
        layer.internals.rule.account(state, own)
    table: Floats = state.view("sums").reshape(n, COLUMNS).copy()
    return table


def together(one: Part, other: Part) -> Part:
    found = dict(one)
    for name, own in other.items():
        found[name] = found[name].plus(own) if name in found else own
    return found


def posted(layer: Debiaser, sums: Part, part: Part) -> tuple[Debiaser, Part, Round]:
    """The layer and the sums of all rounds once a round is posted, and what it was; what was given stays as it was.

    ``sums`` are those that the last round gave, none for a fresh layer. Names come in the order of the alphabet.
    """
    new = layer.copy()
    state, flight = new.internals.state, new.internals.lateness
    total = sum(own.rows for own in part.values())
    labels, steps, done = sum(own.labels for own in part.values()), [], dict(sums)
    state.number += total
    for name in sorted(part):
        own = part[name]
        place = new.internals.enter(Row((name,), (1.0,)))
        (cell,) = place.cells
        state.rows[cell] += own.rows
        if not own.labels:
            done[name] = done.get(name, RoundSums()).plus(own)
            continue
        eta = step_of(new, cell, own.rows)
        flight.follow(state, place.params, eta, 1.0, float(own.labels))
        held = float(own.labels) if eta < new.internals.rule.schedule.step(1) else 0.0
        waited = (float(own.labels) * (total - 1.0), total - 1.0)
        flight.record_stats(state, LabelStats(eta, eta, held, 1.0, float(own.rows), *waited, eta), 1.0, 1.0)
        linger(new, cell, own.rows, own.labels)
        moved = exact(eta) * own.added[ADDED.index(GRADIENT)]
        done[name] = done.get(name, RoundSums()).plus(copy_with(own, moved=moved))
        enter(new, cell, done[name], eta)
        steps.append(eta)
    if labels:
        if hasattr(state, "total"):
            whole = RoundSums()
            for own in done.values():
                whole = whole.plus(own)
            write(state.view("total"), whole)
        state.facts[fact.POSTED] += labels
        hear(state.silence, float(state.number))
    most = max((own.rows for own in part.values()), default=0)
    ends = (max(steps, default=0.0), min(steps, default=0.0))
    return new, done, Round(total, labels, most, *ends, new.equilibrium().bound)


def step_of(layer: Debiaser, cell: int, late: int) -> float:
    """The step of all labels of a cell in a round: none of them is later than its rows there."""
    known, eta = layer.internals.state.late, layer.internals.rule.schedule.step(1)
    if layer.internals.lateness.limit is None:
        return float(eta)
    peak = peak_after(known, cell * LATENESS, float(late)) if len(known) else float(late)
    return float(capped(eta, layer.internals.lateness.limit, 1.0, peak, peak, 1.0))


def linger(layer: Debiaser, cell: int, late: int, labels: int) -> None:
    """Note the lateness of these labels, epoch by epoch."""
    state, at = layer.internals.state, cell * LATENESS
    if not len(state.late):
        if late == 1:
            return
        layer.internals.lateness.start_lateness(state, (cell,))
    while labels:
        left = max(1, math.ceil(state.late[at + LENGTH] - state.late[at + COUNT]))
        some = min(left, labels)
        state.late[at + COUNT] += some - 1.0
        note(state.late, at, float(late))
        labels -= some


def enter(layer: Debiaser, cell: int, own: RoundSums, eta: float) -> None:
    account = layer.internals.state.view("sums")[cell * COLUMNS : (cell + 1) * COLUMNS]
    write(account, own)
    u = -float(account[MOVED])
    rule = layer.internals.rule
    if isinstance(rule, Descent) and rule.ranged and abs(u) > NEAR * max(abs(own.low), abs(own.high)):
        raise diverging(eta)
    layer.internals.state.u[cell] = u


def write(account: Floats, own: RoundSums) -> None:
    """The account that exact sums mean, each number rounded once."""
    account[ROWS], account[LOW], account[HIGH] = own.labels, own.low, own.high
    for c, units in zip(ADDED, own.added, strict=True):
        account[c] = rounded(units)
    account[MOVED] = own.moved / (1 << 2 * UNIT)
