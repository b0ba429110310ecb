"""Quantile ensembling: trackers with several steps, weighted by what they cost, and coverage restored at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from gradeq.certificate_reading import Terms
from gradeq.coverage import Coverage, coverages
from gradeq.engine import checks
from gradeq.engine.flight import LABELS
from gradeq.engine.names import ALONE, Roster
from gradeq.errors import BadInput
from gradeq.layers.columns import Moment, moment
from gradeq.layers.layer import Id
from gradeq.layers.making import late_limit
from gradeq.layers.predicting import Single
from gradeq.layers.support import Support, held, held_rule
from gradeq.layers.tracker import CAP, LateCap, LinkName, checked_levels
from gradeq.links import Identity
from gradeq.losses import Quantile
from gradeq.rules.descent import Descent
from gradeq.rules.ensemble import Ensemble
from gradeq.rules.levels import Levels
from gradeq.schedules import Constant

if TYPE_CHECKING:
    pass


class QuantileEnsemble(Single):
    """Mixes quantile trackers of several steps by exponentiated gradient; a final tracker keeps the coverage exact.

    >>> ensemble = QuantileEnsemble(0.9, etas=[0.1, 1.0], ensemble_eta=0.5)
    >>> for y in [1.0, 2.0, 1.5, 3.0]:
    ...     quantile = ensemble.predict(1.0)
    ...     outcome = ensemble.update(y)
    >>> {eta: round(weight, 2) for eta, weight in ensemble.weights.items()}
    {'0.1': 0.37, '1': 0.63}

    ``etas`` are the trackers' steps (in the unit of the labels, link linear), ``ensemble_eta`` that of the weights.
    ``final_eta`` is the step of the final tracker on the ensemble's quantile (``link`` sinh by default, so without a
    unit); None leaves it out. ``floor``: no weight falls below it (results 7.2, 7.3). Where labels come late,
    trackers and weights take the same share of their steps as the final tracker. A run's ``weights`` are their path.
    ``support`` as for ``QuantileTracker``.

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
        link: LinkName = "sinh",
        late_cap: LateCap = "auto",
        in_flight: int = 1,
        ttl: float | str | None = None,
        maturity: float | str | None = None,
        missing_is: float | None = None,
        queue: bool = False,
        support: Support | None = None,
        shadow: bool = False,
    ) -> None:
        self._keep_to(support)
        self._sizing = LABELS  # the trackers have the unit of labels
        self.levels = checked_levels([level])
        self.etas = [
            Constant(checks.step(eta)).eta for eta in checks.several(etas, "etas", "steps")
        ]
        if not self.etas or len(set(self.etas)) < len(self.etas):
            raise BadInput(f"etas={self.etas}: give one or more different steps")
        if link not in ("sinh", "linear"):
            raise BadInput(f"link={link!r}: must be sinh or linear")
        self.ensemble_eta = Constant(checks.step(ensemble_eta, "ensemble_eta")).eta
        self.final_eta, self.floor, self.link_name = final_eta, checks.number(floor, "floor"), link
        self.late_cap, self.shadow = late_cap, checks.flag(shadow, "shadow")
        final = (
            None
            if final_eta is None
            else self._final(Constant(checks.step(final_eta, "final_eta")))
        )
        rule: Any = Ensemble(self.levels[0], tuple(self.etas), self.ensemble_eta, self.floor, final)
        if self.support is not None:
            rule = held_rule(rule, self.levels, self.support, False, False)
        self._build(rule, Roster(), late_limit(late_cap, CAP), in_flight, ttl, queue)
        self._mature_after(maturity, missing_is)

    def _final(self, schedule: Constant) -> Levels | Descent:
        if self.link_name == "linear":
            return Descent(Identity(), Quantile(self.levels[0]), schedule)
        return Levels(tuple(self.levels), schedule)

    def _shown(self, f: Any, served: Any) -> Any:
        return f if self.shadow else held(served, self.support)

    def predict(
        self, f: Any, weight: float = 1.0, id: Id | None = None, time: Moment | None = None
    ) -> float:
        """The adjusted quantile; a ticket stays open until its label comes."""
        if id is not None:
            id = self._book.check_new(id)
        if time is not None:
            time = moment(time, self._book)
        w = checks.weight(weight)
        served: float = self._open(*ALONE, checks.number(f, "prediction"), w, id, time)
        return served

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each tracker, by its step."""
        return self._by_step(self._state.ws)

    @property
    def trackers(self) -> dict[str, float]:
        """Where each tracker is, by its step."""
        return self._by_step(self._state.thetas)

    def _by_step(self, values: Any) -> dict[str, float]:
        return {f"{eta:g}": value for eta, value in zip(self.etas, values, strict=True)}

    @property
    def theta(self) -> dict[str, float]:
        """The parameter of the final tracker; without one, those of the trackers."""
        return self.trackers if self.final_eta is None else {"(all)": self._state.u[0]}

    @property
    def coverage(self) -> Coverage:
        """How often y <= served, before and after, beside the level and the bound (None without a final tracker)."""
        found = coverages(self)[0]
        return found if self.final_eta else found._replace(bound=None, vacuous=None)

    @property
    def _terms(self) -> Terms:
        final = self.final_eta is not None
        return Terms(
            "quantile", "scalar", "pinball loss", tuple(self.levels),
            sinh=final and self.link_name == "sinh", certified=final,
        )  # fmt: skip

    @property
    def _held(self) -> dict[str, Any]:
        return super()._held | {"level": self.levels[0], "link": self.link_name}
