"""Many independent series: one layer for each key, all in one table and one pass in row order."""

from __future__ import annotations

import dataclasses
import math
from array import array
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradeq.engine.batch import Rows, single
from gradeq.engine.desk import Row, Ticket
from gradeq.engine.mix import Mix
from gradeq.engine.stream import Columns, run_columns
from gradeq.errors import BadInput, UnknownTicket
from gradeq.files.codebook import Codebook
from gradeq.kernels.loops import (
    BEFORE,
    COLUMNS,
    GRADIENT,
    LOSS_AFTER,
    LOSS_BEFORE,
    ROWS,
    WEIGHT,
)
from gradeq.layers import columns as door
from gradeq.layers.keyed_sums import gather, setting_of, start_of
from gradeq.layers.layer import Layer
from gradeq.layers.roster import group_name
from gradeq.layers.run import Run, checked_columns
from gradeq.layers.several import answer
from gradeq.theory import best_bound

if TYPE_CHECKING:
    from gradeq.equilibrium import Equilibrium


SPAN = 1 << 31  # more parameters than any layer has


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
    that bound is vacuous, and ``eta="auto"`` needs about 500 labels a key to pay. Groups and
    features are each key's own. A layer with a penalty cannot be keyed: name the key as one more group instead.
    """

    kind = "keyed"

    def __init__(self, layer: Layer) -> None:
        if layer.desk.served or isinstance(layer, Keyed):
            raise BadInput("Keyed needs a fresh layer as its pattern, one that has served nothing")
        roster = getattr(layer, "roster", None)
        if roster is None or getattr(layer, "penalty", None) is not None:
            what = "a layer with a penalty" if roster else f"an {type(layer).__name__}"
            raise BadInput(f"{what} cannot be keyed; name the key as a group of a layer instead")
        self.layer: Any = layer.copy()
        self.desk = self.layer.desk
        self.shadow = layer.shadow
        self.book = Codebook()
        self.pairs = (
            Codebook()
        )  # with groups or features, the parameters: key * SPAN + parameter of the layer
        self._known: dict[Any, int] = {}

    def predict(
        self,
        f: Any,
        key: Any,
        groups: Mapping[str, Any] | None = None,
        features: Mapping[str, Any] | None = None,
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
        row = self._row(k, f, groups, features)
        self.layer.check_rows(row.norm if features else self.layer.roster.size, w)
        return self.layer.shown(f, self.desk.open(row, f, w, id, time))

    def _row(
        self, k: int, f: Any, groups: Mapping[str, Any] | None, features: Mapping[str, Any] | None
    ) -> Row:
        roster, bins = self.layer.roster, getattr(self.layer, "bins", None)
        own = roster.row(bins.added(groups, f) if bins is not None else groups, features)
        if roster.scalar:
            return Row(k, (k,), (1.0,), (k,), k, 1.0)
        params = self._params(np.array([k]), np.array([own.params]))[0].tolist()
        clock = params[0] if roster.disjoint else k
        return Row(k, params, own.value, (k,) if roster.features else params, clock, own.norm)

    def run(
        self,
        predictions: Any,
        labels: Any = None,
        key: Any = None,
        groups: Any = None,
        features: Any = None,
        times: Any = None,
        label_times: Any = None,
        weights: Any = None,
    ) -> Run:
        """Serve and learn from whole columns in one pass, in row order, never sorted by key."""
        from gradeq import frames

        if key is None:
            raise BadInput(
                "Keyed.run needs key: the column that says to which series each row belongs"
            )
        base, y, w, when, due = checked_columns(
            self.layer, predictions, labels, weights, times, label_times
        )
        roster, bins = self.layer.roster, getattr(self.layer, "bins", None)
        if bins is not None:
            groups = bins.added_columns(groups, roster.groups, base)
        own = door.groups(groups, roster.groups, len(base))
        x = door.features(features, roster.features, len(base))
        known = len(self.book)
        code = frames.coded(key, "key", self.book)
        door.same_length(len(base), len(code), "key")
        if len(self.book) > known:
            self._grow()
        local, _, _, norms = roster.columns(len(base), own, x)
        largest = float(norms.max(initial=0.0)) if norms is not None else roster.size
        self.layer.check_rows(largest, float(w.max(initial=1.0)))
        rows, clock = single(code), code
        if not roster.scalar:
            params = self._params(code, local.params.reshape(len(base), -1))
            rows = Rows(local.starts, params.ravel(), local.value)
            clock = np.ascontiguousarray(params[:, 0]) if roster.disjoint else code
        cells = single(code) if roster.features else rows
        ran = run_columns(
            self.desk, Columns(base, y, w, rows, cells, clock, code, norms, when, due)
        )
        served = self.layer.shown(base, ran.served)
        return Run(answer(predictions, served), ran.served, ran, no_trace)

    def _params(self, code: Any, local: Any) -> Any:
        """The parameter of each row's key for every parameter that one layer has there."""
        pairs = code[:, None] * SPAN + local
        params = self.pairs.of_keys(np.ascontiguousarray(pairs.ravel()))
        self._grow()
        return params.reshape(pairs.shape)

    def label(self, y: Any) -> float:
        """The label, checked as the layer does."""
        checked: float = self.layer.label(y)
        return checked

    @property
    def keys(self) -> list[str]:
        """All keys seen, in order of first appearance."""
        return self.book.names

    @property
    def names(self) -> list[str]:
        """The parameters by name: the key, with groups "key, group"."""
        if self.layer.roster.scalar:
            return self.keys
        groups, keys = list(self.layer.roster.names), self.keys
        pairs = (divmod(int(pair), SPAN) for pair in self.pairs.names)
        return [f"{keys[k]}, {groups[j]}" for k, j in pairs]

    @property
    def levels(self) -> int:
        """Coordinates a key has: one, or the number of quantile levels."""
        return len(getattr(self.layer, "levels", (0,)))

    def table(self) -> KeyTable:
        """Bias and loss before and after, parameter and certificate of every key (and group), a column a level."""
        final, raw = self._heads()
        shape = (-1,) if self.levels == 1 else (-1, self.levels)
        sums, before = (np.frombuffer(head.sums).reshape(-1, COLUMNS) for head in (final, raw))
        weight = np.where(sums[:, WEIGHT] > 0.0, sums[:, WEIGHT], math.nan)
        moved = np.resize(start_of(self.layer), len(final.u)) - np.array(final.u)
        certificate = moved / final.pace.high if final.pace.constant else sums[:, GRADIENT]
        # The value of Squared is half the squared error.
        scale = 2.0 if self.layer.kind == "debias" else 1.0
        return KeyTable(
            self.names,
            sums[:: self.levels, ROWS].astype(np.int64),
            np.array(final.u).reshape(shape),
            (before[:, BEFORE] / weight).reshape(shape),
            (sums[:, GRADIENT] / weight).reshape(shape),
            (scale * before[:, LOSS_BEFORE] / weight).reshape(shape),
            (scale * sums[:, LOSS_AFTER] / weight).reshape(shape),
            (certificate / weight).reshape(shape),
        )

    def update(self, y: Any, id: str | int | None = None, key: Any = None) -> str:
        """Learn from a label: of the ticket with this id, or of the oldest open one (of this key, if given)."""
        if key is None or id is not None:
            return self._update(y, id)
        ticket = self._oldest(key)
        return self.desk.settle(ticket, self.label(y))

    def _oldest(self, key: Any) -> Ticket:
        unit, gone = self._code(key), self.desk.gone
        for ticket in self.desk.queue:
            if ticket.row.unit == unit and ticket.number not in gone:
                return ticket
        raise UnknownTicket(f"no prediction of key {key!r} waits for a label; call predict first")

    def _code(self, key: Any) -> int:
        k = self._known.get(key)
        if k is None:
            if group_name(key) not in self.book.names:
                raise BadInput(f"key {key!r} was never seen here")
            k = self._known[key] = int(self.book.of_cells([key])[0])
        return k

    def equilibrium(self, key: Any = None) -> Equilibrium:
        """All keys together, or one of them by itself; ``table()`` has each.

        The sum of the errors of one key is at most its radius over eta; so the bound here is that of a single layer
        which had all rows, times the number of keys.
        """
        together = type(self.layer)(**self.layer.settings)
        together.roster.names = dict(self.layer.roster.names)
        together.grow()
        desk = together.desk
        desk.peaks, desk.heaviest, desk.largest = (
            self.desk.peaks[:],
            self.desk.heaviest,
            self.desk.largest,
        )
        desk.tops, desk.delay_most = array("d", [self.desk.norm]), self.desk.delay_most
        gather(
            desk.head,
            self.desk.head,
            start_of(self.layer),
            *self._places(key),
            self._first_column(key),
        )
        if key is not None:
            return together.equilibrium()  # type: ignore[no-any-return]
        one: Equilibrium = together.equilibrium()
        count = len(self.book)
        if one.bound is None or not count:
            return one
        bound = one.bound * count
        vacuous = not bound < best_bound(setting_of(together)).trivial
        coordinates = tuple(
            dataclasses.replace(
                c, bound=None if c.bound is None else c.bound * count, vacuous=vacuous
            )
            for c in one.coordinates
        )
        source = f"{one.bound_from} for each of {count:,} keys"
        return dataclasses.replace(
            one, coordinates=coordinates, bound=bound, bound_from=source, vacuous=vacuous
        )

    def _places(self, key: Any) -> tuple[Any, Any]:
        """The parameters of one key (or of all), and which parameter of the layer each one is."""
        if self.layer.roster.scalar:
            own = np.arange(len(self.book)) if key is None else np.array([self._code(key)])
            return own, np.zeros(len(own), dtype=np.int64)
        pairs = np.array([int(pair) for pair in self.pairs.names], dtype=np.int64)
        own = np.arange(len(pairs))
        if key is not None:
            own = np.flatnonzero(pairs // SPAN == self._code(key))
        return own, pairs[own] % SPAN

    def _first_column(self, key: Any) -> list[int] | None:
        """Parameters that every row has exactly one of: their accounts add up to those of all rows of a key."""
        roster = self.layer.roster
        if key is None or roster.scalar:
            return None
        if not roster.groups:
            raise BadInput(
                "the rows of one key are not counted apart with features alone; see table()"
            )
        return [j for name, j in roster.names.items() if name.startswith(f"{roster.groups[0]}=")]

    @property
    def settings(self) -> dict[str, Any]:
        """The kind and settings of the layer that every key has."""
        return {"kind": self.layer.kind, "settings": self.layer.settings}

    def state(self) -> dict[str, Any]:
        """Keys and their table."""
        groups = {
            "names": list(self.layer.roster.names),
            "pairs": [int(pair) for pair in self.pairs.names],
        }
        own = {} if self.layer.roster.scalar else groups
        return {"keys": list(self.keys), **own, **self.desk.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Take up a saved state."""
        self.book = Codebook(state["keys"])
        self._known = {}
        if not self.layer.roster.scalar:
            self.layer.roster.names = {name: j for j, name in enumerate(state["names"])}
            self.pairs = Codebook(str(pair) for pair in state["pairs"])
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
        keys, roster = len(self.book), self.layer.roster
        count = keys if roster.scalar else len(self.pairs)
        self.desk.head.grow(count)
        if isinstance(self.desk.head, Mix):
            self.desk.head.grow_units(keys)
        self.desk.grow(count if roster.disjoint else keys, keys if roster.features else count)
        if roster.features:
            self.desk.tops.extend(array("d", [0.0]) * (keys - len(self.desk.tops)))


def no_trace(_: Any) -> Any:
    """A run over many keys keeps no trace."""
    raise BadInput("a run over many keys keeps no trace; run one key by itself to see its path")
