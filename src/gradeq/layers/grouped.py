"""What a Debiaser and the quantile trackers share: one step, chosen once, and rows with groups and features."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from gradeq.certificate import coordinate_names, harm_of
from gradeq.certificate_reading import reading_of
from gradeq.engine import checks
from gradeq.engine.names import ALONE, Roster
from gradeq.errors import BadInput
from gradeq.layers.bins import Bins
from gradeq.layers.columns import Moment, moment
from gradeq.layers.combinations import check, fits
from gradeq.layers.guard import holds_lock
from gradeq.layers.layer import Asked, Id, set_attribute
from gradeq.layers.predicting import Predicting
from gradeq.layers.run import Run, run_layer
from gradeq.ledger.values import Row, Ticket
from gradeq.penalties import Penalty
from gradeq.schedules import Constant, Schedule

if TYPE_CHECKING:
    from gradeq.theory import HarmCap

Served = TypeVar("Served")


class Stepped(Predicting):
    """A layer whose step is a number, a schedule, "auto" (``schedule`` None) or "plain", the task's own constant.

    Left out it is auto where that applies, else plain; ``_left_out`` says that auto was not asked for by name.
    """

    link_name: str
    penalty: Penalty | None
    eta: Any
    schedule: Schedule | None
    _auto_harm: str  # what can be said of the harm that "auto" may do
    _left_out = False

    def _chosen_step(
        self, eta: Any, schedule: Schedule | None, names: Roster
    ) -> tuple[Any, Schedule | None]:
        named = eta if isinstance(eta, str) else None
        checks.part(schedule, "schedule", "step", "gradeq.Power(0.5, 0.5)")
        checks.part(self.penalty, "penalty", "slope", "gradeq.Ridge(0.01)")
        options = {
            "auto": named == "auto",
            "eta": eta is not None and named != "auto",
            "schedule": schedule is not None,
            "features": bool(names.features),
            "penalty": self.penalty is not None,
            "warm": bool(getattr(self, "warm", False)),
            "support": self.support is not None,
            f"link_{self.link_name}": True,
        }
        instead = {"auto": True, "eta": False, "schedule": False}
        self._takes_auto = fits(self.kind, **options | instead)
        if eta is None and schedule is None:
            self._left_out = options["auto"] = self._takes_auto
        own = schedule is None and not options["auto"] and (eta is None or named == "plain")
        check(self.kind, **options, no_step=own)
        if options["auto"]:
            return "auto", None
        if schedule is None:
            eta = checks.step(self._default_eta(names) if own else eta)
            schedule = Constant(eta)
        self._check_step(schedule, names)
        return eta, schedule

    @abstractmethod
    def _default_eta(self, names: Roster) -> float:
        """The task's own step."""

    def _check_step(self, schedule: Schedule, names: Roster) -> None:
        """Refuse a step that is too large for some sequence."""

    def harm_cap(self) -> HarmCap:
        """Most that the step can cost in loss, whatever the data; its sentence says when nothing is proven."""
        return harm_of(self, self._auto_harm)

    @property
    def theta(self) -> dict[str, float]:
        """The parameters by name (and level, where there are several); with ``auto`` those of the final layer."""
        return dict(zip(coordinate_names(reading_of(self)), self._state.u, strict=True))

    @property
    def _structure(self) -> str:
        names = self._names
        return "scalar" if names.scalar else "disjoint" if names.disjoint else "features"

    @property
    def _held(self) -> dict[str, Any]:
        return super()._held | {
            "link": self.link_name,
            "groups": list(self._names.groups),
            "features": list(self._names.features),
            "schedule": None if self.eta is not None else self.schedule,
        }


class Grouped(Stepped, Generic[Served]):
    """A layer whose rows have groups and features; the classes that users make say what is served."""

    bins: Bins | None = None
    _last: Row  # of the last event

    def open(
        self,
        f: Any,
        groups: Mapping[str, Any] | None = None,
        features: Mapping[str, Any] | None = None,
        weight: float = 1.0,
    ) -> Ticket:
        """Serve a prediction and leave its ticket with the caller; ``ticket.served`` is a number, or one a level."""
        row, place, f, w = self._asked(f, groups, features, weight)
        set_attribute(self, "_last", row)
        return self._ticket(row, place, f, w)

    def peek(
        self,
        f: Any,
        groups: Mapping[str, Any] | None = None,
        features: Mapping[str, Any] | None = None,
    ) -> Served:
        """What ``predict`` would serve now; nothing is counted or kept."""
        row, place, f, _ = self._asked(f, groups, features, 1.0)
        served: Served = self._peek(row, place, f)
        return served

    def _asked(self, f: Any, groups: Any, features: Any, weight: Any) -> Asked:
        """What a call asks for, checked: where the row belongs, the prediction and the weight."""
        low, high = self._bases
        if type(f) is not float or not low <= f <= high:
            f = self._prediction(f)
        w = 1.0 if type(weight) is float and weight == 1.0 else checks.weight(weight)
        if self.bins is not None:
            groups = self.bins.added(groups, f)
        if groups is None and features is None and self._names.scalar:
            return (*ALONE, f, w)
        return (*self._names.row(groups, features), f, w)

    @holds_lock
    def predict(
        self,
        f: Any,
        groups: Mapping[str, Any] | None = None,
        features: Mapping[str, Any] | None = None,
        weight: float = 1.0,
        id: Id | None = None,
        time: Moment | None = None,
    ) -> Served:
        """The adjusted prediction, or all levels in increasing order; a ticket stays open until its label comes."""
        lock = self._lock
        try:
            lock.acquire()
            if id is not None:
                id = self._book.check_new(id)
            if time is not None:
                time = moment(time, self._book)
            row, place, f, w = self._asked(f, groups, features, weight)
            set_attribute(self, "_last", row)
            served: Served = self._open(row, place, f, w, id, time)
            return served
        finally:
            lock.release()

    def run(
        self,
        predictions: Any,
        labels: Any = None,
        groups: Any = None,
        features: Any = None,
        times: Any = None,
        label_times: Any = None,
        weights: Any = None,
        ids: Any = None,
    ) -> Run:
        """Serve and learn from whole columns, bit-for-bit identical to one event at a time.

        ``predictions``: one column; with several levels one for all, or one for each (a list of columns, an (n, K)
        array, a dataframe). Labels are known before the next row, or at ``label_times`` (then ``times`` is needed as
        well); a missing label is served but not learned from. With ``ids`` such a row keeps its ticket, and
        ``update(y, id)`` brings its label later. Nothing has changed if this raises.
        """
        given = (groups, features, times, label_times, weights)
        return run_layer(self, predictions, labels, *given, ids=ids)

    def predict_many(
        self,
        predictions: Any,
        groups: Any = None,
        features: Any = None,
        weights: Any = None,
        ids: Any = None,
        times: Any = None,
    ) -> Any:
        """The adjusted predictions of whole columns, as ``predict`` gives them one by one; every ticket stays open.

        Columns in, the same kind out; a frame with a column ``prediction`` (its groups and features under their
        names, ``id``, ``weight``, ``time`` if there are any) comes back with ``adjusted``. Refused means unchanged.
        """
        from gradeq.layers.many import serve_many

        return serve_many(
            self,
            predictions,
            groups=groups,
            features=features,
            weights=weights,
            ids=ids,
            times=times,
        )

    def set_step(self, eta: float) -> None:
        """Use another constant step from now on; the certificate goes on with the exact sums."""
        if self._keyed:
            raise BadInput("this layer is the pattern of a Keyed; call set_step of the Keyed")
        self._set_step(eta)

    def _set_step(self, eta: float) -> None:
        if self.eta == "auto":
            raise BadInput("eta='auto' chooses its own steps; make a new layer with a fixed eta")
        eta, step = self._chosen_step(checks.step(eta), None, self._names)
        assert isinstance(step, Constant)
        self._take_step(step)
