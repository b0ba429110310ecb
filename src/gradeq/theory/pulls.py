"""Errors of bounded size: how far one step can push theta outward, for each task (G2')."""

from __future__ import annotations

import math
from typing import NamedTuple

from gradeq.numerics import LAMBERT_W
from gradeq.theory.candidate import Radius
from gradeq.theory.features import quantile_pull
from gradeq.theory.links import clip_bound, logit_pull
from gradeq.theory.setting import HOME_SHARE, Setting


class Pull(NamedTuple):
    """What an error of bounded size does to theta: g'theta >= -kappa and |e| <= error."""

    kappa: float
    error: float
    offset: float
    span: float
    result: str
    assumption: str


def grown(setting: Setting, pull: Pull, overlap: float = 0.0) -> Radius:
    """The radius as the sums of steps grow: sqrt(sum of 2 eta kappa + eta^2 L^2 + 2 eta A), as in any other round."""
    lipschitz_squared = setting.row_size * pull.error * pull.error
    free = disturbance(setting, pull.error)
    share = 1.0
    if setting.task == "elo":  # ratings add up to 0, unless there is a home advantage
        share = math.sqrt((setting.dimension - 1) / setting.dimension)
        share = 1.0 / math.sqrt(HOME_SHARE) if setting.home else share
    if setting.task == "elo" and setting.penalty not in (None, "ridge"):
        share = 1.0

    def radius(steps: float, squares: float) -> float:
        pulled = 2.0 * (pull.kappa + overlap * pull.error * pull.error) * steps
        return share * (math.sqrt(pulled + lipschitz_squared * squares) + free)

    return radius


def pull_of(setting: Setting) -> Pull | None:
    """kappa and the size of the error, for the tasks whose error is bounded."""
    if setting.task == "elo":
        return Pull(LAMBERT_W, 1.0, 0.0, 0.0, "8.5", "results in [0, 1]")
    if setting.task == "probability_logit":
        if setting.clip is None:
            return None
        offset = clip_bound(setting.clip)
        known = f"labels in [0, 1], forecasts clipped at {setting.clip:g}"
        return Pull(logit_pull(offset), 1.0, offset, 1.0, "C3", known)
    if setting.task in ("probability_shift", "glm"):
        shift = setting.task == "probability_shift"
        a, b = (-1.0, 1.0) if shift else (setting.span_low, setting.span_high)
        if setting.low < a or setting.high > b:
            return None
        return Pull(LAMBERT_W * (b - a), b - a, 0.0, b - a, "5.1", f"labels in [{a:g}, {b:g}]")
    if setting.task == "quantile":
        if len(setting.levels) > 1:
            return _levels_pull(setting)
        kappa = quantile_pull(setting.low, setting.high, setting.level)
        known = f"tracked residuals in [{setting.low:g}, {setting.high:g}]"
        return Pull(kappa, max(setting.level, 1.0 - setting.level), 0.0, 0.0, "5.3", known)
    return None


def _levels_pull(setting: Setting) -> Pull:
    """Several levels by lazy isotonic projection: kappa and the squared errors add up over the levels.

    At tied levels the errors fall with the level, so the negative gradient points into the cone and
    g'(u - theta) >= 0 (result 8.7); what is left is the pinball loss of the base forecasts, level by level (5.3).
    """
    k = len(setting.levels)
    lows, highs = setting.lows or (setting.low,) * k, setting.highs or (setting.high,) * k
    ranges = zip(lows, highs, setting.levels, strict=True)
    kappa = sum(quantile_pull(low, high, level) for low, high, level in ranges)
    error = math.hypot(*(max(level, 1.0 - level) for level in setting.levels))
    known = f"tracked residuals in [{min(lows):g}, {max(highs):g}]"
    return Pull(kappa, error, 0.0, 0.0, "5.3 with 8.7", known)


def disturbance(setting: Setting, lipschitz: float) -> float:
    """How far rows that ignored theta, before the sinh link had a scale, can have moved it."""
    size = math.sqrt(setting.row_size)
    return setting.zero_scale_rounds * setting.largest_step * lipschitz * size
