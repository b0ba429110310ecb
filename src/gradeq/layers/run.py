"""Whole columns through a layer, and what comes back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradeq.engine.stream import Columns, Ran, run_columns
from gradeq.errors import BadInput
from gradeq.layers import columns as door

if TYPE_CHECKING:
    from gradeq.layers.debiaser import Debiaser

POINTS = 200  # moments at which a trace reads the parameters


class Trace(NamedTuple):
    """The parameters along a run: after ``rows`` rows, ``theta`` (one column for each of ``names``)."""

    rows: Any
    names: list[str]
    theta: Any


class Run:
    """What a pass over columns gave.

    ``served``: the adjusted predictions, of the same type as the predictions. ``labelled``: rows learned from;
    ``waiting``: labels not due by the last row, kept for a later run; ``expired``: tickets that outlived their ttl.
    """

    def __init__(self, served: Any, values: Any, ran: Ran, again: Any) -> None:
        self.served = served
        self.values = values
        self.labelled, self.waiting, self.expired = len(ran.posts), ran.waiting, ran.expired
        self.posts = ran.posts
        self._again = again
        self._trace: Trace | None = None

    @property
    def trace(self) -> Trace:
        """The parameters over the run, at up to 200 moments (computed when first asked for, by running again)."""
        if self._trace is None:
            self._trace = self._again()
        return self._trace


def run_layer(
    layer: Debiaser,
    predictions: Any,
    labels: Any,
    groups: Any,
    features: Any,
    times: Any,
    label_times: Any,
    weights: Any,
) -> Run:
    """Check everything at the door, then one pass; the layer is unchanged if anything is refused."""
    from gradeq import frames

    base = door.numbers(predictions, "prediction")
    n = len(base)
    y = door.labels(labels, n)
    door.same_length(n, len(y), "labels")
    w = door.weights(weights, n)
    door.same_length(n, len(w), "weights")
    check_range(layer, base, y)
    codes = door.groups(groups, layer.roster.groups, n)
    x = door.features(features, layer.roster.features, n)
    when, _ = door.times(times, n, "times")
    due, never = door.times(label_times, n, "label times", missing=True)
    if due is not None and when is None:
        raise BadInput("label_times needs times as well: when each row was served")
    if layer.desk.frozen:
        y = np.full(n, np.nan)
    elif never.any():
        y = np.where(never, np.nan, y)
    start = layer.copy()
    try:
        ran = run_columns(layer.desk, made_columns(layer, base, y, w, codes, x, when, due))
    except Exception:
        layer.__dict__.update(start.__dict__)
        raise
    served = base if layer.shadow else ran.served

    def again() -> Trace:
        return traced(start, base, y, w, codes, x, when, due)

    return Run(frames.like(predictions, served), ran.served, ran, again)


def made_columns(
    layer: Debiaser, base: Any, y: Any, w: Any, codes: Any, x: Any, when: Any, due: Any
) -> Columns:
    """The rows' parameters, counters and clocks, new groups entered."""
    rows, cells, clock, norms = layer.roster.columns(len(base), codes, x)
    largest = float(norms.max(initial=0.0)) if norms is not None else layer.roster.size
    layer._check_size(largest, float(w.max(initial=1.0)))
    layer._grow()
    units = np.zeros(len(base), dtype=np.int64)
    return Columns(base, y, w, rows, cells, clock, units, norms, when, due)


def traced(
    layer: Debiaser, base: Any, y: Any, w: Any, codes: Any, x: Any, when: Any, due: Any
) -> Trace:
    """Run again from the start in pieces, reading the parameters between them (pieces give the same bits)."""
    from gradeq.engine.stream import serving_order

    order = serving_order(when)
    order = np.arange(len(base)) if order is None else order
    cuts = np.unique(np.linspace(0, len(base), min(POINTS, len(base)) + 1).astype(int))
    thetas = [dict(layer.theta)]
    for a, b in zip(cuts[:-1], cuts[1:], strict=True):
        piece = order[a:b]

        def cut(column: Any, piece: Any = piece) -> Any:
            return None if column is None else column[piece]

        part = [(c[piece], names) for c, names in codes]
        made = made_columns(
            layer, base[piece], y[piece], w[piece], part, cut(x), cut(when), cut(due)
        )
        run_columns(layer.desk, made)
        thetas.append(dict(layer.theta))
    names = list(layer.theta)
    table = np.array([[theta.get(name, 0.0) for name in names] for theta in thetas])
    return Trace(cuts, names, table)


def check_range(layer: Debiaser, base: Any, y: Any) -> None:
    """Predictions and labels must fit the outcome."""
    if layer.outcome == "binary":
        rule = "lies outside [0, 1]; a binary outcome needs probabilities and 0/1 labels"
        door.refuse((base < 0.0) | (base > 1.0), base, "prediction", rule)
        door.refuse((y < 0.0) | (y > 1.0), y, "label", rule)
    elif layer.link_name == "exp":
        door.refuse(
            base <= 0.0, base, "prediction", "is not positive; link exp needs positive predictions"
        )
