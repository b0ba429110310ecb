"""Which steps Elo takes: those of the players, and that of the first side."""

from __future__ import annotations

import math

from gradeq.engine import checks
from gradeq.errors import BadInput
from gradeq.layers import combinations
from gradeq.penalties import Penalty
from gradeq.rules.forecaster import FINAL
from gradeq.schedules import Constant, Schedule
from gradeq.theory.elo import step_from_k

HOME_STEP = 0.1  # of the first side, as a share of the players'


def chosen_step(
    eta: float | str | None,
    k: float | None,
    schedule: Schedule | None,
    penalty: Penalty | None,
    proximal: float | None,
) -> tuple[float | str | None, Schedule | None]:
    """``eta`` as a setting and the schedule, None for the forecaster; what does not go together is refused."""
    checks.part(schedule, "schedule", "step", "gradeq.Power(0.5, 0.5)")
    checks.part(penalty, "penalty", "slope", "gradeq.Ridge(0.01)")
    given = eta is not None or k is not None or schedule is not None
    auto = not given or (isinstance(eta, str) and eta == "auto")
    options = {"auto": auto, "eta": eta is not None and not auto, "k": k is not None}
    options |= {"schedule": schedule is not None, "penalty": penalty is not None}
    combinations.check("elo", **options, proximal=proximal is not None)
    if schedule is not None:
        schedule.step(1)
        return None, schedule
    if auto:
        return "auto", None
    step = step_from_k(checks.step(k, "k")) if k is not None else checks.step(eta)
    return step, Constant(step)


def home_scale(home_step: float | None, schedule: Schedule | None) -> float:
    """The first side's entry in a row: its step is the square of this times that of the players."""
    if home_step is None:
        return math.sqrt(HOME_STEP)
    own = FINAL if schedule is None else schedule.step(1)
    share = checks.step(home_step, "home_step") / own
    if not 0.0 < share <= 1.0:
        raise BadInput(
            f"home_step={home_step!r}: must be above 0 and at most the players' step {own:g}"
        )
    return math.sqrt(share)
