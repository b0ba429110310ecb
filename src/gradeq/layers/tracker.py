"""What tracks quantiles, of labels or of scores: levels, link, step, and how all that is certified."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Literal

from gradeq.certificate_reading import Terms
from gradeq.engine import checks
from gradeq.engine.flight import BOUNDED, LABELS
from gradeq.engine.names import Roster
from gradeq.errors import BadInput
from gradeq.layers.grouped import Stepped
from gradeq.layers.layer import NONE
from gradeq.layers.making import late_limit
from gradeq.layers.support import Support, held, held_rule
from gradeq.links import Identity
from gradeq.losses import Quantile
from gradeq.penalties import Penalty
from gradeq.rules.descent import Descent
from gradeq.rules.levels import Levels
from gradeq.schedules import Constant, Schedule
from gradeq.theory import warm_start

LinkName = Literal["sinh", "linear"]
LateCap = Literal["auto"] | float | None
Step = float | Literal["auto", "plain"] | None

DEFAULT_ETA = 0.1  # with the sinh link, also with groups (result B6)
AUTO_FINAL = 0.03  # the step that carries the certificate of ``auto``
CAP = 0.3  # c of the late-label cap


class Tracker(Stepped):
    """What tracks quantiles, of labels or of scores: levels, link, step, and how all that is certified.

    ``_forecast``: whether the base is a forecast of the quantile, worth mixing by ``auto``; that of a score is 0.
    ``warm``: start as if scores were exponential; set before the rest is made. ``_interval``: two levels are the ends
    of an interval.
    """

    warm = False
    _forecast = True
    _interval = False
    _auto_harm = "auto follows the best of its steps by their pinball loss"

    def __init__(
        self,
        levels: Sequence[float],
        eta: Step = None,
        *,
        link: LinkName = "sinh",
        groups: Sequence[str] | str = (),
        features: Sequence[str] | str = (),
        schedule: Schedule | None = None,
        penalty: Penalty | None = None,
        late_cap: LateCap = "auto",
        in_flight: int = 1,
        ttl: float | str | None = None,
        maturity: float | str | None = None,
        missing_is: float | None = None,
        queue: bool = False,
        support: Support | None = None,
        shadow: bool = False,
    ) -> None:
        if link not in ("sinh", "linear"):
            raise BadInput(f"link={link!r}: must be sinh (steps without a unit) or linear")
        self.levels = checked_levels(levels)
        if len(self.levels) > 1:
            self._bases = NONE
        self.link_name, self.penalty, self.late_cap = link, penalty, late_cap
        self.shadow = checks.flag(shadow, "shadow")
        self._sizing = LABELS if link == "linear" else BOUNDED
        self._keep_to(support)
        names = Roster(groups, features, together=penalty is not None)
        self.eta, self.schedule = self._chosen_step(eta, schedule, names)
        rule = self._made_rule(names)
        if self.support is not None:
            rule = held_rule(rule, self.levels, self.support, self._interval, not names.scalar)
        self._build(rule, names, late_limit(late_cap, CAP), in_flight, ttl, queue)
        self._mature_after(maturity, missing_is)

    def _made_rule(self, names: Roster) -> Any:
        if self.schedule is not None:
            return self._tracking(self.schedule, names, self._warm_start(names))
        from gradeq.rules.mixed_levels import MixedLevels

        final = self._tracking(Constant(AUTO_FINAL), names, (0.0,) * len(self.levels))
        start = tuple(warm_start(tau) for tau in self.levels) if self.warm else ()
        raw = self._forecast and not self.warm
        return MixedLevels(final, float(len(names.groups)), raw, start)

    def _tracking(self, schedule: Schedule, names: Roster, start: tuple[float, ...]) -> Any:
        totals = not names.scalar
        if self.link_name == "linear" and len(self.levels) == 1:
            loss = Quantile(self.levels[0])
            return Descent(Identity(), loss, schedule, self.penalty, totals)
        curved = self.link_name == "sinh"
        return Levels(tuple(self.levels), schedule, curved, start, self.penalty, totals)

    def _warm_start(self, names: Roster) -> tuple[float, ...]:
        """u_1 of each level: 0, or "as if exponential" for scores without a base forecast (result B3)."""
        return tuple(warm_start(tau) / names.size if self.warm else 0.0 for tau in self.levels)

    def _shown(self, f: Any, served: Any) -> Any:
        return f if self.shadow else held(served, self.support)

    @property
    def _terms(self) -> Terms:
        names, auto = self._names, self.schedule is None
        start = (0.0,) * len(self.levels) if auto else self._warm_start(names)
        return Terms(
            "quantile", self._structure, "pinball loss", tuple(self.levels), start, size=names.size,
            sinh=self.link_name == "sinh",
        )  # fmt: skip

    def _default_eta(self, names: Roster) -> float:
        return DEFAULT_ETA


def checked_levels(levels: Sequence[float]) -> list[float]:
    """Levels strictly between 0 and 1, in increasing order."""
    taus = [
        checks.number(tau, "level")
        for tau in checks.several(levels, "levels", "levels such as 0.1, 0.9")
    ]
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
