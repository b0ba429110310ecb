"""Quantile ensembling: trackers with several steps, weighted by what they cost, and coverage restored at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gradeq.engine.desk import Desk
from gradeq.engine.ensemble import Ensemble
from gradeq.engine.levels import Levels
from gradeq.engine.margin import Margin
from gradeq.errors import BadInput
from gradeq.kernels.loops import BEFORE, GRADIENT, LOSS_AFTER, LOSS_BEFORE, ROWS, WEIGHT
from gradeq.layers import door
from gradeq.layers.layer import Layer, late_limit
from gradeq.layers.roster import SCALAR, Roster
from gradeq.layers.tracker import CAP, LINKS, checked_levels
from gradeq.links import Identity
from gradeq.losses import Quantile
from gradeq.penalties import Penalty
from gradeq.schedules import Constant

if TYPE_CHECKING:
    from gradeq.engine.batch import Floats
    from gradeq.equilibrium import Equilibrium
    from gradeq.layers.coverage import Coverage
    from gradeq.layers.run import Run


class QuantileEnsemble(Layer):
    """Mixes quantile trackers of several steps by exponentiated gradient; a final tracker keeps the coverage exact.

    >>> ensemble = QuantileEnsemble(0.9, etas=[0.1, 1.0], ensemble_eta=0.5)
    >>> for y in [1.0, 2.0, 1.5, 3.0]:
    ...     quantile = ensemble.predict(1.0)
    ...     outcome = ensemble.update(y)
    >>> {eta: round(weight, 2) for eta, weight in ensemble.weights.items()}
    {'0.1': 0.37, '1': 0.63}

    ``etas`` are the trackers' steps (in the unit of the labels, link linear), ``ensemble_eta`` that of the weights.
    ``final_eta`` is the step of the final tracker on the ensemble's quantile (``link`` sinh by default, so without a
    unit); None leaves it out. ``floor``: no weight falls below it (results 7.2, 7.3).

    Guaranteed for any sequence with the final tracker: |coverage - level| = |u| / (final_eta T), bounded as for
    ``QuantileTracker`` with the residuals of the ensemble (result 7.5). WITHOUT it coverage is not guaranteed:
    weights in equilibrium on the simplex say nothing about it, and a bounded adversary holds it at 0.8 for 0.9.
    Paper: alg:quantile-ensembling, corrected: every tracker moves by its own miss, the weights by the ensemble's.
    """

    kind = "ensemble"

    def __init__(
        self,
        level: float,
        etas: Sequence[float],
        ensemble_eta: float,
        final_eta: float | None = 0.03,
        *,
        floor: float = 0.0,
        link: str = "sinh",
        late_cap: str | float | None = "auto",
        in_flight: int = 1,
        ttl: float | None = None,
        shadow: bool = False,
    ) -> None:
        self.levels = checked_levels([level])
        self.etas = [Constant(door.number(eta, "eta")).eta for eta in etas]
        if not self.etas or len(set(self.etas)) < len(self.etas):
            raise BadInput(f"etas={self.etas}: give one or more different steps")
        if link not in LINKS:
            raise BadInput(f"link={link!r}: must be sinh or linear")
        self.ensemble_eta = Constant(door.number(ensemble_eta, "ensemble_eta")).eta
        self.final_eta, self.floor, self.link_name = final_eta, float(floor), link
        self.late_cap, self.shadow = late_cap, shadow
        self.roster = Roster((), ())
        self.penalty: Penalty | None = None
        limit = late_limit(late_cap, CAP)
        c = limit or 0.0
        final = None if final_eta is None else self._final(Constant(float(final_eta)), c)
        head = Ensemble(self.levels[0], self.etas, self.ensemble_eta, c, self.floor, final)
        self.desk = Desk(head, capped=limit is not None, in_flight=in_flight, ttl=ttl)
        self.grow()

    def predict(
        self,
        f: Any,
        weight: float = 1.0,
        id: str | int | None = None,
        time: float | None = None,
    ) -> float:
        """The adjusted quantile; a ticket stays open until its label comes."""
        f = self.prediction(f)
        w = 1.0 if weight == 1.0 else door.weight(weight)
        served: float = self.shown(f, self.desk.open(SCALAR, f, w, id, time))
        return served

    def run(
        self,
        predictions: Any,
        labels: Any = None,
        times: Any = None,
        label_times: Any = None,
        weights: Any = None,
    ) -> Run:
        """Serve and learn from whole columns, with the same bits as events; ``run.weights`` has the weights' path."""
        from gradeq.layers.run import run_layer

        return run_layer(self, predictions, labels, None, None, times, label_times, weights)

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each tracker, by its step."""
        ws = self._head.ws
        return {f"{eta:g}": ws[k] for k, eta in enumerate(self.etas)}

    @property
    def trackers(self) -> dict[str, float]:
        """Where each tracker is, by its step."""
        return {f"{eta:g}": self._head.thetas[k] for k, eta in enumerate(self.etas)}

    @property
    def theta(self) -> dict[str, float]:
        """The parameter of the final tracker; without one, those of the trackers."""
        final = self._head.final
        return self.trackers if final is None else {"(all)": final.u[0]}

    @property
    def coverage(self) -> Coverage:
        """How often y <= served, before and after, beside the level and the bound (None without a final tracker)."""
        from gradeq.layers.coverage import Coverage, coverages, share

        if self._head.final is not None:
            return coverages(self)[0]
        own = self._head.sums
        weight = own[WEIGHT] or float("nan")
        before, after = own[BEFORE] / weight, own[GRADIENT] / weight
        level = self.levels[0]
        return Coverage(level, share(level, before), share(level, after), None, True)

    def equilibrium(self) -> Equilibrium:
        """The final tracker's certificate; without one the exact averages alone, and no bound."""
        from gradeq.equilibrium import Coordinate, Equilibrium, over
        from gradeq.layers.coverage import certify_levels

        if self._head.final is not None:
            return certify_levels(self)
        own = self._head.sums
        weight, rows = own[WEIGHT], int(own[ROWS])
        average = over(own[GRADIENT], weight)
        before, after = over(own[LOSS_BEFORE], weight), over(own[LOSS_AFTER], weight)
        bias = over(own[BEFORE], weight)
        coordinate = Coordinate(
            "(all)", rows, average, from_state=average, bias_before=bias, bias_after=average,
            loss_before=before, loss_after=after, vacuous=True,
        )  # fmt: skip
        return Equilibrium(
            rows, (coordinate,), loss_name="pinball loss", loss_before=before, loss_after=after,
            vacuous=True, exact=False,
        )  # fmt: skip

    def labels_until(self, bound: float) -> int | None:
        """How many more labels until the proven bound falls below this; None without a final tracker."""
        from gradeq.layers.coverage import setting_of
        from gradeq.layers.promises import more_labels

        if self._head.final is None:
            return None
        return more_labels(setting_of(self), bound)

    def prediction(self, f: Any) -> float:
        """The base forecast, checked."""
        return door.number(f, "prediction")

    def label(self, y: Any) -> float:
        """The label, checked."""
        return door.number(y, "label")

    def base_column(self, predictions: Any) -> Floats:
        """A column of base forecasts, checked."""
        from gradeq.layers import columns

        return columns.numbers(predictions, "prediction")

    def label_column(self, labels: Any, n: int) -> Floats:
        """A column of labels, checked; nan where there is none."""
        from gradeq.layers import columns

        return columns.labels(labels, n)

    def check_rows(self, size: float, weight: float) -> None:
        """Any weight fits: errors are bounded, so no step diverges."""

    def shown(self, f: Any, served: Any) -> Any:
        """What the user sees: the served value, or the raw one in shadow mode."""
        return f if self.shadow else served

    def grow(self) -> None:
        """Room for the one parameter."""
        self.desk.head.grow(1)
        self.desk.grow(1, 1)

    @property
    def certified(self) -> Any:
        """The head that carries the certificate."""
        return self._head.final

    @property
    def names(self) -> list[str]:
        """The name of the one coordinate."""
        return ["(all)"]

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments that make this layer anew."""
        return {
            "level": self.levels[0],
            "etas": self.etas,
            "ensemble_eta": self.ensemble_eta,
            "final_eta": self.final_eta,
            "floor": self.floor,
            "link": self.link_name,
            "late_cap": self.late_cap,
            "in_flight": self.desk.in_flight,
            "ttl": self.desk.ttl,
            "shadow": self.shadow,
        }

    @property
    def _head(self) -> Ensemble:
        head = self.desk.head
        assert isinstance(head, Ensemble)
        return head

    def _final(self, schedule: Constant, limit: float) -> Margin | Levels:
        if self.link_name == "linear":
            return Margin(Identity(), Quantile(self.levels[0]), schedule, limit)
        return Levels(self.levels, schedule, limit)
