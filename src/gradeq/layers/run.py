"""Whole columns through a layer, and what comes back."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from gradeq.engine.constants import zeros
from gradeq.engine.stream import Columns, Ran, run_columns, serving_order
from gradeq.errors import BadInput
from gradeq.layers import columns as door

if TYPE_CHECKING:
    from gradeq.engine.batch import Floats
    from gradeq.engine.desk import Desk
    from gradeq.layers.roster import Roster

POINTS = 200  # moments at which a trace reads the parameters


class Columnar(Protocol):
    """What a layer must know about whole columns, beyond its desk and roster."""

    roster: Roster

    @property
    def desk(self) -> Desk:
        """Tickets and state."""
        ...

    @property
    def theta(self) -> dict[str, float]:
        """The parameters by name."""
        ...

    def base_column(self, predictions: Any) -> Floats:
        """The base predictions, checked: (n,), or (n, K) for several levels."""
        ...

    def label_column(self, labels: Any, n: int) -> Floats:
        """The labels, checked; nan where there is none."""
        ...

    def check_rows(self, size: float, weight: float) -> None:
        """Refuse rows that are too large for the step: ``size`` is the largest squared norm."""
        ...

    def shown(self, f: Any, served: Any) -> Any:
        """What the user sees: the served value, or the raw one in shadow mode."""
        ...

    def grow(self) -> None:
        """Room for all parameters that the roster knows."""
        ...

    def copy(self) -> Any:
        """An independent copy."""
        ...


class Trace(NamedTuple):
    """Numbers along a run: after ``rows`` rows, ``theta`` (one column for each of ``names``)."""

    rows: Any
    names: list[str]
    theta: Any


class Run:
    """What a pass over columns gave.

    ``served``: the adjusted predictions, of the same type as the predictions ((n, K) for several levels, or as many
    columns as were given). ``labelled``: rows learned from; ``waiting``: labels not due by the last row, kept for a
    later run; ``expired``: tickets that outlived their ttl.
    """

    def __init__(
        self, served: Any, values: Any, ran: Ran, again: Callable[[Callable[[Any], Any]], Trace]
    ) -> None:
        self.served = served
        self.values = values
        self.labelled, self.waiting, self.expired = len(ran.posts), ran.waiting, ran.expired
        self.posts = ran.posts
        self._again = again
        self._traces: dict[str, Trace] = {}

    @property
    def trace(self) -> Trace:
        """The parameters over the run, at up to 200 moments (computed when first asked for, by running again)."""
        return self._traced("theta")

    @property
    def weights(self) -> Trace:
        """The weights of an ensemble over the run, read as ``trace`` reads the parameters."""
        return self._traced("weights")

    def _traced(self, name: str) -> Trace:
        if name not in self._traces:
            self._traces[name] = self._again(lambda layer: getattr(layer, name))
        return self._traces[name]


class Given(NamedTuple):
    """Checked columns in input order."""

    base: Any
    labels: Any
    weights: Any
    codes: Any
    features: Any
    times: Any
    label_times: Any


def run_layer(
    layer: Columnar,
    predictions: Any,
    labels: Any,
    groups: Any,
    features: Any,
    times: Any,
    label_times: Any,
    weights: Any,
) -> Run:
    """Check everything at the door, then one pass; the layer is unchanged if anything is refused."""
    from gradeq.layers.several import answer

    given = checked(layer, predictions, labels, groups, features, times, label_times, weights)
    start = layer.copy()
    try:
        ran = run_columns(layer.desk, made_columns(layer, *given))
    except Exception:
        layer.__dict__.update(start.__dict__)
        raise

    def again(read: Callable[[Any], Any]) -> Trace:
        return traced(start.copy(), given, read)

    served = layer.shown(given.base, ran.served)
    return Run(answer(predictions, served), ran.served, ran, again)


def checked(
    layer: Columnar,
    predictions: Any,
    labels: Any,
    groups: Any,
    features: Any,
    times: Any,
    label_times: Any,
    weights: Any,
) -> Given:
    """All columns at the door."""
    base, y, w, when, due = checked_columns(layer, predictions, labels, weights, times, label_times)
    codes = door.groups(groups, layer.roster.groups, len(base))
    x = door.features(features, layer.roster.features, len(base))
    return Given(base, y, w, codes, x, when, due)


def checked_columns(
    layer: Columnar, predictions: Any, labels: Any, weights: Any, times: Any, label_times: Any
) -> tuple[Any, Any, Any, Any, Any]:
    """Predictions, labels, weights, times and label times; a label that can never come is none."""
    base = layer.base_column(predictions)
    n = len(base)
    y = layer.label_column(labels, n)
    door.same_length(n, len(y), "labels")
    w = door.weights(weights, n)
    door.same_length(n, len(w), "weights")
    when, _ = door.times(times, n, "times")
    due, never = door.times(label_times, n, "label times", missing=True)
    if due is not None and when is None:
        raise BadInput("label_times needs times as well: when each row was served")
    if layer.desk.frozen:
        y = np.full(n, np.nan)
    elif never.any():
        y = np.where(never, np.nan, y)
    return base, y, w, when, due


def made_columns(
    layer: Columnar, base: Any, y: Any, w: Any, codes: Any, x: Any, when: Any, due: Any
) -> Columns:
    """The rows' parameters, counters and clocks, new groups entered."""
    rows, cells, clock, norms = layer.roster.columns(len(base), codes, x)
    largest = float(norms.max(initial=0.0)) if norms is not None else layer.roster.size
    layer.check_rows(largest, float(w.max(initial=1.0)))
    layer.grow()
    units = zeros(len(base))
    return Columns(base, y, w, rows, cells, clock, units, norms, when, due)


def traced(layer: Columnar, given: Given, read: Callable[[Any], dict[str, float]]) -> Trace:
    """Run again from the start in pieces, reading numbers between them (pieces give the same bits)."""
    n = len(given.base)
    order = serving_order(given.times)
    order = np.arange(n) if order is None else order
    cuts = np.unique(np.linspace(0, n, min(POINTS, n) + 1).astype(int))
    readings = [dict(read(layer))]
    for a, b in pairwise(cuts.tolist()):
        piece = order[a:b]

        def cut(column: Any, piece: Any = piece) -> Any:
            return None if column is None else column[piece]

        made = made_columns(
            layer, cut(given.base), cut(given.labels), cut(given.weights),
            [(codes[piece], names) for codes, names in given.codes],
            cut(given.features), cut(given.times), cut(given.label_times),
        )  # fmt: skip
        run_columns(layer.desk, made)
        readings.append(dict(read(layer)))
    names = list(readings[-1])
    table = np.array([[reading.get(name, 0.0) for name in names] for reading in readings])
    return Trace(cuts, names, table)
