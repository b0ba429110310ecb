"""What all quantile trackers share: levels, step, link, rows, columns, saving."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from gradeq.engine.desk import Desk
from gradeq.engine.levels import Levels, PinballJudge
from gradeq.engine.margin import Margin
from gradeq.engine.mix import Mix
from gradeq.errors import BadInput
from gradeq.layers import door
from gradeq.layers.layer import Layer, late_limit
from gradeq.layers.roster import Roster
from gradeq.links import Identity
from gradeq.losses import Quantile
from gradeq.penalties import Penalty
from gradeq.schedules import Constant, Schedule

if TYPE_CHECKING:
    from gradeq.engine.batch import Floats
    from gradeq.equilibrium import Equilibrium
    from gradeq.layers.coverage import Coverage
    from gradeq.layers.run import Run
    from gradeq.layers.sweep import Frontier
    from gradeq.theory import HarmCap

DEFAULT_ETA = 0.1  # with the sinh link, also with groups (result B6)
AUTO_RATES = (0.01, 0.03, 0.1, 0.3)
AUTO_FINAL = 0.03
CAP = 0.3
AUTO_CAP_EXPERTS = 1.0
LINKS = ("sinh", "linear")


class Tracker(Layer):
    """A layer of one or more quantile levels; the classes that users make say what goes in and out."""

    def __init__(
        self,
        levels: Sequence[float],
        eta: float | str | None,
        *,
        link: str,
        groups: Sequence[str],
        features: Sequence[str],
        schedule: Schedule | None,
        penalty: Penalty | None,
        late_cap: str | float | None,
        in_flight: int,
        ttl: float | None,
        warm: bool,
        shadow: bool,
    ) -> None:
        if link not in LINKS:
            raise BadInput(f"link={link!r}: must be sinh (steps without a unit) or linear")
        self.levels = checked_levels(levels)
        self.link_name, self.penalty, self.late_cap = link, penalty, late_cap
        self.warm, self.shadow = warm, shadow
        self.roster = Roster(groups, features)
        if warm and (link != "sinh" or features):
            raise BadInput("warm=True needs link='sinh' and no features")
        self.eta, self.schedule = self._chosen_step(eta, schedule)
        limit = late_limit(late_cap, CAP)
        step = self.schedule
        head = self._mix() if step is None else self._head(step, limit or 0.0, penalty, self.start)
        self.desk = Desk(head, capped=limit is not None, in_flight=in_flight, ttl=ttl)
        self.grow()

    def _served(
        self,
        f: Any,
        groups: Mapping[str, Any] | None,
        features: Mapping[str, Any] | None,
        weight: float,
        id: str | int | None,
        time: float | None,
    ) -> Any:
        f = self.prediction(f)
        row = self.roster.row(groups, features)
        w = 1.0 if weight == 1.0 else door.weight(weight)
        if not self.roster.scalar:
            self.grow()
        return self.shown(f, self.desk.open(row, f, w, id, time))

    def run(
        self,
        predictions: Any,
        labels: Any = None,
        groups: Any = None,
        features: Any = None,
        times: Any = None,
        label_times: Any = None,
        weights: Any = None,
    ) -> Run:
        """Serve and learn from whole columns, with the same bits as one event at a time.

        ``predictions``: one column for all levels, or one for each (a list of columns, an (n, K) array, a
        dataframe). Labels at once unless ``label_times`` says when each came (then ``times`` is needed as well); a
        missing label is served but not learned from. Nothing has changed if this raises.
        """
        from gradeq.layers.run import run_layer

        return run_layer(self, predictions, labels, groups, features, times, label_times, weights)

    def equilibrium(self) -> Equilibrium:
        """Exact average miss of every level and group, the certificate from the state, the proven bound."""
        from gradeq.layers.coverage import certify_levels

        return certify_levels(self)

    def labels_until(self, bound: float) -> int | None:
        """How many more labels until the proven bound falls below this, if things go on as they were."""
        from gradeq.layers.coverage import setting_of
        from gradeq.layers.promises import more_labels

        return more_labels(setting_of(self), bound)

    def sweep(
        self,
        etas: Sequence[float],
        predictions: Any,
        labels: Any,
        groups: Any = None,
        features: Any = None,
        times: Any = None,
        label_times: Any = None,
        weights: Any = None,
    ) -> Frontier:
        """Coverage error and loss of many steps on the same rows, each from a fresh start (in hindsight)."""
        from gradeq.layers.sweep import sweep_runs

        return sweep_runs(
            self, etas, predictions, labels, groups, features, times, label_times, weights
        )

    def harm_cap(self) -> HarmCap:
        """Most that the step can cost in pinball loss, whatever comes; its sentence says when nothing is proven."""
        from gradeq.layers.coverage import setting_of
        from gradeq.layers.promises import harm_of

        auto = "auto follows the best of its steps by their pinball loss"
        sinh = self.link_name == "sinh"
        return harm_of(self.desk, self.schedule, setting_of(self), auto, sinh=sinh)

    @property
    @abstractmethod
    def coverage(self) -> Any:
        """How often labels were covered, before and after, beside the target and its bound."""

    def _coverages(self) -> list[Coverage]:
        from gradeq.layers.coverage import coverages

        return coverages(self)

    def prediction(self, f: Any) -> Any:
        """The base forecast, checked: one number for one level, else one for each level, sorted."""
        count = len(self.levels)
        if count == 1:
            return door.number(f, "prediction")
        if not hasattr(f, "__len__") or isinstance(f, (str, bytes)) or getattr(f, "ndim", 1) == 0:
            return [door.number(f, "prediction")] * count
        if len(f) not in (1, count):
            raise BadInput(
                f"{len(f)} forecasts for {count} levels; give one, or one for each level"
            )
        listed = sorted(door.number(x, "prediction") for x in f)
        return listed * count if len(listed) == 1 else listed

    def label(self, y: Any) -> float:
        """The label, checked."""
        return door.number(y, "label")

    def base_column(self, predictions: Any) -> Floats:
        """Whole columns of forecasts, checked and sorted within each row."""
        from gradeq.layers.several import forecasts

        return forecasts(predictions, len(self.levels))

    def label_column(self, labels: Any, n: int) -> Floats:
        """A column of labels, checked; nan where there is none."""
        from gradeq.layers import columns

        return columns.labels(labels, n)

    def check_rows(self, size: float, weight: float) -> None:
        """Any size of rows fits: errors are bounded, so no step diverges."""

    def shown(self, f: Any, served: Any) -> Any:
        """What the user sees: the served values, or the (sorted) forecasts in shadow mode."""
        out = f if self.shadow else served
        return tuple(out) if isinstance(out, list) else out

    def set_step(self, eta: float) -> None:
        """Use another constant step from now on; the certificate goes on with the exact sums."""
        from gradeq.layers.promises import fixed_head, take_step

        head = fixed_head(self.desk)
        self.eta, self.schedule = self._chosen_step(eta, None)
        if self.schedule is not None:
            take_step(self.desk, head, self.schedule)

    @property
    def start(self) -> list[float]:
        """u_1 of each level: 0, or "as if exponential" for scores without a base forecast (result B3)."""
        share = max(1, len(self.roster.groups))
        return [warm_start(tau) / share if self.warm else 0.0 for tau in self.levels]

    @property
    def theta(self) -> dict[str, float]:
        """The parameters by name (and level, where there are several); with ``auto`` those of the final layer."""
        return dict(zip(self.names, self.certified.u, strict=True))

    @property
    def names(self) -> list[str]:
        """The name of each coordinate: its parameter, and its level where there are several."""
        if len(self.levels) == 1:
            return list(self.roster.names)
        return [f"{name} @ {tau:g}" for name in self.roster.names for tau in self.levels]

    @property
    def certified(self) -> Any:
        """The head that carries the certificate."""
        head = self.desk.head
        return head.final if isinstance(head, Mix) else head

    @property
    def common_settings(self) -> dict[str, Any]:
        """The settings that all trackers have."""
        return {
            "eta": self.eta,
            "link": self.link_name,
            "groups": list(self.roster.groups),
            "features": list(self.roster.features),
            "schedule": None if self.eta is not None else self.schedule,
            "penalty": self.penalty,
            "late_cap": self.late_cap,
            "in_flight": self.desk.in_flight,
            "ttl": self.desk.ttl,
            "shadow": self.shadow,
        }

    def state(self) -> dict[str, Any]:
        """All that has changed since the layer was made."""
        return {"names": list(self.roster.names), **self.desk.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Take up a saved state."""
        self.roster.names = {name: j for j, name in enumerate(state["names"])}
        self.desk.restore(state)
        self.grow()

    def grow(self) -> None:
        """Room for all groups seen so far."""
        self.desk.head.grow(len(self.roster.names))
        self.desk.grow(self.roster.clock_count(), self.roster.cell_count())

    def _chosen_step(
        self, eta: float | str | None, schedule: Schedule | None
    ) -> tuple[float | str | None, Schedule | None]:
        if schedule is not None:
            if eta is not None:
                raise BadInput("give eta or a schedule, not both")
            return None, schedule
        if eta == "auto":
            if self.penalty is not None or self.link_name != "sinh":
                raise BadInput("eta='auto' needs link='sinh' and no penalty; give a number for eta")
            return "auto", None
        if eta is None:
            if self.roster.features:
                raise BadInput(
                    "eta is required with features (their size is not known in advance), or 'auto'"
                )
            if self.link_name != "sinh":
                raise BadInput("eta is required with link='linear': it has the unit of the labels")
            eta = DEFAULT_ETA
        step = door.number(eta, "eta")
        return step, Constant(step)

    def _head(
        self, schedule: Schedule, limit: float, penalty: Penalty | None, start: list[float]
    ) -> Margin | Levels:
        totals = not self.roster.scalar
        if self.link_name == "linear" and len(self.levels) == 1:
            return Margin(Identity(), Quantile(self.levels[0]), schedule, limit, penalty, totals)
        curved = self.link_name == "sinh"
        return Levels(
            self.levels, schedule, limit, curved=curved, start=start, penalty=penalty, totals=totals
        )

    def _mix(self) -> Mix:
        experts = [
            self._head(Constant(rate), AUTO_CAP_EXPERTS, None, self.start) for rate in AUTO_RATES
        ]
        final = self._head(Constant(AUTO_FINAL), CAP, None, [0.0] * len(self.levels))
        # Without a base quantile the raw forecast is no expert.
        return Mix(experts, final, PinballJudge(self.levels), adaptive=True, raw=not self.warm)


def warm_start(tau: float) -> float:
    """asinh(-ln(1 - tau)): the quantile of a score as if it were exponential, in units of its mean (result B3).

    >>> round(warm_start(0.9), 4)
    1.5713
    """
    return math.asinh(-math.log1p(-tau))


def checked_levels(levels: Sequence[float]) -> list[float]:
    """Levels strictly between 0 and 1, in increasing order."""
    taus = [door.number(tau, "level") for tau in levels]
    if not taus:
        raise BadInput("levels is empty; give at least one level between 0 and 1")
    for tau in taus:
        if not 0.0 < tau < 1.0:
            raise BadInput(f"level {tau:g} must lie strictly between 0 and 1")
    if any(b <= a for a, b in pairwise(taus)):
        raise BadInput(
            f"levels {taus} must increase; sort them and their forecasts, no level twice"
        )
    return taus
