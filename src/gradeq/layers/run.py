"""What a pass over whole columns gives, and the columns that go in, checked."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy, deepcopy
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradeq.engine.columns import (
    Columns,
    Ran,
    carried_over,
    in_order,
    run_columns,
    serving_order,
)
from gradeq.engine.keeping import Kept, new_ids
from gradeq.engine.tickets import Book, Id
from gradeq.equilibrium import figure
from gradeq.errors import BadInput
from gradeq.frames import same_index
from gradeq.layers import columns as check
from gradeq.layers.doubts import clocks_changed, dated_before
from gradeq.layers.early import screen_columns
from gradeq.layers.maturity import mature_columns
from gradeq.layers.several import answer
from gradeq.tables import in_html

if TYPE_CHECKING:
    from gradeq.layers.layer import Layer

POINTS = 200  # moments at which a trace reads the parameters
HEAD = 5  # rows that a notebook shows
TRACED = 10_000  # parameters; a longer state is not kept for a trace


class Trace(NamedTuple):
    """Numbers along a run: after ``rows`` rows, ``theta`` (one column for each of ``names``)."""

    rows: Any
    names: list[str]
    theta: Any


class Run:
    """What a pass over columns gave.

    ``served``: the adjusted predictions, of the same type as the predictions ((n, K) for several levels, or as many
    columns as were given). ``weighed``: the weights that rows are learned with, relative to their running mean (None:
    all 1). ``labelled``: rows learned from; ``waiting``: labels not due by the last row, kept for a
    later run; ``expired``: tickets that outlived their ttl.
    """

    def __init__(
        self,
        served: Any,
        values: Any,
        ran: Ran,
        again: Callable[[Callable[[Any], Any]], Trace],
        columns: Columns | None = None,
    ) -> None:
        self.served = served
        self.values = values
        self.labelled, self.waiting, self.expired = len(ran.posts), ran.waiting, ran.expired
        self.posts = ran.posts
        self.weighed = ran.weights
        self._again = again
        self.columns = columns
        self._traces: dict[str, Trace] = {}

    def __repr__(self) -> str:
        """How many rows, how many of them learned from, and what was served."""
        rows, kind = len(self.values), type(self.served).__name__
        late = f", {self.waiting:,} labels waiting" if self.waiting else ""
        return f"Run of {rows:,} rows, {self.labelled:,} labelled{late}; served: {kind}"

    def _repr_html_(self) -> str:
        """The same for notebooks, with the first rows that were served."""
        first = [np.atleast_1d(served).tolist() for served in self.values[:HEAD]]
        width = len(first[0]) if first else 0
        head = ["row", *(["served"] if width == 1 else [f"served {k + 1}" for k in range(width)])]
        rows = [[f"{k:,}", *map(figure, served)] for k, served in enumerate(first)]
        more = len(self.values) - len(rows)
        return in_html(repr(self), head, rows, f"... and {more:,} more" if more else "")

    @property
    def trace(self) -> Trace:
        """The parameters over the run, at up to 200 moments (computed when first asked for, by running again)."""
        return self._traced("theta")

    @property
    def weights(self) -> Trace:
        """The weights of an ensemble over the run, read as ``trace`` reads the parameters."""
        return self._traced("weights")

    def path(self, read: Callable[[Any], dict[str, float]]) -> Trace:
        """Any numbers of the layer over the run, read at the moments of ``trace``."""
        return self._again(read)

    def _traced(self, name: str) -> Trace:
        if name not in self._traces:
            self._traces[name] = self.path(lambda layer: getattr(layer, name))
        return self._traces[name]


class Given(NamedTuple):
    """Checked columns in input order; ``weights`` None stands for ones."""

    base: Any
    labels: Any
    weights: Any
    times: Any
    label_times: Any


def given_columns(
    layer: Any, predictions: Any, labels: Any, weights: Any, times: Any, label_times: Any
) -> Given:
    """Predictions, labels, weights, times and label times; a label that can never come is none."""
    base = layer._base_column(predictions)
    n = len(base)
    y = layer._label_column(labels, n)
    check.same_length(n, len(y), "labels")
    w = None if weights is None else check.weights(weights, n)
    if w is not None:
        check.same_length(n, len(w), "weights")
    when, due, never = check.clocks(times, label_times, n, layer._book)
    if never.any():
        y = np.where(never, np.nan, y)
    return Given(base, y, w, when, due)


def grouped(layer: Any, base: Any, groups: Any, features: Any) -> tuple[Any, Any]:
    """The codes of every group column, bins of the prediction included, and the features side by side."""
    names, bins, n = layer._names, getattr(layer, "bins", None), len(base)
    if bins is not None:
        groups = bins.added_columns(groups, names.groups, base)
    return check.groups(groups, names.groups, n), check.features(features, names.features, n)


def run_layer(
    layer: Any,
    predictions: Any,
    labels: Any,
    groups: Any,
    features: Any,
    times: Any,
    label_times: Any,
    weights: Any,
    key: Any = None,
    ids: Any = None,
) -> Run:
    """Check everything, then one pass; the layer is unchanged if anything is refused."""
    same_index(
        predictions=predictions,
        labels=labels,
        groups=groups,
        features=features,
        weights=weights,
        times=times,
        label_times=label_times,
        key=key,
        ids=ids,
    )
    base, y, w, when, due = given_columns(layer, predictions, labels, weights, times, label_times)
    doubts = layer._doubts
    said = []
    if not doubts.silent:
        kind = layer._book.clock
        said = [dated_before(when, due, y, kind), clocks_changed(when, kind)]
    y, due = mature_columns(layer._book, y, when, due, ids is not None)
    rows = (len(base), *grouped(layer, base, groups, features))
    series = () if key is None else (key,)
    kept = None if ids is None else Kept(checked_ids(layer, ids, len(base)), y)

    def made() -> Columns:
        return Columns(base, y, w, layer._names.columns(*series, *rows), when, due, kept)

    missing = [] if when is None or not len(when) else layer._book.count_missing(float(when.max()))
    early, (due, moved) = (
        deepcopy(layer._book.early),
        screen_columns(layer, base, y, w, when, due, kept),
    )
    try:
        start = None if key is not None else snapshot(layer, when)
        ran, columns = layer._run(made)
    except Exception:
        layer._book.reopen(missing)
        layer._book.hold(moved)
        layer._book.early = early
        raise
    again = no_trace if key is not None else tracer(layer, start, columns)
    shown = answer(predictions, layer._shown(base, ran.served))
    if layer._book.early is not None:
        doubts.say(layer._book.early.warning)
    doubts.look(base, y)
    doubts.warn()
    for text in said:
        doubts.say(text)
    return Run(shown, ran.served, ran, again, columns)


def checked_ids(layer: Any, ids: Any, n: int) -> list[Id | None]:
    """A column of ids, text or whole numbers, none of which is known yet; None stands for rows without any."""
    if ids is None:
        return [None] * n
    found = check.cells(ids, "ids")
    check.same_length(n, len(found), "ids")
    for row, id in enumerate(found):
        if id is None or id != id:
            raise BadInput(f"row {row} has no id; give every row one, or leave out ids")
    return new_ids(layer._book, found)


def no_trace(_: Any) -> Any:
    """A run over many keys keeps no trace."""
    raise BadInput("a run over many keys keeps no trace; run one key by itself to see its path")


def snapshot(layer: Layer, times: Any) -> dict[str, Any] | None:
    """What a trace of a run over these times starts from: a copy of the state, unless it is long."""
    if layer._names.count > TRACED:
        return None
    return {
        "state": layer._state.copy(),
        "waiting": carried_over(layer._book, times),
        "frozen": layer._frozen,
        "rule": layer._rule,
    }


def tracer(
    layer: Any, start: dict[str, Any] | None, columns: Columns
) -> Callable[[Callable[[Any], Any]], Trace]:
    """Runs again from the start in pieces, reading numbers between them (pieces are bit-for-bit identical)."""
    names = layer._names

    def again(read: Callable[[Any], Any]) -> Trace:
        if start is None:
            raise BadInput(f"a run over more than {TRACED:,} parameters keeps no trace")
        twin = copy(layer)
        twin._rule, twin._frozen, twin._book = start["rule"], start["frozen"], Book(layer._book.ttl)
        twin._state = start["state"].copy()
        twin._book.hold(start["waiting"])
        twin._state.grow(names.count, names.keys)
        return traced(twin, columns, read)

    return again


def traced(layer: Any, columns: Columns, read: Callable[[Any], dict[str, float]]) -> Trace:
    """Numbers of a layer at up to 200 moments of a run."""
    n = len(columns.base)
    order = serving_order(columns.times)
    order = np.arange(n) if order is None else order
    cuts = np.unique(np.linspace(0, n, min(POINTS, n) + 1).astype(int))
    readings = [dict(read(layer))]
    for a, b in pairwise(cuts.tolist()):
        run_columns(layer._engine, in_order(columns, order[a:b])._replace(kept=None))
        readings.append(dict(read(layer)))
    names = list(readings[-1])
    table = np.array([[reading.get(name, 0.0) for name in names] for reading in readings])
    return Trace(cuts, names, table)
