"""The parts of a layer, for gradeq's own modules, and the warnings about its input.

``layer.internals`` is not a public interface: it may change with any version. Users call the verbs of ``Layer``.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gradeq.certificates.figures import large_weight, no_weight_dominates
from gradeq.engine.columns import Engine, Ran, RowColumns, carried_over, run_columns
from gradeq.engine.lateness import PROMPT, SQUARED, Lateness, lateness, norm_of
from gradeq.errors import GradeqWarning, calling_depth
from gradeq.inputs.durations import NAIVE, NUMBERS, shown_time
from gradeq.ledger import facts as fact
from gradeq.ledger.state import FULL, State
from gradeq.ledger.values import Place, Posting, Row, Ticket, new
from gradeq.rules.rule import Rule, check_served, judged
from gradeq.schedules import Constant
from gradeq.tables import agreeing, some

if TYPE_CHECKING:
    from gradeq.engine.tickets import Fields, TicketBook
    from gradeq.layers.columns import Cells
    from gradeq.layers.layer import Layer
    from gradeq.layers.replay import Revisions
    from gradeq.ledger.batch import Floats


ServedValue = float | tuple[float, ...]
Serve = Callable[..., tuple[Any, tuple[float, ...], tuple[float, ...]]]  # as ``Rule.serve``
# Lateness in each cell, step, sign, memo, and the error (of several levels one each).
Terms = tuple[tuple[int, ...], float, float, tuple[float, ...], ServedValue]


@dataclass(eq=False)
class Internals:
    """The parts of a layer, and the two steps that every verb rests on: ``issue`` and ``post``.

    ``names``: the parameters by name. ``lateness``: how late labels come, and the cap on their steps. ``sizing``:
    what makes a row too large for its step (``engine.lateness``). ``learns``: whether a label is learned from; None:
    all are. ``as_served``: whether what is served is displayed unchanged, except in shadow mode. ``supports_auto``:
    whether ``eta="auto"`` goes with the other options. ``log``: manual changes, each with the number of predictions
    served before it.
    """

    kind: str
    rule: Rule
    names: Any
    state: State
    lateness: Lateness
    tickets: TicketBook
    warnings: InputWarnings
    revisions: Revisions
    sizing: str
    learns: Callable[[object], bool] | None
    as_served: bool
    supports_auto: bool
    frozen: bool = False
    log: list[tuple[str, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        schedule = self.rule.schedule
        self.constant_step = schedule.eta if type(schedule) is Constant else None
        # Steps of rows of weight 1 and known size were checked when the layer was made.
        known = self.constant_step is not None and not self.lateness.featured
        self.sized = known or self.sizing != SQUARED
        self.ticking: bool = self.names.clocked == "clock"

    def __setstate__(self, parts: dict[str, object]) -> None:
        """Set attributes one by one: reading them is slower if their dictionary is replaced as a whole."""
        for name, value in parts.items():
            setattr(self, name, value)

    def issue(
        self, row: Row, place: Place | None, f: object, weight: float, serve: Serve | None = None,
        relative: float | None = None,
    ) -> tuple[Fields, Place]:  # fmt: skip
        """Serve one checked row and count it: its ticket and its place. If this raises, nothing has changed.

        ``serve`` replaces ``Rule.serve``, ``relative`` the weight to learn with.
        """
        state, mark, step = self.state, None, self.constant_step
        if place is None:
            mark = self.names.mark()
            place = self.enter(row)
        try:
            if state.weighed:
                self.warnings.weigh(self, place.key)
            served, memo, slopes = (serve or self.rule.serve)(state, place, row[1], f)
            if step is None:
                t = int(getattr(state, self.names.clocked)[place.clock]) + 1
                step = self.rule.schedule.step(t)
            if type(served) is not float or served - served != 0.0:
                check_served(served, step)
        except Exception:
            self.forget(mark)
            raise
        raw_weight = weight
        if weight != 1.0 or state.weighed:
            weight = self.lateness.weigh(state, self.names, place.key, raw_weight)
            if relative is not None:
                weight = relative
        if weight != 1.0 or not self.sized:
            size = norm_of(row.values) if self.lateness.featured else self.names.size
            step = self.lateness.limited(state, self.sizing, step, weight, size)
        if self.ticking:
            state.clock[place.clock] += 1.0
        number, counts = self.lateness.serve(state, place[1])
        return (number, row, f, served, weight, step, counts, memo, slopes, raw_weight), place

    def post(
        self, ticket: Fields, place: Place, y: object, late: tuple[int, ...] = (), before: Terms | None = None
    ) -> Any:
        """Learn from a label: the fields of its posting, not judged yet.

        ``late`` defaults to the lateness that the ticket implies. ``before``: the terms and the error of a label
        that was posted before.
        """
        state, flight = self.state, self.lateness
        number, row, f, served, weight, step, _, memo, slopes, raw_weight = ticket[:10]
        now = state.number
        prompt = now == number and not late and not state.late  # at once, as all labels so far
        if before is not None:
            late, eta, sign, memo, error = before
        else:
            if prompt:
                late, eta = PROMPT * len(place[1]), step
            else:
                late, eta = flight.arrive(state, place, ticket, late)
            error, memo = self.rule.measure(served, f, y, memo)
            sign = 0.0 if self.frozen else 1.0
        posting: Any = (
            number, row, f, served, weight, step, eta, late, y, (), (), memo, slopes, sign, raw_weight,
        )  # fmt: skip
        if weight == 0.0:
            return posting
        if sign:
            self.rule.add(state, place, posting, error)
        if self.learns is not None and not self.learns(y):
            return posting
        if not sign:
            flight.skip(state, number)
            return posting
        if not prompt or flight.featured:
            flight.settle(state, place, late, row.values)
        log = state.log
        log += posting  # to be entered with others: see ``rules.rule``
        log += (place, now)
        if len(log) >= FULL:
            state.catch_up()
        return posting

    def post_ticket(self, ticket: Ticket, y: object) -> Posting:
        """Learn from the label of a ticket of the caller; if this raises, nothing has changed."""
        row = ticket.row
        place, mark = self.names.known(row), None
        if place is None:  # a ticket of another replica may bring a new group
            mark = self.names.mark()
            place = self.enter(row)
        try:
            late = lateness(self.state.rows, place.cells, ticket.counts)
            return judged(self.rule, new(Posting, self.post(ticket[:10], place, y, late)))
        except Exception:
            self.forget(mark)
            raise

    def enter(self, row: Row) -> Place:
        names = self.names
        place: Place = names.place(row)
        self.state.grow(names.count, names.keys)
        return place

    def forget(self, mark: Any) -> None:
        """Forget the names entered since ``mark``, and their parameters."""
        if mark is not None:
            self.names.forget(mark)
            self.state.shrink(self.names.count, self.names.keys)

    def run(self, columns: Callable[[], RowColumns]) -> tuple[Ran, RowColumns]:
        """One pass over the columns that the function returns (entering new names); undone if anything raises."""
        state, names, book = self.state, self.names, self.tickets
        mark, now, memory = names.mark(), book.now, None
        try:
            rows = columns()
            few = self.rule.penalty is None and 4 * len(rows.base) < names.count
            params, keys = rows.placed.rows.params if few else None, rows.placed.keys
            carried = [names.place(w.ticket.row) for w in carried_over(book, rows.times)]
            if carried:
                keys = np.append(keys, [place.key for place in carried])
            if carried and params is not None:
                params = np.append(params, [j for place in carried for j in place.params])
            memory = state.remember(params, keys) if state.undoable else None
            state.grow(names.count, names.keys)
            return run_columns(self.engine, rows), rows
        except Exception:
            names.forget(mark)
            if memory is not None:
                state.undo(memory)
            book.now = now
            raise

    @property
    def engine(self) -> Engine:
        parts = (self.rule, self.state, self.lateness, self.tickets, self.names)
        return Engine(*parts, self.frozen, self.sizing, self.names.size)

    def note(self, what: str) -> None:
        self.log.append((what, int(self.state.facts[fact.SERVED])))


ENOUGH = 30  # labels before the warning about probabilities
LARGE_WEIGHT = "outweighs all others served so far"
PROBABILITIES = (
    "these look like probabilities with 0/1 labels, corrected as plain numbers: every prediction lies in [0, 1] and "
    'every label is 0 or 1; make the layer with outcome="binary", and what is served stays in [0, 1]'
)


@dataclass(eq=False)
class InputWarnings:
    """What the rows of a layer look like, and the warnings issued so far; not part of its state."""

    probable: bool  # whether all predictions and labels so far could be probabilities and outcomes
    labels: int = 0
    evidence: set[str] = field(default_factory=set)
    silent: bool = False
    issued: set[str] = field(default_factory=set)

    def look(self, base: object, y: object) -> None:
        if not self.probable:
            return
        f, label = np.asarray(base, np.float64), np.asarray(y, np.float64)
        known = ~np.isnan(label)
        self.probable = bool(((f >= 0.0) & (f <= 1.0)).all() and np.isin(label[known], (0.0, 1.0)).all())
        self.labels += int(np.count_nonzero(known))
        for name, rows in (("0", label == 0.0), ("1", label == 1.0), ("between", (f > 0.0) & (f < 1.0))):
            if rows.any():
                self.evidence.add(name)

    def warn(self) -> None:
        """Warn once if plain numbers look like probabilities."""
        if self.probable and self.labels >= ENOUGH and len(self.evidence) == 3:
            self.say(PROBABILITIES)

    def weigh(self, internals: Internals, key: int | None = None) -> None:
        """Warn once if one weight outweighs all others, so that later rows are learned slowly."""
        if (
            self.silent
            or LARGE_WEIGHT in self.issued
            or (key is not None and no_weight_dominates(internals.state, key))
        ):
            return
        large = large_weight(internals, key)
        if large is not None:
            self.issued.add(LARGE_WEIGHT)
            self.say(
                f"the weight {large.named} {LARGE_WEIGHT} ({large.usual:.3g} on average), and weights are relative "
                f"to the mean of those so far: rows after it are learned up to {large.slowest:,.3g} times as slowly, "
                f"until about {large.rows:,.3g} rows were served. If it is a mistake, go back to the layer as it was "
                "before that row; if it is right, cap weights, such as np.minimum(w, 20 * np.median(w))"
            )

    def say(self, text: str | None) -> None:
        """Warn, but only once."""
        if text is not None and not self.silent and text not in self.issued:
            self.issued.add(text)
            warnings.warn(text, GradeqWarning, stacklevel=calling_depth())


def silenced(layer: Layer) -> Layer:
    """The same layer without warnings, for callers that report them themselves."""
    layer.internals.warnings.silent = True
    return layer


def dated_before(times: Cells | None, due: Cells | None, y: Floats, kind: str | None) -> str | None:
    """The warning about labels that are dated before their own rows; None without any."""
    if times is None or due is None:
        return None
    known = ~np.isnan(y)
    early = known & (due < times)
    count = int(np.count_nonzero(early))
    if not count:
        return None
    i, dates = int(np.argmax(early)), kind not in (None, NUMBERS)
    first = f"row {i}, {shown_time(due[i], dates)} before {shown_time(times[i], dates)}"
    have, whose = agreeing(count, "has", "have"), agreeing(count, "its row", "their row")
    return (
        f"{count:,} of {some(int(np.count_nonzero(known)), 'label')} {have} a label time before the time of {whose} "
        f"(first: {first}); a label cannot be known before its row is served, so each was taken as known "
        "right after it; are times and label_times swapped?"
    )


def clocks_changed(times: Cells | None, kind: str | None) -> str | None:
    """The warning about local times in which an hour occurs twice; None for others."""
    if times is None or kind != NAIVE:
        return None
    from gradeq.files.times import ClockChanges

    description = ClockChanges().look(times).description
    if description is None:
        return None
    return (
        f"times without a zone go back by {description}: were clocks changed? rows are served in the order of the "
        "written times, so rows of that hour may be in the wrong order; give times with a zone, or in UTC"
    )
