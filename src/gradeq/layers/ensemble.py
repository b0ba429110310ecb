"""Quantile ensembling: trackers with several steps, weighted by their loss; a final tracker restores coverage."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Never

from gradeq.certificates.certificate import Coverage, coverages
from gradeq.certificates.reading import Terms
from gradeq.engine import scalars
from gradeq.engine.lateness import LABELS
from gradeq.engine.names import Roster
from gradeq.errors import BadInput, warn_deprecated
from gradeq.kernels.account import ShownLimits
from gradeq.layers.locking import locked
from gradeq.layers.options import LateCap, LateLabels, Support, limits_of
from gradeq.layers.predicting import SingleParameterLayer
from gradeq.layers.quantile import CAP, LinkName, checked_levels
from gradeq.layers.serialization import Saved
from gradeq.links import Identity
from gradeq.losses import Quantile
from gradeq.records import copy_with
from gradeq.rules.descent import Descent
from gradeq.rules.ensemble import Ensemble
from gradeq.rules.levels import Levels
from gradeq.rules.rule import Rule
from gradeq.rules.wrapped import Clipped
from gradeq.schedules import Constant


class QuantileEnsemble(SingleParameterLayer[float, Never]):
    """Mixes quantile trackers of several steps by exponentiated gradient; a final tracker keeps the coverage exact.

    >>> ensemble = QuantileEnsemble(0.9, etas=[0.1, 1.0], ensemble_eta=0.5)
    >>> for y in [1.0, 2.0, 1.5, 3.0]:
    ...     quantile = ensemble.predict(1.0)
    ...     outcome = ensemble.update(y)
    >>> {eta: round(weight, 2) for eta, weight in ensemble.tracker_weights.items()}
    {'0.1': 0.37, '1': 0.63}

    ``etas`` are the trackers' steps (in the unit of the labels, link linear), ``ensemble_eta`` that of the weights.
    ``final_eta`` is the step of the final tracker on the ensemble's quantile (``link`` sinh by default, so without a
    unit); None leaves it out. ``floor``: no weight falls below it (results 7.2, 7.3). Where labels come late,
    trackers and weights take the same share of their steps as the final tracker. A run's
    ``tracker_weights`` are their path. ``support`` as for ``QuantileTracker``.

    Guaranteed for any sequence with the final tracker: |coverage - level| = |u| / (final_eta T), where u is the final
    tracker's parameter after T labels, bounded as for ``QuantileTracker`` with the residuals of the ensemble (result
    7.5). WITHOUT it coverage is not guaranteed: weights in equilibrium on the simplex say nothing about it, and
    there are bounded sequences with coverage 0.8 at level 0.9.
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
        if support is not None:
            self._limit_labels(support)
        self._sizing = LABELS  # the trackers' parameters have the unit of the labels
        self.levels = checked_levels([level])
        self.etas = [scalars.step(eta, "one of etas") for eta in scalars.several(etas, "etas", "steps")]
        if not self.etas or len(set(self.etas)) < len(self.etas):
            raise BadInput(f"etas={self.etas}: give one or more different steps")
        scalars.word(link, "link", ("sinh", "linear"), "sinh or linear")
        self.ensemble_eta = scalars.step(ensemble_eta, "ensemble_eta")
        self.final_eta = None if final_eta is None else scalars.step(final_eta, "final_eta")
        self.floor, self.link_name = scalars.option(floor, "floor"), link
        self.shadow = scalars.flag(shadow, "shadow")
        final: Levels | Descent | None = None
        if self.final_eta is not None and link == "linear":
            final = Descent(Identity(), Quantile(self.levels[0]), Constant(self.final_eta))
        elif self.final_eta is not None:
            final = Levels(tuple(self.levels), Constant(self.final_eta))
        rule: Rule = Ensemble(self.levels[0], tuple(self.etas), self.ensemble_eta, self.floor, final)
        if self.support is not None:
            rule = Clipped(rule, ShownLimits(tuple(self.levels), *limits_of(self.support), False), False)
        late = LateLabels(late_cap, in_flight, ttl, maturity, missing_is, queue)
        self._build(rule, Roster(), late, CAP)

    @property
    @locked
    def tracker_weights(self) -> dict[str, float]:
        """The weight of each tracker, by its step."""
        return self._by_step(self.internals.state.ws)

    @property
    @locked
    def weights(self) -> dict[str, float]:
        """Deprecated: use ``tracker_weights``. It will be removed in the next version."""
        warn_deprecated("QuantileEnsemble.weights", "tracker_weights")
        return self.tracker_weights

    @property
    @locked
    def trackers(self) -> dict[str, float]:
        """The parameter of each tracker, by its step."""
        return self._by_step(self.internals.state.thetas)

    def _by_step(self, values: Iterable[float]) -> dict[str, float]:
        return {f"{eta:g}": value for eta, value in zip(self.etas, values, strict=True)}

    @property
    @locked
    def theta(self) -> dict[str, float]:
        """The parameter of the final tracker; without one, those of the trackers."""
        return self.trackers if self.final_eta is None else {"(all)": self.internals.state.u[0]}

    @property
    @locked
    def coverage(self) -> Coverage:
        """How often y <= served, before and after, with the level and the bound (None without a final tracker)."""
        coverage = coverages(self)[0]
        return coverage if self.final_eta else copy_with(coverage, bound=None, vacuous=None)

    @property
    def terms(self) -> Terms:
        has_final = self.final_eta is not None
        return Terms(
            "quantile", "scalar", "pinball loss", tuple(self.levels),
            sinh=has_final and self.link_name == "sinh", certified=has_final,
        )  # fmt: skip

    @property
    def _other_settings(self) -> Saved:
        return super()._other_settings | {"level": self.levels[0]}
