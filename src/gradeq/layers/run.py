"""Whole columns through a layer: many predictions, many labels, or both in one pass; what such a pass gave."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
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
    from gradeq.layers.layer import Layer
    from gradeq.layers.predicting import Predicting
    from gradeq.ledger.pair_table import GamePairs
    from gradeq.ledger.state import State
    from gradeq.rules.rule import Rule

    ColumnLayer = Predicting[float | tuple[float, ...] | PredictionSet]

ServedColumn = TypeVar("ServedColumn", bound=ColumnLike, covariant=True)
POINTS = 200  # moments at which a trace reads the parameters
HEAD = 5  # rows that a notebook shows
TRACED = 10_000  # parameters; a longer state is not kept for a trace
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
        self,
        served: ServedColumn,
        values: FloatArray,
        ran: Ran,
        again: Callable[[Callable[[Any], Mapping[str, float]]], Trace],
        columns: RowColumns | None = None,
    ) -> None:
        self.served = served
        self.values = values
        self.labelled, self.waiting, self.expired = len(ran.posts), ran.waiting, ran.expired
        self.posts = ran.posts
        self.weighed, self.capped = ran.weights, ran.capped
        self.path = again  # any numbers of the layer over the run, read at the moments of ``trace``
        self.columns = columns
        self._traces: dict[str, Trace] = {}

    def __repr__(self) -> str:
        """How many rows, how many of them learned from, and what was served."""
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
        """The old name of ``tracker_weights``; it goes with the next version."""
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
class Start:
    """What a trace of a run starts from."""

    state: State
    waiting: list[WaitingLabel]
    frozen: bool
    rule: Rule


def start_of(layer: Layer, times: Cells | None) -> Start | None:
    parts = layer.internals
    if parts.names.count > TRACED:
        return None
    return Start(parts.state.copy(), carried_over(parts.tickets, times), parts.frozen, parts.rule)


def traced(
    layer: Layer, start: Start | None, columns: RowColumns, read: Callable[[Any], Mapping[str, float]]
) -> Trace:
    """Numbers of a layer at up to 200 moments of a run: it is run again in pieces, which are bit-for-bit the same."""
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
    named = list(readings[-1])
    return Trace(cuts, named, np.array([[reading.get(name, 0.0) for name in named] for reading in readings]))


# Layers on top of a prediction


@dataclass(frozen=True)
class InputColumns(Generic[Column]):
    """The columns that a user gave to ``run`` or ``predict_many``; ``key``: the series of each row of a ``Keyed``."""

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


def checked(layer: ColumnLayer, given: InputColumns[Column]) -> CheckedColumns:
    """Predictions, labels, weights, times and label times; a label that can never come is none."""
    base = layer.prediction_column(given.predictions)
    n = len(base)
    y = layer.label_column(given.labels, n)
    check.same_length(n, len(y), "labels")
    w = None if given.weights is None else check.weights(given.weights, n)
    when, due, never = check.clocks(given.times, given.label_times, n, layer.internals.tickets)
    return CheckedColumns(base, np.where(never, np.nan, y) if never.any() else y, w, when, due)


def run_layer(layer: ColumnLayer, given: InputColumns[Column]) -> Run[Column]:
    """Check everything, then one pass; the layer is unchanged if anything is refused."""
    parts, book, warnings = layer.internals, layer.internals.tickets, layer.internals.warnings
    check.same_index(**vars(given))
    base, y, w, when, due = checked(layer, given)
    notices: list[str | None] = []
    if not warnings.silent:
        notices = [dated_before(when, due, y, book.clock), clocks_changed(when, book.clock)]
    if book.maturity:
        y, due = mature_columns(book, y, when, due, given.ids is not None)
    rows = (len(base), *check.grouped(layer, base, given.groups, given.features))
    series = () if given.key is None else (given.key,)
    tickets = None if given.ids is None else RunTickets(checked_ids(book, given.ids, len(base)), y)
    missing = [] if when is None or not len(when) else book.count_missing(float(when.max()))
    early, moved = copy(book.early), list[WaitingLabel]()
    if when is not None:
        due, moved = screen_columns(parts, base, y, w, when, due)
    try:
        start = None if series else start_of(layer, when)
        ran, columns = parts.run(
            lambda: RowColumns(base, y, w, parts.names.columns(*series, *rows), when, due, tickets)
        )
    except Exception:
        book.reopen(missing)
        book.hold(moved)
        book.early = early
        raise
    served = check.like(given.predictions, layer.displayed(base, ran.served))
    if not warnings.silent:
        warnings.say(None if book.early is None else book.early.warning)
        warnings.look(base, y)
        warnings.warn()
        warnings.weigh(parts)
        for text in notices:
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


def serve_many(layer: ColumnLayer, given: InputColumns[Column]) -> Column:
    """Check everything, then serve all rows in one pass; every ticket is kept. Refused means unchanged.

    A frame with a column ``prediction`` may hold all other columns under their own names (weight, id, time, key) and
    comes back with what was served.
    """
    parts, book = layer.internals, layer.internals.tickets
    frame = frame_with(given.predictions, "prediction")
    if frame is not None:
        given = from_frame(layer, frame, given)
    check.same_index(**vars(given))
    base = layer.prediction_column(given.predictions)
    n = len(base)
    groups, features = check.grouped(layer, base, given.groups, given.features)
    weights = None if given.weights is None else check.weights(given.weights, n)
    series = () if given.key is None else (given.key,)
    if layer.kind == "keyed" and not series:
        raise BadInput("predict_many needs key: the column that says to which series a row belongs")
    tickets = RunTickets(checked_ids(book, given.ids, n), np.full(n, math.nan))
    when = None
    if given.times is not None:
        when = check.times(given.times, n, "times", book).values
        tickets = copy_with(tickets, times=[float(time) for time in when.tolist()])
    elif book.maturity:
        raise BadInput("a layer with maturity needs times: when each row was served")
    when = when if book.maturity else None  # labels become due between the rows
    replaced = replaced_singles(book, tickets, given.key)

    def row_columns() -> RowColumns:
        placed = parts.names.columns(*series, n, groups, features)
        return RowColumns(base, tickets.labels, weights, placed, when, tickets=tickets)

    missing = [] if when is None or not n else book.count_missing(float(when.max()))
    try:
        ran, _ = parts.run(row_columns)
    except Exception:
        book.reopen(missing)
        raise
    for key in replaced:
        book.replace_single(key)
    served = layer.displayed(base, ran.served)
    if frame is None:
        return check.like(given.predictions, served)
    table = served[:, None] if served.ndim == 1 else served
    names = served_names(layer, table.shape[1])
    return cast(Column, check.with_columns(frame, dict(zip(names, table.T, strict=True))))


def replaced_singles(book: TicketBook, tickets: RunTickets, key: ColumnLike | None) -> list[str | None]:
    """The keys whose open prediction without an id a batch replaces; None for a layer without keys."""
    waiting = [key for key in book.singles if book.single(key) is not None]
    if not waiting:
        return []
    keys = [None] * len(tickets.ids) if key is None else map(name_of, check.cells(key, "key"))
    coming = {key for key, id in zip(keys, tickets.ids, strict=False) if id is None}
    replaced = [key for key in waiting if key in coming]
    if replaced and not book.replaced:
        warn_replaced(replaced[0])
    return replaced


def frame_with(value: object, column: str) -> nw.DataFrame[Any] | None:
    if not hasattr(value, "columns") and not hasattr(value, "column_names"):
        return None
    frame = check.as_frame(value)
    return frame if column in frame.columns else None


def from_frame(layer: ColumnLayer, frame: nw.DataFrame[Any], given: InputColumns[Column]) -> InputColumns[Any]:
    """The columns of a frame; what was given beside it comes first."""
    columns: dict[str, object] = {"predictions": frame["prediction"].to_native()}
    names = {"weights": "weight", "ids": "id", "times": "time"} | ({"key": "key"} if layer.kind == "keyed" else {})
    for field, name in names.items():
        if getattr(given, field) is None and name in frame.columns:
            columns[field] = frame[name].to_native()
    for field in ("groups", "features"):
        own = [name for name in getattr(layer.internals.names, field) if name in frame.columns]
        if getattr(given, field) is None and own:
            columns[field] = {name: frame[name].to_native() for name in own}
    return dataclasses.replace(given, **cast(Any, columns))


def served_names(layer: Layer, width: int) -> list[str]:
    """The names of the columns of what was served: one, one for each level, or the ends of an interval."""
    if width == 1:
        return ["adjusted"]
    names = [f"adjusted_{level:g}" for level in getattr(layer.pattern, "levels", ())]
    return names if width == len(names) and layer.pattern.kind != "interval" else ["lower", "upper"]


def answer_many(verb: Callable[..., str], labels: Column, given: Mapping[str, ColumnLike | None]) -> Column:
    """The outcome of every label, in the form of the labels; ``given``: columns of further arguments of the verb."""
    frame, column, others = frame_with(labels, "label"), cast(object, labels), dict(given)
    if frame is not None:
        column = frame["label"].to_native()
        for name in others:
            if others[name] is None and name in frame.columns:
                others[name] = frame[name].to_native()
    check.same_index(labels=column, **others)
    rows = check.cells(column, "labels")
    cells = {name: check.cells(own, name) for name, own in others.items() if own is not None}
    for name, own in cells.items():
        if len(own) != len(rows):
            raise BadInput(f"{name} has {len(own)} rows, labels have {len(rows)}; give columns of one length")
    outcomes = []
    for k, y in enumerate(rows):
        arguments = {name: own[k] for name, own in cells.items()}
        outcomes.append(outcome_of(partial(verb, y, **arguments)))
    if frame is not None:
        return cast(Column, check.with_columns(frame, {"outcome": outcomes}))
    return check.like(labels, np.array(outcomes, dtype=object))


def outcome_of(verb: Callable[[], str]) -> str:
    """What became of a label: what the verb says, or the refusal as one word; others are raised."""
    try:
        return verb()
    except (LabelConflict, UnknownTicket, ExpiredTicket, BadInput) as refusal:
        return WORDS[type(refusal)]


# Games


@dataclass(frozen=True)
class GameColumns:
    """The columns that a user gave to ``Elo.run``."""

    a: ColumnLike
    b: ColumnLike
    score: ColumnLike | None = None
    weights: ColumnLike | None = None
    home: ColumnLike | None = None
    times: ColumnLike | None = None
    label_times: ColumnLike | None = None
    ids: ColumnLike | None = None


def run_elo(elo: Elo, given: GameColumns, skip_self: bool) -> EloRun[ColumnLike]:
    """Check everything, then one pass; the layer is unchanged if anything is refused."""
    parts, warnings, book = elo.internals, elo.internals.warnings, elo.internals.tickets
    check.same_index(**vars(given))
    players = two_columns(given.a, given.b)
    n = len(players[0].codes)
    y = scores(given.score, n)
    w = None if given.weights is None else check.weights(given.weights, n)
    h = sides(elo, given.home, n)
    when, due, never = check.clocks(given.times, given.label_times, n, book, "game")
    notices: list[str | None] = []
    if not warnings.silent:
        notices = [dated_before(when, due, y, book.clock), clocks_changed(when, book.clock)]
    if (due is not None or given.ids is not None) and elo.proximal is not None:
        raise BadInput(NOT_LATE)
    ids = None if given.ids is None else checked_ids(book, given.ids, n)
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
    served = check.like(given.a if given.score is None else given.score, values)
    run = EloRun(served, values, ran, partial(traced, elo, start, columns))
    run.ties, run.skipped = ties, n - len(columns.base)
    for text in notices:
        warnings.say(text)
    warnings.weigh(parts)
    return run


def two_columns(a: ColumnLike, b: ColumnLike) -> list[Codes]:
    players = [check.player_codes(column, f"player {what}") for column, what in ((a, "a"), (b, "b"))]
    one, two = (len(own.codes) for own in players)
    if one != two:
        raise BadInput(f"a has {one} rows, b has {two}; give columns of one length")
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
    alone = pairs.a == pairs.b
    if not alone.any():
        return pairs, None
    row = int(np.argmax(alone))
    if not skip_self:
        raise BadInput(
            f"row {row}: player {names.names[pairs.a[row]]!r} cannot play itself "
            f"({int(alone.sum())} such rows); drop it, or use skip_self"
        )
    rows = np.flatnonzero(~alone)
    names.forget(mark)  # who plays nobody else is no player
    return names.entered([(codes[rows], labels) for codes, labels in players]), rows


def sides(elo: Elo, home: ColumnLike | None, n: int) -> Floats | None:
    """Where the first side is in each game; None where it has no parameter."""
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
