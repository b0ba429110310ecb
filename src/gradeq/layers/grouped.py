"""What a Debiaser and the quantile trackers share: one step, rows with groups, features and bins."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Generic, Literal, SupportsFloat

import numpy as np

from gradeq.certificates.certificate import coordinate_names, harm_cap_of
from gradeq.certificates.reading import reading_of
from gradeq.engine import scalars
from gradeq.engine.names import ALONE, Roster, is_given, is_mapping
from gradeq.errors import BadInput
from gradeq.inputs.arguments import as_shown
from gradeq.inputs.column_types import Column, ColumnLike, ColumnsByName, FloatArray, Forecast, OrArray
from gradeq.layers.columns import Moment
from gradeq.layers.layer import Id, RowArguments
from gradeq.layers.locking import locked, set_attribute
from gradeq.layers.options import refusal
from gradeq.layers.predicting import Predicting, Served
from gradeq.layers.run import InputColumns, Run, run_layer, serve_many
from gradeq.ledger.values import Row, Ticket
from gradeq.penalties import Penalty
from gradeq.schedules import Constant, Schedule

if TYPE_CHECKING:
    from gradeq.theory import HarmCap


class Stepped(Predicting[Served]):
    """A layer whose step is a number, a schedule, "auto" (``schedule`` None) or "plain", the task's own constant.

    Left out it is auto where that applies, else plain; ``_left_out`` says that auto was not asked for by name.
    """

    link_name: str
    penalty: Penalty | None
    eta: float | Literal["auto"] | None
    schedule: Schedule | None
    _auto_harm: str  # what can be said of the harm that "auto" may do
    _left_out = False
    _structure: str  # of its parameters, as ``theory`` names it

    def _chosen_step(
        self, eta: float | str | None, schedule: Schedule | None, names: Roster, plain: float
    ) -> tuple[float | Literal["auto"] | None, Schedule | None]:
        self._structure = "scalar" if names.scalar else "disjoint" if names.disjoint else "features"
        named = eta if isinstance(eta, str) else None
        scalars.schedule(schedule)
        scalars.penalty(self.penalty)
        options = {
            "auto": named == "auto",
            "eta": eta is not None and named != "auto",
            "schedule": schedule is not None,
            "features": bool(names.features),
            "penalty": self.penalty is not None,
            "warm": bool(getattr(self, "warm", False)),
            "support": self.support is not None,
            f"link {self.link_name}": True,
        }
        others = {name for name, there in options.items() if there} - {"eta", "schedule"}
        self._takes_auto = refusal(self.kind, others | {"auto"}) is None
        if eta is None and schedule is None:
            self._left_out = options["auto"] = self._takes_auto
        own = schedule is None and not options["auto"] and (eta is None or named == "plain")
        reason = refusal(self.kind, {name for name, there in (options | {"no step": own}).items() if there})
        if reason is not None:
            raise BadInput(reason)
        if options["auto"]:
            return "auto", None
        if schedule is None:
            schedule = Constant(scalars.step(plain if own else eta))
            self._check_step(schedule, names)
            return schedule.eta, schedule
        self._check_step(schedule, names)
        return None, schedule

    def _check_step(self, schedule: Schedule, names: Roster) -> None:
        """Refuse a step that is too large for some sequence."""

    @locked
    def harm_cap(self) -> HarmCap:
        """Most that the step can cost in loss, whatever the data; its sentence says when nothing is proven."""
        return harm_cap_of(self, self._auto_harm)

    @property
    @locked
    def theta(self) -> dict[str, float]:
        """The parameters by name (and level, where there are several); with ``auto`` those of the final layer."""
        return dict(zip(coordinate_names(reading_of(self)), self.internals.state.u, strict=True))


class Grouped(Stepped[Served], Generic[Served, OrArray]):
    """A layer whose rows have groups and features; the classes that users make say what is served."""

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
        """Serve a prediction and leave its ticket with the caller; ``ticket.served`` is a number, or one a level."""
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
        """What ``predict`` would serve now, or at a ``time`` with ``maturity``; nothing is counted or kept."""
        row, place, f, _ = self._row_arguments(f, groups, features, 1.0)
        served: Served = self._peek(row, place, f, time)
        return served

    def _row_arguments(
        self, f: Any, groups: Mapping[str, object] | None, features: Mapping[str, SupportsFloat] | None, weight: float
    ) -> RowArguments:
        """What a call asks for, checked: where the row belongs, the prediction and the weight."""
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
        array, a dataframe). Labels are known before the next row, or at ``label_times`` (then ``times`` is needed as
        well); a missing label is served but not learned from. With ``ids`` such a row keeps its ticket, and
        ``update(y, id)`` brings its label later. Nothing has changed if this raises.
        """
        given = InputColumns(predictions, labels, groups, features, times, label_times, weights, ids)
        return run_layer(self, given)

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
        """The adjusted predictions of whole columns, as ``predict`` gives them one by one; every ticket stays open.

        Columns in, the same kind out; a frame with a column ``prediction`` (its groups and features under their
        names, ``id``, ``weight``, ``time`` if there are any) comes back with ``adjusted``. Refused means unchanged.
        """
        given = InputColumns(predictions, None, groups, features, times, weights=weights, ids=ids)
        return serve_many(self, given)

    @locked
    def set_step(self, eta: float) -> None:
        """Use another constant step from now on; the certificate goes on with the exact sums."""
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
        shown = [f"{edge:g}" for edge in self.edges]
        between = [f"[{a}, {b})" for a, b in pairwise(shown)]
        self.names = [f"below {shown[0]}", *between, f"from {shown[-1]}"]

    def name(self, f: float) -> str:
        """The bin of one prediction."""
        return self.names[bisect_right(self.edges, f)]

    def added(self, groups: Mapping[str, object] | None, f: float) -> dict[str, object]:
        """The groups of one event, its bin included."""
        if is_given(groups) and not is_mapping(groups):
            raise BadInput(f"groups={as_shown(groups)}: give a mapping from columns to values")
        return {**(groups or {}), COLUMN: self.name(f)}

    def added_columns(
        self, groups: ColumnsByName | None, wanted: Sequence[str], base: FloatArray
    ) -> dict[str, object]:
        """The group columns of a run, the bins included."""
        places = np.searchsorted(self.edges, base, side="right")
        own = {name: groups[name] for name in wanted if name != COLUMN} if groups is not None else {}
        return {**own, COLUMN: np.array(self.names, dtype=object)[places]}
