"""Many independent series: one layer for each key, all in one table and one pass in row order."""

from __future__ import annotations

import dataclasses
import math
from array import array
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradeq.engine.batch import single
from gradeq.engine.desk import Row
from gradeq.engine.mix import Mix
from gradeq.engine.stream import Columns, run_columns
from gradeq.errors import BadInput
from gradeq.files.codebook import Codebook
from gradeq.kernels.loops import (
    BEFORE,
    COLUMNS,
    GRADIENT,
    HIGH,
    LOSS_AFTER,
    LOSS_BEFORE,
    LOW,
    ROWS,
    WEIGHT,
)
from gradeq.layers import columns as door
from gradeq.layers.layer import Layer
from gradeq.layers.run import Run, checked_columns
from gradeq.layers.several import answer
from gradeq.theory import Setting, best_bound

if TYPE_CHECKING:
    from gradeq.equilibrium import Equilibrium


class KeyTable(NamedTuple):
    """The certificate of every key, column by column (numpy arrays of one length)."""

    keys: list[str]
    rows: Any
    theta: Any
    bias_before: Any
    bias_after: Any
    loss_before: Any
    loss_after: Any
    from_state: Any


class Keyed(Layer):
    """One independent layer for each key; the same verbs with ``key=``, about 100 bytes a key.

    >>> from gradeq import Debiaser
    >>> many = Keyed(Debiaser(eta=0.5))
    >>> many.predict(10.0, key="shop 1"), many.update(12.0)
    (10.0, 'applied')
    >>> many.predict(10.0, key="shop 1"), many.predict(10.0, key="shop 2")
    (11.0, 10.0)

    The layer given is a pattern: one that has seen nothing. Keys may be integers or text (7 and "7" are one key) and
    may appear at any time. Every key has the guarantee of its own layer, over its own rows; for keys with few labels
    that bound is vacuous, and ``eta="auto"`` needs about 500 labels a key to pay. Layers with groups, features or a
    penalty cannot be keyed: name the key as one more group instead.
    """

    kind = "keyed"

    def __init__(self, layer: Layer) -> None:
        if layer.desk.served or isinstance(layer, Keyed):
            raise BadInput("Keyed needs a fresh layer as its pattern, one that has served nothing")
        roster = getattr(layer, "roster", None)
        if roster is None or not roster.scalar or getattr(layer, "penalty", None) is not None:
            raise BadInput(
                "only a layer without groups, features and penalty can be keyed; "
                "name the key as a group of the layer instead"
            )
        self.layer: Any = layer.copy()
        self.desk = self.layer.desk
        self.shadow = layer.shadow
        self.book = Codebook()
        self._known: dict[Any, int] = {}

    def predict(
        self,
        f: Any,
        key: Any,
        weight: float = 1.0,
        id: str | int | None = None,
        time: float | None = None,
    ) -> Any:
        """The adjusted prediction of this key's own layer."""
        f = self.layer.prediction(f)
        k = self._known.get(key)
        if k is None:
            k = self._enter(key)
        w = 1.0 if weight == 1.0 else float(door.weights([weight], 1)[0])
        return self.layer.shown(
            f, self.desk.open(Row(k, (k,), (1.0,), (k,), k, 1.0), f, w, id, time)
        )

    def run(
        self,
        predictions: Any,
        labels: Any = None,
        keys: Any = None,
        times: Any = None,
        label_times: Any = None,
        weights: Any = None,
    ) -> Run:
        """Serve and learn from whole columns in one pass, in row order, never sorted by key."""
        from gradeq import frames

        if keys is None:
            raise BadInput(
                "Keyed.run needs keys: the column that says to which series each row belongs"
            )
        base, y, w, when, due = checked_columns(
            self.layer, predictions, labels, weights, times, label_times
        )
        self.layer.check_rows(1.0, float(w.max(initial=1.0)))
        known = len(self.book)
        code = frames.coded(keys, "key", self.book)
        door.same_length(len(base), len(code), "keys")
        if len(self.book) > known:
            self._grow()
        rows = single(code)
        ran = run_columns(self.desk, Columns(base, y, w, rows, rows, code, code, None, when, due))
        served = self.layer.shown(base, ran.served)
        return Run(answer(predictions, served), ran.served, ran, no_trace)

    def label(self, y: Any) -> float:
        """The label, checked as the layer does."""
        checked: float = self.layer.label(y)
        return checked

    @property
    def keys(self) -> list[str]:
        """All keys seen, in order of first appearance."""
        return self.book.names

    @property
    def levels(self) -> int:
        """Coordinates a key has: one, or the number of quantile levels."""
        return len(getattr(self.layer, "levels", (0,)))

    def table(self) -> KeyTable:
        """Bias and loss before and after, parameter and certificate of every key (one column a level)."""
        final, raw = self._heads()
        shape = (-1,) if self.levels == 1 else (-1, self.levels)
        sums, before = (np.frombuffer(head.sums).reshape(-1, COLUMNS) for head in (final, raw))
        weight = np.where(sums[:, WEIGHT] > 0.0, sums[:, WEIGHT], math.nan)
        moved = np.resize(start_of(self.layer), len(final.u)) - np.array(final.u)
        certificate = moved / final.pace.high if final.pace.constant else sums[:, GRADIENT]
        scale = (
            2.0 if self.layer.kind == "debias" else 1.0
        )  # the value of Squared is half the squared error
        return KeyTable(
            self.keys,
            sums[:: self.levels, ROWS].astype(np.int64),
            np.array(final.u).reshape(shape),
            (before[:, BEFORE] / weight).reshape(shape),
            (sums[:, GRADIENT] / weight).reshape(shape),
            (scale * before[:, LOSS_BEFORE] / weight).reshape(shape),
            (scale * sums[:, LOSS_AFTER] / weight).reshape(shape),
            (certificate / weight).reshape(shape),
        )

    def equilibrium(self) -> Equilibrium:
        """All keys together; ``table()`` has each by itself.

        The sum of the errors of one key is at most its radius over eta; so the bound here is that of a single layer
        which had all rows, times the number of keys.
        """
        together = self.layer.copy()
        together.desk.peaks, together.desk.heaviest = self.desk.peaks[:], self.desk.heaviest
        for mine, theirs in zip(heads(together.desk.head), heads(self.desk.head), strict=True):
            merge(mine, theirs, start_of(self.layer))
        one: Equilibrium = together.equilibrium()
        if one.bound is None or not self.keys:
            return one
        bound = one.bound * len(self.keys)
        vacuous = not bound < best_bound(setting_of(together)).trivial
        coordinates = tuple(
            dataclasses.replace(
                c, bound=None if c.bound is None else c.bound * len(self.keys), vacuous=vacuous
            )
            for c in one.coordinates
        )
        source = f"{one.bound_from} for each of {len(self.keys):,} keys"
        return dataclasses.replace(
            one, coordinates=coordinates, bound=bound, bound_from=source, vacuous=vacuous
        )

    @property
    def settings(self) -> dict[str, Any]:
        """The kind and settings of the layer that every key has."""
        return {"kind": self.layer.kind, "settings": self.layer.settings}

    def state(self) -> dict[str, Any]:
        """Keys and their table."""
        return {"keys": list(self.keys), **self.desk.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Take up a saved state."""
        self.book = Codebook(state["keys"])
        self._known = {}
        self.desk.restore(state)

    def _heads(self) -> tuple[Any, Any]:
        """The head that carries the certificate, and the one whose "before" is the raw prediction."""
        head: Any = self.desk.head
        return (head.final, head.experts[0]) if isinstance(head, Mix) else (head, head)

    def _enter(self, key: Any) -> int:
        k = int(self.book.of_cells([key])[0])
        self._known[key] = k
        self._grow()
        return k

    def _grow(self) -> None:
        count = len(self.book)
        self.desk.head.grow(count)
        if isinstance(self.desk.head, Mix):
            self.desk.head.grow_units(count)
        self.desk.grow(count, count)


def heads(head: Any) -> list[Any]:
    """The heads that keep accounts."""
    return [*head.experts, head.final] if isinstance(head, Mix) else [head]


def merge(mine: Any, theirs: Any, start: Any) -> None:
    """Give a head of one unit the sums of all units of another."""
    width = len(start)
    moved = np.array(theirs.u).reshape(-1, width) - start
    mine.u = array("d", (start + moved.sum(axis=0)).tolist())
    sums = np.frombuffer(theirs.sums).reshape(-1, width, COLUMNS)
    together = sums.sum(axis=0)
    together[:, LOW] = sums[:, :, LOW].min(axis=0)
    together[:, HIGH] = sums[:, :, HIGH].max(axis=0)
    mine.sums = array("d", together.ravel().tolist())
    mine.pace = theirs.pace
    if hasattr(theirs, "gaps"):
        widest = np.array(theirs.gaps).reshape(-1, width).max(axis=0)
        mine.gaps = array("d", widest.tolist())


def start_of(layer: Any) -> Any:
    """u_1 of one key."""
    return np.array(getattr(layer, "start", [0.0]))


def setting_of(layer: Any) -> Setting:
    """What the theory needs to know of a layer."""
    if layer.kind == "debias":
        from gradeq.layers import certify

        return certify.setting_of(layer)
    from gradeq.layers import coverage

    return coverage.setting_of(layer)


def no_trace(_: Any) -> Any:
    """A run over many keys keeps no trace."""
    raise BadInput("a run over many keys keeps no trace; run one key by itself to see its path")
