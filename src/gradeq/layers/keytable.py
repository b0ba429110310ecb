"""The table of many series: bias or coverage, loss, parameter and certificate of every key, in arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradeq.equilibrium import figure
from gradeq.kernels.account import (
    BEFORE,
    COLUMNS,
    GRADIENT,
    LOSS_AFTER,
    LOSS_BEFORE,
    ROWS,
    WEIGHT,
)
from gradeq.kernels.limits import CHANGES
from gradeq.ledger import facts as fact
from gradeq.ledger.state import CACHED
from gradeq.tables import frame_of, in_html

SHOWN = 10  # series that a notebook shows


class KeyTable(NamedTuple):
    """The certificate of every key, column by column (numpy arrays of one length; of several levels a column each).

    ``rows`` are labels learned from. For quantiles ``bias`` is the coverage less the level; ``target``: the coverage
    of an interval; ``more`` and ``more_loss``: what the limits of a support add to the coverage and to the loss (None
    without one). ``relative``: with link exp errors are divided by the prediction, and bias and loss are of these.
    ``replaced``: predictions of each key that were replaced before a label came; None where there are none, or keys
    have groups of their own.
    """

    keys: Sequence[str]
    rows: Any
    theta: Any
    bias_before: Any
    bias_after: Any
    loss_before: Any
    loss_after: Any
    from_state: Any
    levels: tuple[float, ...] = ()
    target: float | None = None
    more: Any = None
    more_loss: Any = None
    relative: bool = False
    replaced: Any = None

    @property
    def error(self) -> Any:
        """What is left of each key's error, with its sign; of several levels the one that is farthest off."""
        return self._left(self.bias_after)

    @property
    def error_before(self) -> Any:
        """The same of the raw predictions."""
        return self._left(self.bias_before)

    @property
    def loss(self) -> Any:
        """The mean loss of each key as served, inside the limits of a support, over its levels."""
        loss = self.loss_after if self.more_loss is None else self.loss_after + self.more_loss
        return loss if loss.ndim == 1 else loss.mean(axis=1)

    def _left(self, bias: Any) -> Any:
        if bias.ndim == 1:
            return bias
        if self.target is not None:
            return bias[:, 1] - bias[:, 0]
        return bias[np.arange(len(bias)), self.farthest]

    @property
    def farthest(self) -> Any:
        """The place of each key's level that is farthest off as served."""
        return np.argmax(np.abs(np.nan_to_num(self.bias_after)), axis=1)

    def columns(self) -> dict[str, Any]:
        """The table by the names of its columns: of several levels each has its own, of an interval the ends."""
        found: dict[str, Any] = {"key": list(self.keys), "rows": self.rows}
        marks = [""] if self.theta.ndim == 1 else [f"_{tau:g}" for tau in self.levels]
        if self.target is not None:
            marks = ["_lower", "_upper"]
            for when, bias in (("before", self.bias_before), ("after", self.bias_after)):
                found[f"coverage_{when}"] = shares(bias[:, 1] - bias[:, 0], self.target)
            if self.more is not None:
                shift = self.bias_after + self.more
                found["coverage_clipped"] = shares(shift[:, 1] - shift[:, 0], self.target)
            found["loss_before"] = self.loss_before.mean(axis=1)
            found["loss_after"] = self.loss_after.mean(axis=1)
            if self.more_loss is not None:
                found["loss_clipped"] = self.loss
        else:
            found |= self._by_level(marks)
        for name, column in (("theta", self.theta), ("from_state", self.from_state)):
            found |= {f"{name}{mark}": _level(column, k) for k, mark in enumerate(marks)}
        if self.replaced is not None:
            found["replaced"] = self.replaced
        return found

    def _by_level(self, marks: list[str]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        kind = "relative_" if self.relative else ""
        for k, mark in enumerate(marks):
            before, after = (_level(bias, k) for bias in (self.bias_before, self.bias_after))
            if not self.levels:
                found |= {f"{kind}bias_before{mark}": before, f"{kind}bias_after{mark}": after}
            else:
                tau = self.levels[k]
                found[f"coverage_before{mark}"] = shares(before, tau)
                found[f"coverage_after{mark}"] = shares(after, tau)
                if self.more is not None:
                    found[f"coverage_clipped{mark}"] = shares(after + _level(self.more, k), tau)
            found[f"{kind}loss_before{mark}"] = _level(self.loss_before, k)
            found[f"{kind}loss_after{mark}"] = _level(self.loss_after, k)
            if self.more_loss is not None:
                found[f"loss_clipped{mark}"] = _level(self.loss_after + self.more_loss, k)
        return found

    def to_frame(self, kind: str | None = None) -> Any:
        """One row for each key, as a data frame of ``kind`` "pandas", "polars" or "pyarrow".

        Without one it is the first of these that your program has imported, whatever the columns of a run were.
        """
        return frame_of(self.columns(), kind)

    def __repr__(self) -> str:
        """How many series and labels; a table of thousands is looked at as a frame."""
        keys, labels = len(self.rows), int(np.sum(self.rows))
        return f"KeyTable of {keys:,} series with {labels:,} labels; to_frame() has a row for each"

    def _repr_html_(self) -> str:
        """The same for notebooks, with the series that are farthest off."""
        left = np.nan_to_num(np.abs(self.error), nan=-1.0)
        worst = np.argsort(-left, kind="stable")[:SHOWN].tolist()
        what = "coverage off by" if self.levels else "relative bias" if self.relative else "bias"
        before, after, loss = self.error_before, self.error, self.loss
        rows = [
            [str(self.keys[k]), f"{self.rows[k]:,}", *(figure(c[k]) for c in (before, after, loss))]
            for k in worst
        ]
        more = len(self.rows) - len(rows)
        head = ["series", "labels", f"{what}, before", "after", "loss after"]
        return in_html(repr(self), head, rows, f"... and {more:,} with less" if more else "")


def picked(sums: Any) -> Any:
    """Those columns of the accounts that the table needs, each by itself; each account is looked at once."""
    table, wanted = (
        sums.reshape(-1, COLUMNS),
        (ROWS, WEIGHT, BEFORE, GRADIENT, LOSS_BEFORE, LOSS_AFTER),
    )
    found = np.empty((len(wanted), len(table)))
    for first in range(0, len(table), CACHED):
        part = slice(first, first + CACHED)
        for column, at in zip(found, wanted, strict=True):
            column[part] = table[part, at]
    return found


def shares(error: Any, target: float) -> Any:
    """Coverages: errors and their target; what long sums lost in the last digits is rounded away."""
    return np.round(error + target, 10) + 0.0


def _level(column: Any, k: int) -> Any:
    return column if column.ndim == 1 else column[:, k]


def key_table(keyed: Any, keys: Sequence[str] | None = None) -> KeyTable:
    """The table of a layer of many keys, read from its state: nothing is made key by key.

    ``keys``: their names, if the layer's own need not be spelled out.
    """
    state, width, terms = keyed._state, keyed._rule.width, keyed._terms
    shape = (-1,) if width == 1 else (-1, width)
    u = state.view("u").copy()
    rows, weight, *sums = picked(state.view("sums"))
    weight[~(weight > 0.0)] = math.nan
    high = state.facts[fact.STEP_HIGH]
    constant = state.facts[fact.STEP_LOW] >= high > 0.0
    certified = sums[1] / weight
    if constant:
        certified = (np.array(terms.start) - u.reshape(-1, width)).reshape(-1) / high / weight
    for column, scale in zip(sums, (1.0, 1.0, terms.loss_scale, terms.loss_scale), strict=True):
        column *= scale
        column /= weight
    before, after, loss_before, loss_after = (column.reshape(shape) for column in sums)
    more = more_loss = None
    if hasattr(state, "limited"):
        more, more_loss = (
            (state.view("limited")[change::CHANGES] / weight).reshape(shape) for change in (0, 1)
        )
    return KeyTable(
        list(keyed._names.names) if keys is None else keys,
        rows[::width].astype(np.int64),
        u.reshape(shape),
        before,
        after,
        loss_before,
        loss_after,
        certified.reshape(shape),
        tuple(terms.levels),
        getattr(keyed.layer, "target", None),
        more,
        more_loss,
        getattr(keyed.layer, "link_name", None) == "exp",
        replaced_of(keyed),
    )


def replaced_of(keyed: Any) -> Any:
    """How many predictions of each key were replaced; None where there are none, or keys have groups."""
    counts = keyed._book.replaced
    if not counts or not keyed._names.own.scalar:
        return None
    return np.array([counts.get(key, 0) for key in keyed._names.book.names], dtype=np.int64)
