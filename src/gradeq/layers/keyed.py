"""Many independent series: one layer for each key, all in one table and one pass in row order."""

from __future__ import annotations

import dataclasses
from array import array
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from gradeq.certificate import certificate, labels_needed, more_labels
from gradeq.certificate_reading import Reading, reading_of, setting_of
from gradeq.engine import checks
from gradeq.errors import BadInput
from gradeq.informative import is_vacuous, raw_error_of_all, raw_errors
from gradeq.kernels.account import PATH, STEPS, VARIATION
from gradeq.layers import combinations
from gradeq.layers.columns import Moment, moment
from gradeq.layers.guard import holds_lock
from gradeq.layers.keys import Keys
from gradeq.layers.keytable import KeyTable, key_table
from gradeq.layers.layer import Asked, Id, Layer, set_attribute
from gradeq.layers.predicting import Predicting
from gradeq.layers.run import Run, run_layer
from gradeq.learning import learning_of
from gradeq.ledger import facts as fact
from gradeq.ledger.values import Ticket

if TYPE_CHECKING:
    from gradeq.equilibrium import Equilibrium

KINDS = ("debias", "quantile", "quantiles", "interval")


class Keyed(Predicting):
    """One independent layer for each key; the same verbs with ``key=``, about 110 bytes a key.

    >>> from gradeq import Debiaser
    >>> many = Keyed(Debiaser(eta=0.5))
    >>> many.predict(10.0, key="shop 1"), many.update(12.0)
    (10.0, 'applied')
    >>> many.predict(10.0, key="shop 1"), many.predict(10.0, key="shop 2")
    (11.0, 10.0)

    The layer given is a pattern: one that has seen nothing, a ``Debiaser`` or a quantile tracker (its step left out:
    plain).
    Keys may be integers or text (7 and "7" are one key) and may appear at any time. Every key has the guarantee of
    its own layer, over its own rows; for keys with few labels that bound is vacuous. Groups and features are each
    key's own. A layer with a penalty cannot be keyed (name the key as one more group instead), nor one with
    ``eta="auto"``, which needs more labels than a key has.

    ``pool=True`` (quantile trackers without a step): keys share what they learn, so that short series gain. An offset
    of all keys and one of each key, shrunk to it while the key has few labels, in units of the key's own scale, are
    mixed by their loss as by ``auto``; then each key's own tracker, step 0.03, carries its certificate.
    """

    kind = "keyed"

    def __init__(self, layer: Layer, pool: bool = False) -> None:
        if not isinstance(layer, Predicting) or layer.kind not in KINDS:
            raise BadInput(
                f"{type(layer).__name__} cannot be keyed; give a Debiaser or a quantile tracker"
            )
        if layer._state.facts[fact.SERVED]:
            raise BadInput("Keyed needs a fresh layer as its pattern, one that has served nothing")
        self.pool = checks.flag(pool, "pool")
        if self.pool:
            check_pooled(layer)
        elif getattr(layer, "_left_out", False):  # a key has too few labels for auto
            layer = type(layer)(**{**layer.settings, "eta": "plain"})
        auto = getattr(layer, "eta", None) == "auto" and not self.pool
        combinations.check(
            layer.kind, keyed=True, penalty=layer._rule.penalty is not None, auto=auto
        )
        self.layer: Any = layer.copy()
        self.shadow, self._sizing = layer.shadow, layer._sizing
        self._bases, self._labels = layer._bases, layer._labels
        self.bins = getattr(layer, "bins", None)
        own = (layer._flight.limit, layer._flight.in_flight, layer._book.ttl, layer.queue)
        rule = pooled(layer._rule) if self.pool else layer._rule
        self._as_served = layer._as_served
        self.layer._keyed = True
        self._build(rule, Keys(self.layer._names), *own)
        self._book = layer._book.blank()

    def _change(self, name: str, value: Any) -> Any:
        value = checks.flag(value, "shadow") if name == "shadow" else super()._change(name, value)
        if name == "shadow":
            set_attribute(self.layer, name, value)
        return value

    def open(
        self,
        f: Any,
        key: Any,
        groups: Mapping[str, Any] | None = None,
        features: Mapping[str, Any] | None = None,
        weight: float = 1.0,
    ) -> Ticket:
        """Serve a prediction of this key's own layer and leave its ticket with the caller."""
        return self._ticket(*self._asked(f, key, groups, features, weight))

    def peek(
        self,
        f: Any,
        key: Any,
        groups: Mapping[str, Any] | None = None,
        features: Mapping[str, Any] | None = None,
    ) -> Any:
        """What ``predict`` would serve for this key now, for a new key too; nothing is counted or kept."""
        row, place, f, _ = self._asked(f, key, groups, features, 1.0)
        return self._peek(row, place, f)

    def _asked(self, f: Any, key: Any, groups: Any, features: Any, weight: Any) -> Asked:
        """What a call asks for, checked: where the row belongs, the prediction and the weight."""
        low, high = self._bases
        if type(f) is not float or not low <= f <= high:
            f = self.layer._prediction(f)
        w = 1.0 if type(weight) is float and weight == 1.0 else checks.weight(weight)
        if self.bins is not None:
            groups = self.bins.added(groups, f)
        return (*self._names.row(key, groups, features), f, w)

    @holds_lock
    def predict(
        self,
        f: Any,
        key: Any,
        groups: Mapping[str, Any] | None = None,
        features: Mapping[str, Any] | None = None,
        weight: float = 1.0,
        id: Id | None = None,
        time: Moment | None = None,
    ) -> Any:
        """The adjusted prediction of this key's own layer."""
        lock = self._lock
        try:
            lock.acquire()
            if id is not None:
                id = self._book.check_new(id)
            if time is not None:
                time = moment(time, self._book)
            return self._open(*self._asked(f, key, groups, features, weight), id, time)
        finally:
            lock.release()

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
        ids: Any = None,
    ) -> Run:
        """Serve and learn from whole columns in one pass, in row order, never sorted by key.

        With ``ids`` (unique across keys) a row without a label keeps its ticket; ``update(y, id)`` brings its label.
        """
        if key is None:
            raise BadInput(
                "Keyed.run needs key: the column that says to which series each row belongs"
            )
        given = (groups, features, times, label_times, weights, key)
        return run_layer(self, predictions, labels, *given, ids=ids)

    def predict_many(
        self,
        predictions: Any,
        key: Any = None,
        groups: Any = None,
        features: Any = None,
        weights: Any = None,
        ids: Any = None,
        times: Any = None,
    ) -> Any:
        """The adjusted predictions of whole columns, as ``predict`` gives them one by one; every ticket stays open.

        ``key``: the column of series. A frame with columns ``prediction`` and ``key`` comes back with ``adjusted``.
        """
        from gradeq.layers.many import serve_many

        own = {"weights": weights, "ids": ids, "times": times}
        return serve_many(self, predictions, key=key, groups=groups, features=features, **own)

    def update_many(
        self, labels: Any, ids: Any = None, key: Any = None, *, times: Any = None
    ) -> Any:
        """Learn from many labels, as ``update`` does: of these ids, or of the oldest of ``predict_many`` (by key)."""
        from gradeq.layers.many import answer_many

        return answer_many(self._answer, labels, {"id": ids, "key": key, "time": times})

    def _answer(
        self, y: Any, id: Any = None, key: Any = None, *, time: Moment | None = None
    ) -> str:
        return super()._answer(y, id, None if key is None else self._key(key), time=time)

    @holds_lock
    def update(
        self, y: Any, id: Id | None = None, key: Any = None, *, time: Moment | None = None
    ) -> str:
        """Learn from a label: of the prediction with this id, or of the one of this key without an id.

        ``key`` may be left out where only one key waits. ``None`` or nan: no label will come (see ``skip``).
        """
        with self._lock:
            own = None if key is None or id is not None else self._key(key)
            return self._update(y, id, own, time=time)

    def skip(self, id: Id | None = None, key: Any = None) -> str:
        """No label will come: close the prediction with this id, or that of this key without an id."""
        return self._skip(id, None if key is None or id is not None else self._key(key))

    def _key(self, key: Any) -> str:
        """A key that was seen, by name."""
        name: str = self._names.book.names[self._names.code(key)]
        return name

    def set_step(self, eta: float) -> None:
        """Use another constant step from now on, for every key."""
        self.layer._set_step(eta)
        self._take_step(self.layer.schedule)

    @property
    def keys(self) -> list[str]:
        """All keys seen, in order of first appearance."""
        names: list[str] = self._names.book.names
        return names

    @property
    def theta(self) -> dict[str, Any]:
        """The parameters by name: the key, with groups "key, group"; a tuple where there are several levels."""
        u, width = self._state.u, self._rule.width
        if width == 1:
            return dict(zip(self._names.names, u, strict=True))
        rows = (tuple(u[j * width : (j + 1) * width]) for j in range(self._names.count))
        return dict(zip(self._names.names, rows, strict=True))

    def table(self) -> KeyTable:
        """Bias and loss before and after, parameter and certificate of every key (and group), a column a level."""
        return key_table(self)

    def equilibrium(self, key: Any = None) -> Equilibrium:
        """All keys together, or one of them by itself; ``table()`` has each.

        The sum of the errors of one key is at most its radius over eta; so the bound here is that of a single layer
        which had all rows, times the number of keys.
        """
        reading = self._gathered(key)
        one = dataclasses.replace(certificate(reading), learning=learning_of(self))
        count = self._names.keys
        if key is not None or count < 2:
            return one

        def added(bound: float | None) -> float | None:
            return None if bound is None else bound * count

        raws = raw_errors(reading, reading.state.sums)
        coordinates = []
        for c, raw in zip(one.coordinates, raws.tolist(), strict=True):
            own = added(c.bound)
            coordinates.append(dataclasses.replace(c, bound=own, vacuous=is_vacuous(own, raw)))
        bound, raw = added(one.bound), raw_error_of_all(reading)
        vacuous = is_vacuous(bound, raw)
        needed = labels_needed(setting_of(reading), one.bound, raw / count) if vacuous else None
        source = one.bound_from if bound is None else f"{one.bound_from} for each of {count:,} keys"
        return dataclasses.replace(
            one, coordinates=tuple(coordinates), bound=bound, bound_from=source, vacuous=vacuous,
            needed=needed,
        )  # fmt: skip

    def labels_until(self, bound: float) -> int | None:
        """How many more labels until the proven bound of all keys together falls below this."""
        return more_labels(self._gathered(None), checks.bound(bound) / max(1, self._names.keys))

    def _gathered(self, key: Any) -> Reading:
        """What a certificate is read from: all keys added up, or one of them."""
        own, places = self._places(key)
        state = self._state.gathered(own, places, self._names.own.count)
        if len(state.path):  # no key's steps varied more, or were smaller, than those that did most
            paths = self._state.view("path").reshape(-1, PATH)
            most = (paths if own is None else paths[own]).max(axis=0, initial=0.0)
            state.view("path").reshape(-1, PATH)[:, VARIATION] = most[VARIATION]
            state.view("total_path")[:] = most
        if len(state.steps) and self._terms.structure not in ("scalar", "disjoint"):
            # Of each parameter only its own labels are added up, but all of the key's move the others.
            state.steps, state.total_steps = array("d"), array("d")
        elif len(state.steps):  # nor did they add up to more
            sums = self._state.view("steps").reshape(-1, STEPS)
            sums = (sums if own is None else sums[own]).max(axis=0, initial=0.0)
            state.view("steps").reshape(-1, STEPS)[:] = sums
            state.view("total_steps")[:] = sums
        if hasattr(state, "nums") and self._names.keys:  # of all keys the largest scale
            nums, dens = self._state.view("nums"), self._state.view("dens")
            k = int(nums.argmax()) if key is None else self._names.code(key)
            state.nums[0], state.dens[0] = nums[k], dens[k]
        if key is not None and hasattr(state, "total"):
            state.total = self._whole(state)
        return reading_of(self, self._names.own.names)._replace(state=state)

    def _places(self, key: Any) -> tuple[Any, Any]:
        """The parameters of one key (None: of all), and which parameter of the layer each one is."""
        names = self._names
        if names.own.scalar:
            own = None if key is None else np.array([names.code(key)])
            return own, np.zeros(names.keys if own is None else 1, dtype=np.int64)
        pairs = np.array(names.split(), dtype=np.int64).reshape(-1, 2)
        if key is None:
            return None, pairs[:, 1]
        own = np.flatnonzero(pairs[:, 0] == names.code(key))
        return own, pairs[own, 1]

    def _whole(self, state: Any) -> Any:
        """The account of all rows of one key: its groups in one column add up to it."""
        names = self._names.own
        if not names.groups:
            raise BadInput(
                "the rows of one key are not counted apart with features alone; see table()"
            )
        first = [j for name, j in names.index.items() if name.startswith(names.prefixes[0])]
        gathered = state.gathered(np.array(first), np.zeros(len(first), dtype=np.int64), 1)
        return gathered.sums[:]

    @property
    def _terms(self) -> Any:
        return self.layer._terms

    def _label(self, y: Any) -> Any:
        return self.layer._label(y)

    def _base_column(self, predictions: Any) -> Any:
        return self.layer._base_column(predictions)

    def _label_column(self, labels: Any, n: int) -> Any:
        return self.layer._label_column(labels, n)

    def _shown(self, f: Any, served: Any) -> Any:
        return self.layer._shown(f, served)

    @property
    def settings(self) -> dict[str, Any]:
        """The kind and settings of the layer that every key has."""
        found = {"kind": self.layer.kind, "settings": self.layer.settings}
        return found | ({"pool": True} if self.pool else {})


def check_pooled(layer: Any) -> None:
    """Refuse a pattern whose keys cannot share what they learn."""
    given = layer.settings
    named = {"groups", "features", "schedule", "penalty", "warm"}
    combinations.check(
        layer.kind,
        pool=True,
        eta=given.get("eta") not in (None, "auto"),
        **{name: bool(given.get(name)) for name in named},
        **{f"link_{layer.link_name}": True},
    )


def pooled(rule: Any) -> Any:
    """The rule of auto with the key as its group: an offset of all keys, and one of each, shrunk to it."""
    if hasattr(rule, "inner"):
        return dataclasses.replace(rule, inner=pooled(rule.inner))
    return dataclasses.replace(rule, groups=1.0)
