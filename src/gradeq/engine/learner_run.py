"""Whole columns through a learner: check, then one pass of its rule, block by block.

A run may be cut anywhere without changing a bit, so blocks also serve to take the trace.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gradeq.engine.checks import (
    Floats,
    check_finite,
    check_labels,
    check_weights,
    floats,
    same_length,
)
from gradeq.engine.columns import steps_at
from gradeq.engine.learned import Run, State
from gradeq.engine.observed import Observer, labels_of, observe
from gradeq.engine.rows import Table, table
from gradeq.errors import BadInput, Diverging
from gradeq.kernels import choice
from gradeq.kernels.finite import is_finite
from gradeq.ledger.batch import Batch
from gradeq.ledger.constants import filled, numbers, ones, zeros
from gradeq.ledger.state import State as Columns
from gradeq.rules.rule import Rule, diverging
from gradeq.schedules import Constant

BLOCK = 1 << 18  # rows; enough to be compiled at once


def run_rows(
    rule: Rule,
    observer: Observer,
    label_range: tuple[float, float],
    state: State,
    rows: Any,
    labels: Any,
    offsets: Any,
    weights: Any,
    trace: int | None,
) -> Run:
    """``Learner.run``."""
    if trace is not None and not (isinstance(trace, int) and trace >= 1):
        raise BadInput(
            f"trace={trace!r}: give a whole number, to keep theta before every so-many-th row"
        )
    y = floats(labels, "labels", missing=True)
    made = table(rows, state.dimension, len(y))
    same_length(y, "labels", len(made))
    f = None if offsets is None else floats(offsets, "offsets")
    w = None if weights is None else floats(weights, "weights")
    for name, column in (("offsets", f), ("weights", w)):
        if column is not None:
            same_length(column, name, len(y))
    columns = state._columns.copy()
    later, served, traced = State(columns), np.empty(len(y)), []
    kind = choice.kind_of(rule, state.dimension, made.rows.dense, w is None)
    for first in range(0, len(y), trace or BLOCK):
        cut = slice(first, min(first + (trace or BLOCK), len(y)))
        if trace is not None:
            traced.append(later.theta.copy())
        own = (None if column is None else column[cut] for column in (f, w))
        with choice.one_run(kind, cut.stop - first, len(y) - cut.stop):
            served[cut] = block(rule, observer, label_range, columns, made, cut, y[cut], *own)
    thetas = np.array(traced).reshape(-1, state.dimension) if trace is not None else None
    return Run(served, later, thetas)


def block(
    rule: Rule,
    observer: Observer,
    label_range: tuple[float, float],
    columns: Columns,
    made: Table,
    cut: slice,
    y: Floats,
    f: Floats | None,
    w: Floats | None,
) -> Floats:
    """Check the rows of one block and learn from them; what each was served."""
    n, first, rows = len(y), cut.start, made.cut(cut.start, cut.stop)
    whole = check_labels(y, first, *label_range) and w is None
    if f is not None:
        check_finite(f, "offsets", first)
    if w is not None:
        check_weights(w, first)
    # A long table is read only once: if a number in it is not finite, the sums will show it.
    if not (whole and rows.dense):
        made.check(first, cut.stop)
    weights = ones(n) if w is None else w
    posts = numbers(n) if whole else np.flatnonzero((y == y) & (weights > 0.0))
    schedule, t = rule.schedule, int(columns.served[0])
    constant = isinstance(schedule, Constant)
    etas = filled(n, schedule.step(1)) if constant else steps_at(schedule, numbers(n) + (t + 1))
    base = filled(n, 0.0) if f is None else f
    batch = Batch(
        base, y, weights, etas, etas, rows, zeros(n), 0, numbers(n), posts, [], True, whole and constant,
    )  # fmt: skip
    observe(observer, columns, columns.heard, labels_of(batch, made.width))
    try:
        served: Floats = rule.run(columns, batch)[0]
    except (OverflowError, Diverging):  # Python raises where compiled code gives inf
        made.check(first, cut.stop)
        raise diverging(float(etas.max())) from None
    columns.served[0] += n
    if not is_finite(served):
        made.check(first, cut.stop)
        i = int(np.argmax(~np.isfinite(served)))
        raise Diverging(
            f"row {first + i} would be served {served[i]}; use a smaller step, or check the link"
        )
    if rows.dense and not is_finite(columns.view("sums")):
        made.check(first, cut.stop)
        raise diverging(float(etas.max()))
    return served
