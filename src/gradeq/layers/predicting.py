"""What layers on top of a prediction share: arguments, limits of the label (`support`), one pass over columns."""

from __future__ import annotations

import math
from functools import cache
from inspect import signature
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, cast

import numpy as np

from gradeq.engine import scalars
from gradeq.engine.names import ALONE
from gradeq.engine.validation import check_kind
from gradeq.errors import BadInput
from gradeq.inputs.arguments import as_shown
from gradeq.inputs.column_types import Column, ColumnLike, OrArray
from gradeq.layers import columns, serialization
from gradeq.layers.columns import Moment
from gradeq.layers.layer import ANY, Id, Layer
from gradeq.layers.locking import locked
from gradeq.layers.options import Support, check_label, limits_of, outside
from gradeq.layers.run import InputColumns, Run, run_layer, serve_many
from gradeq.layers.serialization import Saved, restore_layer
from gradeq.ledger.values import Ticket

if TYPE_CHECKING:
    from gradeq.layers.conformal import PredictionSet
    from gradeq.ledger.batch import Floats

Served = TypeVar("Served", bound="float | tuple[float, ...] | PredictionSet", covariant=True)


OPTIONAL = ("maturity", "missing_is")  # settings that states without them do not name


class Predicting(Layer, Generic[Served]):
    """A layer on top of a prediction; predictions and labels are numbers, unless it says otherwise.

    ``_bases``: floats from the first to the second are good predictions; all others are for ``_prediction`` to judge.
    ``support``: the limits of labels and of what is shown, if it has any.
    """

    _bases = ANY
    _labels = ANY
    support: Support | None = None
    _unit: str = ""  # why labels outside [0, 1] are refused, where they are

    def validate_prediction(self, f: object) -> Any:
        return scalars.as_number(f, "prediction")

    def validate_label(self, y: object) -> Any:
        return check_label(scalars.as_number(y, "label"), self.support)

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
        """Take a pair of limits, None (or infinity) for none on that side: labels outside are refused from now on."""
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
        """The value to use of a ticket that you keep: inside the support, and the raw prediction in shadow mode."""
        check_kind(ticket, Ticket)
        served: Served = self.displayed(ticket.base, ticket.served)
        return served

    shown = value_of  # its old name

    @property
    @locked
    def settings(self) -> Saved:
        """The arguments that make this layer anew."""
        others = self._other_settings
        return {
            name: others[name] if name in others else getattr(self, name)
            for name in arguments(type(self))
            if name not in OPTIONAL or others.get(name) is not None
        }

    @property
    def _other_settings(self) -> Saved:
        book, names, bins = self.internals.tickets, self.internals.names, getattr(self, "bins", None)
        return {
            "in_flight": self.internals.lateness.in_flight,
            "ttl": book.ttl,
            "maturity": book.maturity,
            "missing_is": book.missing_is,
            "queue": book.queue,
            "link": getattr(self, "link_name", None),
            "groups": list(names.groups if bins is None else names.groups[:-1]),  # the last column are the bins
            "features": list(names.features),
            "schedule": None if getattr(self, "eta", None) is not None else getattr(self, "schedule", None),
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
    """A layer of one parameter: no groups, no features."""

    @locked
    def open(self, f: object, weight: float = 1.0) -> Ticket:
        """Serve a prediction and leave its ticket with the caller; ``ticket.served`` is what was served."""
        return self._ticket(*ALONE, self.validate_prediction(f), scalars.weight(weight))

    @locked
    def predict(self, f: object, weight: float = 1.0, id: Id | None = None, time: Moment | None = None) -> Served:
        """What is served of this prediction; a ticket stays open until its label comes."""
        served: Served = self._open(*ALONE, self.validate_prediction(f), scalars.weight(weight), id, time)
        return served

    @locked
    def peek(self, f: object, time: Moment | None = None) -> Served:
        """What ``predict`` would serve now, or at a ``time`` with ``maturity``; nothing is counted or kept."""
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

        With ``ids`` a row without a label keeps its ticket, and ``update(y, id)`` brings its label later.
        """
        given = InputColumns(predictions, labels, times=times, label_times=label_times, weights=weights, ids=ids)
        return run_layer(self, given)

    @locked
    def predict_many(
        self,
        predictions: Column,
        weights: ColumnLike | None = None,
        ids: ColumnLike | None = None,
        times: ColumnLike | None = None,
    ) -> Column | OrArray:
        """What is served for whole columns, as ``predict`` gives it one by one; every ticket stays open.

        A frame with a column ``prediction`` (and ``id``, ``weight``, ``time``) comes back with what was served.
        """
        return serve_many(self, InputColumns(predictions, times=times, weights=weights, ids=ids))


@cache
def arguments(cls: type[Layer]) -> tuple[str, ...]:
    return tuple(signature(cls).parameters)
