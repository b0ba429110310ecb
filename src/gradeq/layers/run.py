"""Whole columns through a layer: many predictions, many labels, or both in one pass; and its result."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar, cast

import numpy as np

from gradeq.engine.columns import (
    Ran,
    RowColumns,
    RunTickets,
    carried_over,
    in_order,
    new_ids,
    run_columns,
    serving_order,
)
from gradeq.engine.tickets import Id, TicketBook, WaitingLabel, warn_replaced
from gradeq.equilibrium import figure
from gradeq.errors import BadInput, ExpiredTicket, GradeqError, LabelConflict, UnknownTicket, warn_deprecated
from gradeq.inputs.arguments import name_of
from gradeq.inputs.column_types import Column, ColumnLike, ColumnsByName, FloatArray
from gradeq.layers import columns as check
from gradeq.layers.columns import Cells, Codes
from gradeq.layers.internals import clocks_changed, dated_before
from gradeq.layers.waiting import mature_columns, screen_columns
from gradeq.ledger.batch import Floats, Ints
from gradeq.records import copy_with
from gradeq.rules.rating import COIN, NOT_LATE
from gradeq.tables import html_table, some

if TYPE_CHECKING:
    import narwhals as nw

    from gradeq.engine.players import Players
    from gradeq.layers.conformal import PredictionSet
    from gradeq.layers.elo import Elo
    from gradeq.layers.internals import Internals
    from gradeq.layers.layer import Layer
    from gradeq.layers.predicting import Predicting
    from gradeq.ledger.pair_table import GamePairs
    from gradeq.ledger.state import State
    from gradeq.rules.rule import Rule

    ColumnLayer = Predicting[float | tuple[float, ...] | PredictionSet]

ServedColumn = TypeVar("ServedColumn", bound=ColumnLike, covariant=True)
Reader = Callable[[Any], Mapping[str, float]]  # numbers of a layer by name
POINTS = 200  # moments at which a trace reads the parameters
HEAD = 5  # rows that a notebook shows
TRACED = 10_000  # parameters; a longer state is not copied for a trace
OUTSIDE = "lies outside [0, 1]; a's score is 1 for a win, 0 for a loss, 0.5 for a tie"
WORDS: dict[type[GradeqError], str] = {
    LabelConflict: "conflict",
    UnknownTicket: "unknown",
    ExpiredTicket: "expired",
    BadInput: "rejected",
}


class Trace(NamedTuple):
    """Numbers along a run: after ``rows`` rows, ``theta`` (one column for each of ``names``)."""

    rows: Ints
    names: list[str]
    theta: FloatArray


class Run(Generic[ServedColumn]):
    """What a pass over columns gave.

    ``served``: the adjusted predictions, of the same type as the predictions ((n, K) for several levels, or as many
    columns as were given). ``weighed``: the weights that rows are learned with, relative to their running mean (None:
    all 1). ``capped``: steps that late labels made smaller. ``labelled``: rows learned from; ``waiting``: labels not
    due by the last row, kept for a later run; ``expired``: tickets that outlived their ttl.
    """

    def __init__(
        self, served: ServedColumn, values: FloatArray, ran: Ran, path: Callable[[Reader], Trace], columns: RowColumns
    ) -> None:
        self.served, self.values, self.columns = served, values, columns
        self.labelled, self.waiting, self.expired = len(ran.posts), ran.waiting, ran.expired
        self.posts, self.weighed, self.capped = ran.posts, ran.weights, ran.capped
        self.path = path  # any numbers of the layer over the run, at the moments of ``trace``
        self._traces: dict[str, Trace] = {}

    def __repr__(self) -> str:
        """Number of rows and labels, and the type of what was served."""
        rows, kind = len(self.values), type(self.served).__name__
        late = f", {some(self.waiting, 'label')} waiting" if self.waiting else ""
        return f"Run of {some(rows, 'row')}, {self.labelled:,} labelled{late}; served: {kind}"

    def _repr_html_(self) -> str:
        """The same for notebooks, with the first rows that were served."""
        first = [np.atleast_1d(served).tolist() for served in self.values[:HEAD]]
        width = len(first[0]) if first else 0
        head = ["row", *(["served"] if width == 1 else [f"served {k + 1}" for k in range(width)])]
        rows = [[f"{k:,}", *map(figure, served)] for k, served in enumerate(first)]
        more = len(self.values) - len(rows)
        return html_table(repr(self), head, rows, f"... and {more:,} more" if more else "")

    @property
    def trace(self) -> Trace:
        """The parameters over the run, at up to 200 moments (computed when first asked for, by running again)."""
        return self._traced("theta")

    @property
    def tracker_weights(self) -> Trace:
        """The weights of an ensemble's trackers over the run, at the moments of ``trace``."""
        return self._traced("tracker_weights")

    @property
    def weights(self) -> Trace:
        """Deprecated: use ``tracker_weights``. It will be removed in the next version."""
        warn_deprecated("Run.weights", "tracker_weights")
        return self.tracker_weights

    def _traced(self, name: str) -> Trace:
        if name not in self._traces:
            self._traces[name] = self.path(lambda layer: getattr(layer, name))
        return self._traces[name]


class EloRun(Run[ServedColumn]):
    """What a pass over games gave.

    ``served``: the probability before each game that a wins, of the same type as the scores (or the players).
    ``labelled``: games learned from; ``ties``: scores of 1/2; ``skipped``: games of a player against itself;
    ``waiting``, ``expired``: late scores, as for every layer.
    """

    ties: int
    skipped: int

    @property
    def trace(self) -> Trace:
        """The ratings over the run, at up to 200 moments (computed when first asked for, by playing again)."""
        return self._traced("ratings")


@dataclass(frozen=True)
class StartOfRun:
    """The parts of a layer before a run, for its trace."""

    state: State
    waiting: list[WaitingLabel]
    frozen: bool
    rule: Rule


def start_of(layer: Layer, times: Cells | None) -> StartOfRun | None:
    parts = layer.internals
    if parts.names.count > TRACED:
        return None
    return StartOfRun(parts.state.copy(), carried_over(parts.tickets, times), parts.frozen, parts.rule)


def traced(layer: Layer, start: StartOfRun | None, columns: RowColumns, read: Reader) -> Trace:
    """Numbers of a layer at up to 200 moments of a run, by running it again in pieces, bit for bit the same."""
    if layer.kind == "keyed":
        raise BadInput("a run over many keys keeps no trace; run one key by itself to see its path")
    if start is None:
        raise BadInput(f"a run over more than {TRACED:,} parameters keeps no trace")
    twin = layer.copy()
    parts, names = twin.internals, layer.internals.names
    parts.rule, parts.frozen, parts.tickets = start.rule, start.frozen, TicketBook(layer.internals.tickets.ttl)
    parts.state = start.state.copy()
    parts.tickets.hold(start.waiting)
    parts.state.grow(names.count, names.keys)
    n, order = len(columns.base), serving_order(columns.times)
    order = np.arange(n) if order is None else order
    cuts = np.unique(np.linspace(0, n, min(POINTS, n) + 1).astype(int))
    readings = [dict(read(twin))]
    for a, b in pairwise(cuts.tolist()):
        run_columns(parts.engine, in_order(columns, order[a:b])._replace(tickets=None))
        readings.append(dict(read(twin)))
    last = list(readings[-1])
    return Trace(cuts, last, np.array([[reading.get(name, 0.0) for name in last] for reading in readings]))


# Layers on top of a prediction


@dataclass(frozen=True)
class InputColumns(Generic[Column]):
    """The arguments of ``run`` or ``predict_many``; ``key``: the series of each row of a ``Keyed``."""

    predictions: Column
    labels: ColumnLike | None = None
    groups: ColumnsByName | None = None
    features: ColumnsByName | None = None
    times: ColumnLike | None = None
    label_times: ColumnLike | None = None
    weights: ColumnLike | None = None
    ids: ColumnLike | None = None
    key: ColumnLike | None = None


class CheckedColumns(NamedTuple):
    """Checked columns in input order; ``weights`` None means all 1."""

    base: Floats
    labels: Floats
    weights: Floats | None
    times: Cells | None
    label_times: Cells | None


def checked(layer: ColumnLayer, columns: InputColumns[Column]) -> CheckedColumns:
    """Predictions, labels, weights, times and label times; a label that can never come is missing."""
    base = layer.prediction_column(columns.predictions)
    n = len(base)
    y = layer.label_column(columns.labels, n)
    check.same_length(n, len(y), "labels")
    w = None if columns.weights is None else check.weights(columns.weights, n)
    when, due, never = check.clocks(columns.times, columns.label_times, n, layer.internals.tickets)
    return CheckedColumns(base, np.where(never, np.nan, y) if never.any() else y, w, when, due)


def time_warnings(parts: Internals, when: Cells | None, due: Cells | None, y: Floats) -> list[str | None]:
    kind = parts.tickets.clock
    return [] if parts.warnings.silent else [dated_before(when, due, y, kind), clocks_changed(when, kind)]


@contextmanager
def counted_missing(book: TicketBook, when: Cells | None) -> Iterator[None]:
    """Rows that are mature by the last of these times count as missing, unless the body raises."""
    missing = [] if when is None or not len(when) else book.count_missing(float(when.max()))
    try:
        yield
    except Exception:
        book.reopen(missing)
        raise


def run_layer(layer: ColumnLayer, inputs: InputColumns[Column]) -> Run[Column]:
    """Check everything, then one pass; the layer is unchanged if anything is refused."""
    parts, book, warnings = layer.internals, layer.internals.tickets, layer.internals.warnings
    check.same_index(**vars(inputs))
    base, y, w, when, due = checked(layer, inputs)
    texts = time_warnings(parts, when, due, y)
    if book.maturity:
        y, due = mature_columns(book, y, when, due, inputs.ids is not None)
    rows = (len(base), *check.grouped(layer, base, inputs.groups, inputs.features))
    series = () if inputs.key is None else (inputs.key,)
    tickets = None if inputs.ids is None else RunTickets(checked_ids(book, inputs.ids, len(base)), y)
    with counted_missing(book, when):
        early, moved = copy(book.early), list[WaitingLabel]()
        if when is not None:
            due, moved = screen_columns(parts, base, y, w, when, due)
        start = None if series else start_of(layer, when)
        try:
            ran, columns = parts.run(
                lambda: RowColumns(base, y, w, parts.names.columns(*series, *rows), when, due, tickets)
            )
        except Exception:
            book.hold(moved)
            book.early = early
            raise
    served = check.like(inputs.predictions, layer.displayed(base, ran.served))
    if not warnings.silent:
        warnings.say(None if book.early is None else book.early.warning)
        warnings.look(base, y)
        warnings.warn()
        warnings.weigh(parts)
        for text in texts:
            warnings.say(text)
    return Run(served, ran.served, ran, partial(traced, layer, start, columns), columns)


def checked_ids(book: TicketBook, ids: ColumnLike | None, n: int) -> list[Id | None]:
    """A column of new ids, text or whole numbers; None for rows without ids."""
    if ids is None:
        return [None] * n
    cells = check.cells(ids, "ids")
    check.same_length(n, len(cells), "ids")
    for row, id in enumerate(cells):
        if id is None or id != id:
            raise BadInput(f"row {row} has no id; give every row one, or leave out ids")
    return new_ids(book, cells)


def serve_many(layer: ColumnLayer, inputs: InputColumns[Column]) -> Column:
    """Check everything, then serve all rows in one pass and keep every ticket; the layer is unchanged if refused.

    A frame with a column ``prediction`` may have the other columns too (weight, id, time, key, groups, features) and
    comes back with what was served.
    """
    parts, book = layer.internals, layer.internals.tickets
    frame = frame_with(inputs.predictions, "prediction")
    if frame is not None:
        inputs = from_frame(layer, frame, inputs)
    check.same_index(**vars(inputs))
    base = layer.prediction_column(inputs.predictions)
    n = len(base)
    groups, features = check.grouped(layer, base, inputs.groups, inputs.features)
    weights = None if inputs.weights is None else check.weights(inputs.weights, n)
    series = () if inputs.key is None else (inputs.key,)
    if layer.kind == "keyed" and not series:
        raise BadInput("predict_many needs key: the column that says to which series a row belongs")
    tickets = RunTickets(checked_ids(book, inputs.ids, n), np.full(n, math.nan))
    when = None
    if inputs.times is not None:
        when = check.times(inputs.times, n, "times", book).values
        tickets = copy_with(tickets, times=[float(time) for time in when.tolist()])
    elif book.maturity:
        raise BadInput("a layer with maturity needs times: when each row was served")
    when = when if book.maturity else None  # labels become due between the rows
    replaced = replaced_singles(book, tickets, inputs.key)

    def row_columns() -> RowColumns:
        placed = parts.names.columns(*series, n, groups, features)
        return RowColumns(base, tickets.labels, weights, placed, when, tickets=tickets)

    with counted_missing(book, when):
        ran, _ = parts.run(row_columns)
    for key in replaced:
        book.replace_single(key)
    served = layer.displayed(base, ran.served)
    if frame is None:
        return check.like(inputs.predictions, served)
    table = served[:, None] if served.ndim == 1 else served
    names = served_names(layer, table.shape[1])
    return cast(Column, check.with_columns(frame, dict(zip(names, table.T, strict=True))))


def replaced_singles(book: TicketBook, tickets: RunTickets, key: ColumnLike | None) -> list[str | None]:
    """The keys whose open prediction without an id a batch replaces; None for a layer without keys."""
    replaced = [key for key in book.singles if book.single(key) is not None]
    if not replaced:
        return []
    keys = [None] * len(tickets.ids) if key is None else map(name_of, check.cells(key, "key"))
    without_id = {key for key, id in zip(keys, tickets.ids, strict=False) if id is None}
    replaced = [key for key in replaced if key in without_id]
    if replaced and not book.replaced:
        warn_replaced(replaced[0])
    return replaced


def frame_with(value: object, column: str) -> nw.DataFrame[Any] | None:
    if not hasattr(value, "columns") and not hasattr(value, "column_names"):
        return None
    frame = check.as_frame(value)
    return frame if column in frame.columns else None


def from_frame(layer: ColumnLayer, frame: nw.DataFrame[Any], inputs: InputColumns[Column]) -> InputColumns[Any]:
    """The columns of a frame, except those that were passed as arguments."""
    columns: dict[str, object] = {"predictions": frame["prediction"].to_native()}
    names = {"weights": "weight", "ids": "id", "times": "time"} | ({"key": "key"} if layer.kind == "keyed" else {})
    for field, name in names.items():
        if getattr(inputs, field) is None and name in frame.columns:
            columns[field] = frame[name].to_native()
    for field in ("groups", "features"):
        present = [name for name in getattr(layer.internals.names, field) if name in frame.columns]
        if getattr(inputs, field) is None and present:
            columns[field] = {name: frame[name].to_native() for name in present}
    return dataclasses.replace(inputs, **cast(Any, columns))


def served_names(layer: Layer, width: int) -> list[str]:
    """The names of the columns of what was served: one, one for each level, or the ends of an interval."""
    if width == 1:
        return ["adjusted"]
    names = [f"adjusted_{level:g}" for level in getattr(layer.pattern, "levels", ())]
    return names if width == len(names) and layer.pattern.kind != "interval" else ["lower", "upper"]


def answer_many(verb: Callable[..., str], labels: Column, options: Mapping[str, ColumnLike | None]) -> Column:
    """The outcome of every label, in the form of the labels; ``options``: columns of other arguments of the verb."""
    frame, column, others = frame_with(labels, "label"), cast(object, labels), dict(options)
    if frame is not None:
        column = frame["label"].to_native()
        for name in others:
            if others[name] is None and name in frame.columns:
                others[name] = frame[name].to_native()
    check.same_index(labels=column, **others)
    rows = check.cells(column, "labels")
    cells = {name: check.cells(other, name) for name, other in others.items() if other is not None}
    for name, other in cells.items():
        if len(other) != len(rows):
            raise BadInput(f"{name} has {len(other)} rows, labels have {len(rows)}; give columns of one length")
    outcomes = []
    for y, *values in zip(rows, *cells.values(), strict=True):
        outcomes.append(outcome_of(partial(verb, y, **dict(zip(cells, values, strict=True)))))
    if frame is not None:
        return cast(Column, check.with_columns(frame, {"outcome": outcomes}))
    return check.like(labels, np.array(outcomes, dtype=object))


def outcome_of(verb: Callable[[], str]) -> str:
    """The outcome of a label: that of the verb, or its refusal as one word; other errors are raised."""
    try:
        return verb()
    except (LabelConflict, UnknownTicket, ExpiredTicket, BadInput) as refusal:
        return WORDS[type(refusal)]


# Games


@dataclass(frozen=True)
class GameColumns:
    """The arguments of ``Elo.run``."""

    a: ColumnLike
    b: ColumnLike
    score: ColumnLike | None = None
    weights: ColumnLike | None = None
    home: ColumnLike | None = None
    times: ColumnLike | None = None
    label_times: ColumnLike | None = None
    ids: ColumnLike | None = None


def run_elo(elo: Elo, inputs: GameColumns, skip_self: bool) -> EloRun[ColumnLike]:
    """Check everything, then one pass; the layer is unchanged if anything is refused."""
    parts, warnings, book = elo.internals, elo.internals.warnings, elo.internals.tickets
    check.same_index(**vars(inputs))
    players = two_columns(inputs.a, inputs.b)
    n = len(players[0].codes)
    y = scores(inputs.score, n)
    w = None if inputs.weights is None else check.weights(inputs.weights, n)
    h = sides(elo, inputs.home, n)
    when, due, never = check.clocks(inputs.times, inputs.label_times, n, book, "game")
    texts = time_warnings(parts, when, due, y)
    if (due is not None or inputs.ids is not None) and elo.proximal is not None:
        raise BadInput(NOT_LATE)
    ids = None if inputs.ids is None else checked_ids(book, inputs.ids, n)
    rows: Ints | None = None  # those that are games; None: all of them
    ties = 0

    def row_columns() -> RowColumns:
        nonlocal rows, ties
        pairs, rows = games(parts.names, players, skip_self)
        columns = [y, w, h, when, due, never]
        if rows is not None:
            columns = [None if column is None else column[rows] for column in columns]
        played, weights, home, served_at, due_at, lost = cast(list[Any], columns)
        tickets = None
        if ids is not None:
            played_ids = ids if rows is None else [ids[k] for k in rows.tolist()]
            tickets = RunTickets(played_ids, np.where(lost, np.nan, played))
        tied = played == 0.5
        ties = int(np.count_nonzero(tied))
        if elo.ties == "drop":  # a dropped tie does not count
            lost = lost | tied
        if lost.any():
            played = np.where(lost, np.nan, played)
        base = np.broadcast_to(COIN, len(pairs.a))
        return RowColumns(base, played, weights, parts.names.columns(pairs, home), served_at, due_at, tickets)

    start = start_of(elo, when)
    ran, columns = parts.run(row_columns)
    values = ran.served
    if rows is not None:
        values = np.full(n, np.nan)
        values[rows] = ran.served
        ran = copy_with(ran, posts=rows[ran.posts])
    served = check.like(inputs.a if inputs.score is None else inputs.score, values)
    run = EloRun(served, values, ran, partial(traced, elo, start, columns), columns)
    run.ties, run.skipped = ties, n - len(columns.base)
    for text in texts:
        warnings.say(text)
    warnings.weigh(parts)
    return run


def two_columns(a: ColumnLike, b: ColumnLike) -> list[Codes]:
    players = [check.player_codes(column, f"player {what}") for column, what in ((a, "a"), (b, "b"))]
    first, second = (len(column.codes) for column in players)
    if first != second:
        raise BadInput(f"a has {first} rows, b has {second}; give columns of one length")
    return players


def scores(score: ColumnLike | None, n: int) -> Floats:
    y = np.full(n, np.nan) if score is None else check.floats(score, "label", missing=True)
    check.same_length(n, len(y), "score")
    check.refuse((y < 0.0) | (y > 1.0), y, "score", OUTSIDE)
    return y


def games(names: Players, players: list[Codes], skip_self: bool) -> tuple[GamePairs, Ints | None]:
    """The players of each game, entered if new, and which rows are games (None: all of them)."""
    mark = names.mark()
    pairs = names.entered(players)
    same = pairs.a == pairs.b
    if not same.any():
        return pairs, None
    row = int(np.argmax(same))
    if not skip_self:
        raise BadInput(
            f"row {row}: player {names.names[pairs.a[row]]!r} cannot play itself "
            f"({int(same.sum())} such rows); drop it, or use skip_self"
        )
    rows = np.flatnonzero(~same)
    names.forget(mark)  # a player without other games is not entered
    return names.entered([(codes[rows], labels) for codes, labels in players]), rows


def sides(elo: Elo, home: ColumnLike | None, n: int) -> Floats | None:
    """The side of a in each game (1: at home, -1: away); None without a home advantage."""
    if not elo.internals.names.home:
        if home is not None:
            raise BadInput("this Elo has no advantage of the first side; use home_advantage=True")
        return None
    if home is None:
        return np.ones(n)
    column = check.floats(home, "home")
    check.refuse((column < -1.0) | (column > 1.0), column, "home", "must be 1 (a at home), 0 or -1 (b at home)")
    check.same_length(n, len(column), "home")
    return column
