"""What layers on top of a prediction share: validation, support, and the verbs, with one parameter or with groups."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, SupportsFloat, TypeVar, cast

import numpy as np

from gradeq.certificates.certificate import coordinate_names, harm_cap_of
from gradeq.certificates.reading import reading_of
from gradeq.engine import scalars
from gradeq.engine.names import ALONE, Roster, is_given, is_mapping
from gradeq.engine.validation import check_kind
from gradeq.errors import BadInput
from gradeq.inputs.arguments import as_shown
from gradeq.inputs.column_types import Column, ColumnLike, ColumnsByName, FloatArray, Forecast, OrArray
from gradeq.layers import columns, serialization
from gradeq.layers.columns import Moment
from gradeq.layers.layer import ANY, Id, Layer, RowArguments
from gradeq.layers.locking import locked, set_attribute
from gradeq.layers.options import Support, check_label, check_together, clipped, limits_of, outside, refusal
from gradeq.layers.run import InputColumns, Run, run_layer, serve_many
from gradeq.layers.serialization import Saved, restore_layer
from gradeq.ledger.values import Row, Ticket
from gradeq.penalties import Penalty
from gradeq.schedules import Constant, Schedule

if TYPE_CHECKING:
    from gradeq.layers.conformal import PredictionSet
    from gradeq.ledger.batch import Floats
    from gradeq.theory import HarmCap

Served = TypeVar("Served", bound="float | tuple[float, ...] | PredictionSet", covariant=True)


class Predicting(Layer, Generic[Served]):
    """A layer on top of a prediction; predictions and labels are numbers, unless a subclass changes that.

    ``_bases``: floats in this range are valid predictions; ``validate_prediction`` checks all others.
    ``support``: the limits of labels and of displayed values, if there are any.
    """

    _bases = ANY
    _labels = ANY
    support: Support | None = None
    _unit: str = ""  # why labels outside [0, 1] are refused, where they are

    def validate_prediction(self, f: object) -> Any:
        return scalars.as_number(f, "prediction")

    def validate_label(self, y: object) -> Any:
        return check_label(scalars.as_number(y, "label"), self.support)

    def displayed(self, f: Any, served: Any) -> Any:
        return f if self.shadow else clipped(served, self.support)

    def prediction_column(self, predictions: ColumnLike) -> Floats:
        return columns.floats(predictions, "prediction")

    def label_column(self, labels: ColumnLike | None, n: int) -> Floats:
        """A column of labels, checked; nan where missing."""
        y = np.full(n, np.nan) if labels is None else columns.floats(labels, "label", missing=True)
        if self._unit:
            columns.refuse((y < 0.0) | (y > 1.0), y, "label", self._unit)
        if self.support is not None:
            low, high = limits_of(self.support)
            columns.refuse((y < low) | (y > high), y, "label", outside(self.support))
        return y

    def _limit_labels(self, support: object) -> None:
        """Set the support: a pair of limits, None (or infinity) for no limit on that side."""
        if not isinstance(support, (tuple, list)) or len(support) != 2:
            raise BadInput(
                f"support={as_shown(support)}: give a pair such as (0, None), None for no limit on that side"
            )
        ends: list[float | None] = []
        for end, side in zip(support, (-math.inf, math.inf), strict=True):
            unlimited = end is None or (isinstance(end, float) and end == side)
            ends.append(None if unlimited else scalars.as_number(end, "limit of the support"))
        low, high = ends
        if low is not None and high is not None and not low < high:
            raise BadInput(f"support=({low:g}, {high:g}): the lower limit must be below the upper one")
        if low is not None or high is not None:
            self.support = (low, high)
            limits = limits_of(self.support)
            self._labels = (max(self._labels[0], limits[0]), min(self._labels[1], limits[1]))
            self._as_served = False

    @locked
    def value_of(self, ticket: Ticket) -> Served:
        """The value of a ticket of yours to use: inside the support, and the raw prediction in shadow mode."""
        check_kind(ticket, Ticket)
        served: Served = self.displayed(ticket.base, ticket.served)
        return served

    shown = value_of  # its old name

    @property
    def _other_settings(self) -> Saved:
        names, bins = self.internals.names, getattr(self, "bins", None)
        return super()._other_settings | {
            "link": getattr(self, "link_name", None),
            "groups": list(names.groups if bins is None else names.groups[:-1]),  # the last column are the bins
            "features": list(names.features),
            "bins": None if bins is None else bins.edges,
        }

    @classmethod
    def _from_json(cls, text: str | bytes, **function: object) -> Self:
        """A saved layer, with the function that it was saved without."""
        kind, settings, state = serialization.load(text)
        if kind != cls.kind:
            raise BadInput(f"the state is of a {kind} layer, not {cls.kind}; use gradeq.from_json")
        layer = restore_layer(lambda saved: cls(**cast(Any, {**saved, **function})), kind, settings, state)
        assert isinstance(layer, cls)
        return layer


class SingleParameterLayer(Predicting[Served], Generic[Served, OrArray]):
    """The base of layers with one parameter: no groups, no features."""

    @locked
    def open(self, f: object, weight: float = 1.0) -> Ticket:
        """Serve a prediction and return its ticket to the caller; ``ticket.served`` is the served value."""
        return self._ticket(*ALONE, self.validate_prediction(f), scalars.weight(weight))

    @locked
    def predict(self, f: object, weight: float = 1.0, id: Id | None = None, time: Moment | None = None) -> Served:
        """The served value for this prediction; a ticket stays open until its label comes."""
        served: Served = self._open(*ALONE, self.validate_prediction(f), scalars.weight(weight), id, time)
        return served

    @locked
    def peek(self, f: object, time: Moment | None = None) -> Served:
        """What ``predict`` would serve now, or at a ``time`` with ``maturity``; the layer does not change."""
        served: Served = self._peek(*ALONE, self.validate_prediction(f), time)
        return served

    @locked
    def run(
        self,
        predictions: Column,
        labels: ColumnLike | None = None,
        times: ColumnLike | None = None,
        label_times: ColumnLike | None = None,
        weights: ColumnLike | None = None,
        ids: ColumnLike | None = None,
    ) -> Run[Column | OrArray]:
        """Serve and learn from whole columns, bit-for-bit identical to one event at a time.

        With ``ids`` the ticket of a row without a label stays open for ``update(y, id)``.
        """
        inputs = InputColumns(predictions, labels, times=times, label_times=label_times, weights=weights, ids=ids)
        return run_layer(self, inputs)

    @locked
    def predict_many(
        self,
        predictions: Column,
        weights: ColumnLike | None = None,
        ids: ColumnLike | None = None,
        times: ColumnLike | None = None,
    ) -> Column | OrArray:
        """The served values for whole columns, as from ``predict``; every ticket stays open.

        A frame with a column ``prediction`` (and ``id``, ``weight``, ``time``) comes back with the served values.
        """
        return serve_many(self, InputColumns(predictions, times=times, weights=weights, ids=ids))


class Stepped(Predicting[Served]):
    """A layer whose step is a number, a schedule, "auto" (``schedule`` None) or "plain", a constant for the task.

    It defaults to auto where that applies, else plain; ``default_step``: it is auto by default, not by name.
    """

    link_name: str
    penalty: Penalty | None
    eta: float | Literal["auto"] | None
    schedule: Schedule | None
    default_step = False
    _structure: str  # of its parameters, in the words of ``theory``

    @property
    def _auto_harm(self) -> str:
        """Why "auto" does little harm, for ``harm_cap``."""
        raise NotImplementedError

    def _chosen_step(
        self, eta: float | str | None, schedule: Schedule | None, names: Roster, plain: float
    ) -> tuple[float | Literal["auto"] | None, Schedule | None]:
        self._structure = "scalar" if names.scalar else "disjoint" if names.disjoint else "features"
        scalars.schedule(schedule)
        scalars.penalty(self.penalty)
        options = {
            "features": bool(names.features),
            "penalty": self.penalty is not None,
            "warm": bool(getattr(self, "warm", False)),
            "support": self.support is not None,
            f"link {self.link_name}": True,
        }
        self._takes_auto = refusal(self.kind, {"auto", *(name for name in options if options[name])}) is None
        word = eta if isinstance(eta, str) else None
        auto = word == "auto"
        if eta is None and schedule is None:
            self.default_step = auto = self._takes_auto
        use_plain = schedule is None and not auto and (eta is None or word == "plain")
        step = {"auto": auto, "eta": eta is not None and not auto, "schedule": schedule is not None}
        check_together(self.kind, options | step | {"no step": use_plain})
        if auto:
            return "auto", None
        if schedule is not None:
            self._check_step(schedule, names)
            return None, schedule
        constant = Constant(scalars.step(plain if use_plain else eta))
        self._check_step(constant, names)
        return constant.eta, constant

    def _check_step(self, schedule: Schedule, names: Roster) -> None:
        """Refuse a step that is too large for some sequence."""

    @locked
    def harm_cap(self) -> HarmCap:
        """The most that the step can cost in loss, whatever the data; its text says if nothing is proven."""
        return harm_cap_of(self, self._auto_harm)

    @property
    @locked
    def theta(self) -> dict[str, float]:
        """The parameters by name (and level, where there are several); with ``auto`` those of the final layer."""
        return dict(zip(coordinate_names(reading_of(self)), self.internals.state.u, strict=True))


class Grouped(Stepped[Served], Generic[Served, OrArray]):
    """The base of layers whose rows may have groups and features."""

    bins: Bins | None = None
    _last: Row  # of the last event

    @locked
    def open(
        self,
        f: Forecast,
        groups: Mapping[str, object] | None = None,
        features: Mapping[str, SupportsFloat] | None = None,
        weight: float = 1.0,
    ) -> Ticket:
        """Serve a prediction and return its ticket to the caller; ``ticket.served``: a number, or one per level."""
        row, place, f, w = self._row_arguments(f, groups, features, weight)
        ticket = self._ticket(row, place, f, w)
        set_attribute(self, "_last", row)
        return ticket

    @locked
    def peek(
        self,
        f: Forecast,
        groups: Mapping[str, object] | None = None,
        features: Mapping[str, SupportsFloat] | None = None,
        time: Moment | None = None,
    ) -> Served:
        """What ``predict`` would serve now, or at a ``time`` with ``maturity``; the layer does not change."""
        row, place, f, _ = self._row_arguments(f, groups, features, 1.0)
        served: Served = self._peek(row, place, f, time)
        return served

    def _row_arguments(
        self, f: Any, groups: Mapping[str, object] | None, features: Mapping[str, SupportsFloat] | None, weight: float
    ) -> RowArguments:
        """The checked arguments of a call: the row, its place if known, the prediction and the weight."""
        low, high = self._bases
        if type(f) is not float or not low <= f <= high:
            f = self.validate_prediction(f)
        w = 1.0 if type(weight) is float and weight == 1.0 else scalars.weight(weight)
        if self.bins is not None:
            groups = self.bins.added(groups, f)
        if groups is None and features is None and self.internals.names.scalar:
            return (*ALONE, f, w)
        return (*self.internals.names.row(groups, features), f, w)

    def predict(
        self,
        f: Forecast,
        groups: Mapping[str, object] | None = None,
        features: Mapping[str, SupportsFloat] | None = None,
        weight: float = 1.0,
        id: Id | None = None,
        time: Moment | None = None,
    ) -> Served:
        """The adjusted prediction, or all levels in increasing order; a ticket stays open until its label comes."""
        lock = self.lock
        try:
            lock.acquire()
            row, place, f, w = self._row_arguments(f, groups, features, weight)
            served: Served = self._open(row, place, f, w, id, time)
            set_attribute(self, "_last", row)
            return served
        finally:
            lock.release()

    @locked
    def run(
        self,
        predictions: Column,
        labels: ColumnLike | None = None,
        groups: ColumnsByName | None = None,
        features: ColumnsByName | None = None,
        times: ColumnLike | None = None,
        label_times: ColumnLike | None = None,
        weights: ColumnLike | None = None,
        ids: ColumnLike | None = None,
    ) -> Run[Column | OrArray]:
        """Serve and learn from whole columns, bit-for-bit identical to one event at a time.

        ``predictions``: one column; with several levels one for all, or one for each (a list of columns, an (n, K)
        array, a dataframe). Labels are known before the next row, or at ``label_times`` (which need ``times``). A row
        without a label is served only; with ``ids`` its ticket stays open for ``update(y, id)``. If this raises,
        nothing has changed.
        """
        inputs = InputColumns(predictions, labels, groups, features, times, label_times, weights, ids)
        return run_layer(self, inputs)

    @locked
    def predict_many(
        self,
        predictions: Column,
        groups: ColumnsByName | None = None,
        features: ColumnsByName | None = None,
        weights: ColumnLike | None = None,
        ids: ColumnLike | None = None,
        times: ColumnLike | None = None,
    ) -> Column | OrArray:
        """The adjusted predictions of whole columns, as from ``predict``; every ticket stays open.

        The result has the type of the predictions. A frame with a column ``prediction`` (and its groups and features,
        ``id``, ``weight``, ``time``) comes back with ``adjusted``. If this raises, nothing has changed.
        """
        inputs = InputColumns(predictions, None, groups, features, times, weights=weights, ids=ids)
        return serve_many(self, inputs)

    @locked
    def set_step(self, eta: float) -> None:
        """Use another constant step from now on; the certificate then rests on the stored sums."""
        if self._keyed:
            raise BadInput("this layer is the pattern of a Keyed; call set_step of the Keyed")
        self._set_step(eta)

    def _set_step(self, eta: float) -> Constant:
        if self.eta == "auto":
            raise BadInput("eta='auto' chooses its own steps; make a new layer with a fixed eta")
        _, step = self._chosen_step(scalars.step(eta), None, self.internals.names, eta)
        assert isinstance(step, Constant)
        self._take_step(step)
        return step


COLUMN = "prediction"


class Bins:
    """Half-open bins [edge, next edge); below the first and from the last edge on are bins too.

    >>> Bins([0.2, 0.8]).name(0.5)
    '[0.2, 0.8)'
    """

    def __init__(self, edges: Sequence[float]) -> None:
        edges = scalars.several(edges, "bins", "numbers")
        self.edges = [scalars.as_number(edge, "edge of bins:") for edge in edges]
        if not self.edges or any(b <= a for a, b in pairwise(self.edges)):
            raise BadInput(f"bins={list(edges)}: give edges in increasing order, at least one")
        texts = [f"{edge:g}" for edge in self.edges]
        between = [f"[{a}, {b})" for a, b in pairwise(texts)]
        self.names = [f"below {texts[0]}", *between, f"from {texts[-1]}"]

    def name(self, f: float) -> str:
        """The bin of one prediction."""
        return self.names[bisect_right(self.edges, f)]

    def added(self, groups: Mapping[str, object] | None, f: float) -> dict[str, object]:
        """The groups of one event, its bin included."""
        if is_given(groups) and not is_mapping(groups):
            raise BadInput(f"groups={as_shown(groups)}: give a mapping from columns to values")
        return {**(groups or {}), COLUMN: self.name(f)}

    def added_columns(
        self, groups: ColumnsByName | None, names: Sequence[str], base: FloatArray
    ) -> dict[str, object]:
        """The group columns of a run, the bins included."""
        places = np.searchsorted(self.edges, base, side="right")
        others = {name: groups[name] for name in names if name != COLUMN} if groups is not None else {}
        return {**others, COLUMN: np.array(self.names, dtype=object)[places]}
