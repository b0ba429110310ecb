"""Many independent series: one layer for each key, all in one table and one pass in row order."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, SupportsFloat, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from gradeq.certificates.certificate import certificate, labels_needed, more_labels
from gradeq.certificates.figures import is_vacuous, learning_of, raw_error_of_all, raw_errors
from gradeq.certificates.reading import Reading, Terms, reading_of, setting_of
from gradeq.engine import scalars
from gradeq.errors import BadInput, warn_deprecated
from gradeq.inputs.arguments import as_shown
from gradeq.inputs.column_types import Column, ColumnLike, ColumnsByName, Forecast, OrArray
from gradeq.kernels.account import PATH, STEPS, VARIATION
from gradeq.layers.columns import Moment
from gradeq.layers.key_table import Key, Keys, KeyTable, key_table
from gradeq.layers.layer import Id, Layer, RowArguments
from gradeq.layers.locking import locked, set_attribute
from gradeq.layers.options import LateLabels, check_together
from gradeq.layers.predicting import Grouped, Predicting, Served
from gradeq.layers.run import InputColumns, Run, answer_many, run_layer, serve_many
from gradeq.layers.serialization import Saved
from gradeq.ledger import facts as fact
from gradeq.ledger.state import State
from gradeq.ledger.values import Ticket

if TYPE_CHECKING:
    from gradeq.equilibrium import Coordinate, Equilibrium
    from gradeq.ledger.batch import Floats, Ints

Averages = TypeVar("Averages", bound="Equilibrium | Coordinate")
NO_KEY: Any = object()
KINDS = ("debias", "quantile", "quantiles", "interval")
Keyable = TypeVar("Keyable", bound=Grouped[Any, Any], covariant=True)


class Keyed(Predicting[float | tuple[float, ...]], Generic[Keyable]):
    """One independent layer for each key; the same verbs with ``key=``, about 110 bytes a key.

    >>> from gradeq import Debiaser
    >>> many = Keyed(Debiaser(eta=0.5))
    >>> many.predict(10.0, key="shop 1"), many.update(12.0)
    (10.0, 'applied')
    >>> many.predict(10.0, key="shop 1"), many.predict(10.0, key="shop 2")
    (11.0, 10.0)

    ``layer`` is the pattern of all keys: an untrained ``Debiaser`` or quantile tracker (its step defaults to plain).
    Keys are integers or text (7 and "7" are one key) and may appear at any time. Every key has the guarantee of a
    separate layer over the rows of that key; for keys with few labels the bound is vacuous. Groups and features are
    separate for each key. A layer with a penalty cannot be keyed (name the key as one more group instead), nor one
    with ``eta="auto"``, which needs more labels than a key has.

    ``pool=True`` (quantile trackers without a step): keys share what they learn, which helps short series. It mixes,
    as ``auto`` does, an offset of all keys and one of each key (shrunk to the common one while the key has few
    labels), in units of the key's scale; then a tracker of each key, step 0.03, carries its certificate.
    """

    kind = "keyed"

    layer: Keyable

    def __init__(self, layer: Keyable, pool: bool = False) -> None:
        if not isinstance(layer, Grouped) or layer.kind not in KINDS:
            what = type(layer).__name__ if isinstance(layer, Layer) else f"layer={as_shown(layer)}"
            raise BadInput(f"{what} cannot be keyed; give a Debiaser or a quantile tracker")
        if layer.internals.state.facts[fact.SERVED]:
            raise BadInput("Keyed needs a fresh layer as its pattern, one that has served nothing")
        self.pool, settings = scalars.flag(pool, "pool"), layer.settings
        if self.pool:
            options = {name: bool(settings.get(name)) for name in ("groups", "features", "schedule", "warm")}
            options |= {"pool": True, "eta": layer.eta not in (None, "auto"), f"link {layer.link_name}": True}
        else:
            if layer.default_step:  # a key has too few labels for auto
                layer = type(layer)(**{**settings, "eta": "plain"})
            options = {"auto": layer.eta == "auto"}
        check_together(layer.kind, options | {"keyed": not self.pool, "penalty": layer.penalty is not None})
        self.layer = layer.copy()
        self.shadow, self._sizing = layer.shadow, layer.internals.sizing
        self._bases, self._labels = layer._bases, layer._labels
        self.bins = layer.bins
        lateness, book = layer.internals.lateness, layer.internals.tickets
        rule = pooled(layer.internals.rule) if self.pool else layer.internals.rule
        self._as_served = layer.internals.as_served
        self.layer._keyed = True
        late = LateLabels(lateness.limit, lateness.in_flight, book.ttl, queue=book.queue)
        self._build(rule, Keys(self.layer.internals.names), late, 1.0)
        self.internals.tickets = book.blank()

    def _change(self, name: str, value: object) -> object:
        value = scalars.flag(value, "shadow") if name == "shadow" else super()._change(name, value)
        if name == "shadow":
            set_attribute(self.layer, name, value)
        return value

    @locked
    def open(
        self,
        f: Forecast,
        *old: object,
        key: Key = NO_KEY,
        groups: Mapping[str, object] | None = None,
        features: Mapping[str, SupportsFloat] | None = None,
        weight: float = 1.0,
    ) -> Ticket:
        """Serve a prediction of this key and return its ticket to the caller."""
        if old or key is NO_KEY:
            return self.open(f, **by_name("open", ROW, old, key, groups, features, weight))
        return self._ticket(*self._row_arguments(f, key, groups, features, weight))

    @locked
    def peek(
        self: Keyed[Grouped[Served, OrArray]],
        f: Forecast,
        *old: object,
        key: Key = NO_KEY,
        groups: Mapping[str, object] | None = None,
        features: Mapping[str, SupportsFloat] | None = None,
        time: Moment | None = None,
    ) -> Served:
        """What ``predict`` would serve for this key now, even for a new key; the layer does not change."""
        if old or key is NO_KEY:
            return self.peek(f, **by_name("peek", ROW, old, key, groups, features), time=time)
        row, place, f, _ = self._row_arguments(f, key, groups, features, 1.0)
        served: Served = self._peek(row, place, f, time)
        return served

    def _row_arguments(
        self,
        f: Any,
        key: Key,
        groups: Mapping[str, object] | None,
        features: Mapping[str, SupportsFloat] | None,
        weight: float,
    ) -> RowArguments:
        low, high = self._bases
        if type(f) is not float or not low <= f <= high:
            f = self.layer.validate_prediction(f)
        w = 1.0 if type(weight) is float and weight == 1.0 else scalars.weight(weight)
        if self.bins is not None:
            groups = self.bins.added(groups, f)
        return (*self.internals.names.row(key, groups, features), f, w)

    def predict(
        self: Keyed[Grouped[Served, OrArray]],
        f: Forecast,
        *old: object,
        key: Key = NO_KEY,
        groups: Mapping[str, object] | None = None,
        features: Mapping[str, SupportsFloat] | None = None,
        weight: float = 1.0,
        id: Id | None = None,
        time: Moment | None = None,
    ) -> Served:
        """The adjusted prediction for this key."""
        if old or key is NO_KEY:
            return self.predict(f, **by_name("predict", ROW, old, key, groups, features, weight, id, time))
        lock = self.lock
        try:
            lock.acquire()
            served: Served = self._open(*self._row_arguments(f, key, groups, features, weight), id, time)
            return served
        finally:
            lock.release()

    @locked
    def run(
        self: Keyed[Grouped[Served, OrArray]],
        predictions: Column,
        labels: ColumnLike | None = None,
        *old: object,
        key: ColumnLike | None = None,
        groups: ColumnsByName | None = None,
        features: ColumnsByName | None = None,
        times: ColumnLike | None = None,
        label_times: ColumnLike | None = None,
        weights: ColumnLike | None = None,
        ids: ColumnLike | None = None,
    ) -> Run[Column | OrArray]:
        """Serve and learn from whole columns in one pass, in row order, never sorted by key.

        With ``ids`` (unique across keys) the ticket of a row without a label stays open for ``update(y, id)``.
        """
        if old:
            others = (key, groups, features, times, label_times, weights, ids)
            return self.run(predictions, labels, **by_name("run", RUN, old, *others))
        if key is None:
            raise BadInput("Keyed.run needs key: the column that says to which series each row belongs")
        inputs = InputColumns(predictions, labels, groups, features, times, label_times, weights, ids, key)
        return run_layer(self, inputs)

    @locked
    def predict_many(
        self: Keyed[Grouped[Served, OrArray]],
        predictions: Column,
        *old: object,
        key: ColumnLike | None = None,
        groups: ColumnsByName | None = None,
        features: ColumnsByName | None = None,
        weights: ColumnLike | None = None,
        ids: ColumnLike | None = None,
        times: ColumnLike | None = None,
    ) -> Column | OrArray:
        """The adjusted predictions of whole columns, as from ``predict``; every ticket stays open.

        ``key``: the column of series. A frame with columns ``prediction`` and ``key`` comes back with ``adjusted``.
        """
        if old:
            others = (key, groups, features, weights, ids, times)
            return self.predict_many(predictions, **by_name("predict_many", ROWS, old, *others))
        inputs = InputColumns(predictions, None, groups, features, times, None, weights, ids, key)
        return serve_many(self, inputs)

    @overload
    def update_many(
        self,
        labels: NDArray[Any],
        ids: ColumnLike | None = None,
        key: ColumnLike | None = None,
        *,
        times: ColumnLike | None = None,
    ) -> NDArray[np.object_]: ...
    @overload
    def update_many(
        self,
        labels: Sequence[object],
        ids: ColumnLike | None = None,
        key: ColumnLike | None = None,
        *,
        times: ColumnLike | None = None,
    ) -> Sequence[str]: ...
    @overload
    def update_many(
        self,
        labels: Column,
        ids: ColumnLike | None = None,
        key: ColumnLike | None = None,
        *,
        times: ColumnLike | None = None,
    ) -> Column: ...
    @locked
    def update_many(
        self,
        labels: ColumnLike,
        ids: ColumnLike | None = None,
        key: ColumnLike | None = None,
        *,
        times: ColumnLike | None = None,
    ) -> ColumnLike:
        """Learn from many labels, as ``update`` does: of these ids, or of the oldest of ``predict_many`` (by key)."""
        return answer_many(self._answer, labels, {"id": ids, "key": key, "time": times})

    def _answer(self, y: object, id: Id | None = None, key: Key | None = None, *, time: Moment | None = None) -> str:
        return super()._answer(y, id, self._key(key), time=time)

    def update(self, y: object, id: Id | None = None, key: Key | None = None, *, time: Moment | None = None) -> str:
        """Learn from the label of the prediction with this id, or of the open one of this key without an id.

        ``key`` is optional if only one key is open. ``None`` or nan: no label will come (see ``skip``).
        """
        with self.lock:
            return self._update(y, id, None if id is not None else self._key(key), time=time)

    @locked
    def skip(self, id: Id | None = None, key: Key | None = None) -> str:
        """No label will come: close the prediction with this id, or the one of this key without an id."""
        return self._skip(id, None if id is not None else self._key(key))

    def _key(self, key: Key | None) -> str | None:
        names = self.internals.names
        return None if key is None else names.book.names[names.code(key)]

    @locked
    def set_step(self, eta: float) -> None:
        """Use another constant step from now on, for every key."""
        self._take_step(self.layer._set_step(eta))

    @property
    @locked
    def keys(self) -> list[str]:
        """All keys seen, in order of first appearance."""
        names: list[str] = self.internals.names.book.names
        return names

    @property
    @locked
    def theta(self) -> Mapping[str, float | tuple[float, ...]]:
        """The parameters by name: the key, with groups "key, group"; a tuple where there are several levels."""
        u, width, names = self.internals.state.u, self.internals.rule.width, self.internals.names.names
        if width == 1:
            return dict(zip(names, u, strict=True))
        return {name: tuple(u[j * width : (j + 1) * width]) for j, name in enumerate(names)}

    @locked
    def table(self) -> KeyTable:
        """Bias and loss before and after, parameter and certificate of every key (and group), a column a level."""
        return key_table(self)

    @locked
    def equilibrium(self, key: Key | None = None) -> Equilibrium:
        """All keys together, or a single one; ``table()`` has each.

        The errors of one key add up to at most its radius over eta, so the bound of all keys together is that of a
        single layer with all rows, times the number of keys.
        """
        reading = self._gathered(key)
        single = replace(certificate(reading), learning=learning_of(self))
        count = self.internals.names.keys
        if key is not None or count < 2:
            return single

        def of_all_keys(result: Averages, raw: float) -> Averages:
            bound = None if result.bound is None else result.bound * count
            return replace(result, bound=bound, vacuous=is_vacuous(bound, raw))

        raws = raw_errors(reading, reading.state.sums).tolist()
        coordinates = tuple(map(of_all_keys, single.coordinates, raws))
        raw = raw_error_of_all(reading)
        total = of_all_keys(single, raw)
        needed = labels_needed(setting_of(reading), single.bound, raw / count) if total.vacuous else None
        source = single.bound_from if total.bound is None else f"{single.bound_from} for each of {count:,} keys"
        return replace(total, coordinates=coordinates, bound_from=source, needed=needed)

    @locked
    def labels_until(self, bound: float) -> int | None:
        """How many more labels until the proven bound of all keys together falls below this."""
        return more_labels(self._gathered(None), scalars.bound(bound) / max(1, self.internals.names.keys))

    def _gathered(self, key: Key | None) -> Reading:
        """The state that a certificate is computed from: all keys added up, or one of them."""
        whole, names = self.internals.state, self.internals.names
        chosen, places = self._places(key)
        rows = slice(None) if chosen is None else chosen
        state = whole.gathered(chosen, places, names.roster.count)
        if len(state.path):  # of all keys the largest variation and smallest steps
            most = whole.view("path").reshape(-1, PATH)[rows].max(axis=0, initial=0.0)
            state.view("path").reshape(-1, PATH)[:, VARIATION] = most[VARIATION]
            state.view("total_path")[:] = most
        if len(state.steps) and self.terms.structure not in ("scalar", "disjoint"):
            # The sums of a parameter cover its labels only, but all labels of the key move the others.
            state.steps, state.total_steps = array("d"), array("d")
        elif len(state.steps):  # and the largest sums of steps
            most = whole.view("steps").reshape(-1, STEPS)[rows].max(axis=0, initial=0.0)
            state.view("steps").reshape(-1, STEPS)[:] = most
            state.view("total_steps")[:] = most
        if hasattr(state, "nums") and names.keys:  # and the largest scale
            nums, dens = whole.view("nums"), whole.view("dens")
            k = int(nums.argmax()) if key is None else names.code(key)
            state.nums[0], state.dens[0] = nums[k], dens[k]
        if key is not None and hasattr(state, "total"):
            state.total = self._account_of_key(state)
        return replace(reading_of(self), names=names.roster.names, state=state)

    def _places(self, key: Key | None) -> tuple[Ints | None, Ints]:
        """The parameters of one key (None: of all), and which parameter of the pattern each one is."""
        names = self.internals.names
        if names.roster.scalar:
            chosen = None if key is None else np.array([names.code(key)])
            return chosen, np.zeros(names.keys if chosen is None else 1, dtype=np.int64)
        pairs = np.array(names.split(), dtype=np.int64).reshape(-1, 2)
        if key is None:
            return None, pairs[:, 1]
        chosen = np.flatnonzero(pairs[:, 0] == names.code(key))
        return chosen, pairs[chosen, 1]

    def _account_of_key(self, state: State) -> array[float]:
        """The account of all rows of one key: the sum over its groups in one column."""
        names = self.internals.names.roster
        if not names.groups:
            raise BadInput("the rows of one key are not counted apart with features alone; see table()")
        first = [j for name, j in names.index.items() if name.startswith(names.prefixes[0])]
        gathered = state.gathered(np.array(first), np.zeros(len(first), dtype=np.int64), 1)
        sums: array[float] = gathered.sums[:]
        return sums

    @property
    def pattern(self) -> Layer:
        return self.layer

    @property
    def terms(self) -> Terms:
        return self.layer.terms

    def validate_label(self, y: object) -> Any:
        return self.layer.validate_label(y)

    def prediction_column(self, predictions: ColumnLike) -> Floats:
        return self.layer.prediction_column(predictions)

    def label_column(self, labels: ColumnLike | None, n: int) -> Floats:
        return self.layer.label_column(labels, n)

    def displayed(self, f: Any, served: Any) -> Any:
        return self.layer.displayed(f, served)

    @property
    @locked
    def settings(self) -> Saved:
        """The kind and settings of the layer that every key has."""
        settings = {"kind": self.layer.kind, "settings": self.layer.settings}
        return settings | ({"pool": True} if self.pool else {})


def pooled(rule: Any) -> Any:
    """The rule of auto with the key as its group: an offset of all keys, and one of each key, shrunk to it."""
    return replace(rule, inner=pooled(rule.inner)) if hasattr(rule, "inner") else replace(rule, groups=1.0)


ROW = ("key", "groups", "features", "weight", "id", "time")
ROWS = ("key", "groups", "features", "weights", "ids", "times")
RUN = ("key", "groups", "features", "times", "label_times", "weights", "ids")


def by_name(verb: str, names: tuple[str, ...], old: tuple[object, ...], *named: object) -> dict[str, Any]:
    """The arguments of a verb by name; ``old``: those that were passed by position, the key first."""
    values = (*old, *named[len(old) :])
    if len(values) > len(named) or values[0] is NO_KEY:
        raise TypeError(f"Keyed.{verb} takes a prediction and key=; give everything else by name too")
    warn_deprecated(f"a key by position in Keyed.{verb}", f"Keyed.{verb}(..., key=...)")
    return dict(zip(names, values, strict=False))
