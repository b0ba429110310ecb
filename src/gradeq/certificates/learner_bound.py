"""The bound of a ``Learner``: the smallest that is proven for its loss, link, steps, penalty and set.

Everything proven comes from ``gradeq.theory``, what was seen from the state. Where no theorem fits, it says why.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

from gradeq import geometries, theory
from gradeq.certificates.reading import Arguments
from gradeq.engine import learner_state as seen_at
from gradeq.engine.learner import Learner
from gradeq.engine.learner_state import LearnerState, LossTask
from gradeq.errors import BadInput
from gradeq.numerics import sigmoid
from gradeq.penalties import Lasso, Ridge
from gradeq.theory import Bound, Setting

PROXIMAL = (geometries.Shrink, geometries.SoftThreshold)
PROJECTIONS = (
    geometries.Affine,
    geometries.Ball,
    geometries.Box,
    geometries.Isotonic,
    geometries.NonNegative,
    geometries.Simplex,
)  # in the Euclidean distance


class LearnerPull(NamedTuple):
    """|slope| <= ``lipschitz``, and slope times the margin gained since the start >= -``kappa``."""

    kappa: float
    lipschitz: float
    result: str


Total = tuple[float, str]  # a bound on every coordinate of the sum of gradients, and the result behind it


def learner_bound(
    learner: Learner, state: LearnerState, lipschitz: float | None = None, kappa: float | None = None
) -> Bound:
    """The smallest bound on the largest coordinate of the average gradient; on a set: of gradient plus normal part.

    ``lipschitz`` and ``kappa`` are what a loss of your own promises, or gradients of your own: no larger slope, and
    slope times margin never below -kappa (for ``descend``: ||g|| and g'theta; margin and theta less their start).
    """
    promise = _promised(lipschitz, kappa)
    facts = state.internals.observed
    reason = _refusal(learner, state, promise)
    if reason:
        return Bound(None, reason, (), math.inf, True, reason)
    task, geometry = learner.observer.task, learner.geometry
    pull = promise or _pull(task, facts)
    setting, unit = _setting(learner, state)
    trivial = pull.lipschitz if pull else math.inf
    if setting is not None:
        trivial = min(trivial, unit * theory.trivial_error(setting))
    trivial *= facts[seen_at.LARGEST_ENTRY]
    if isinstance(geometry, PROXIMAL):
        totals = _proximal(geometry, task, state, pull)
    else:
        totals = _growths(task, state, pull) if learner.penalty is None else []
    if isinstance(geometry, PROJECTIONS):
        totals = [(total, "7.1, of gradient plus normal part") for total, _ in totals]
        trivial = math.inf  # what a set takes back may be as large as it likes
    elif not isinstance(geometry, PROXIMAL):
        if setting is not None:
            proven = theory.best_bound(setting)
            if proven.value is not None:
                totals.append((unit * proven.value * state.weight, proven.result))
            elif not totals:
                return replace(proven, result=proven.reason)
        if task.name == "huber" and learner.penalty is None and not facts[seen_at.OVERLAPPING]:
            # One parameter a row, z = 1: G1, the horizon being the farthest label.
            farthest = max(abs(facts[seen_at.LOW]), abs(facts[seen_at.HIGH]))
            step = facts[seen_at.LARGEST_STEP] * facts[seen_at.HEAVIEST]
            radius = theory.radius_1d(0.0, farthest, task.width, step)
            totals.append((radius / facts[seen_at.FIRST_STEP] + 2.0 * radius * facts[seen_at.CHANGES], "G1"))
    totals = [(total, result) for total, result in totals if math.isfinite(total)]
    if not totals:
        reason = "no result fits what was seen"
        return Bound(None, reason, (), trivial, True, reason)
    total, result = min(totals, key=lambda pair: pair[0])
    value = total / state.weight
    return Bound(value, result, (), trivial, not value < trivial)


def _promised(lipschitz: float | None, kappa: float | None) -> LearnerPull | None:
    if lipschitz is None and kappa is None:
        return None
    if lipschitz is None or kappa is None:
        missing = "lipschitz" if lipschitz is None else "kappa"
        raise BadInput(f"certificate: {missing}= is missing; a bound needs lipschitz= and kappa=")
    for name, value, least in (("lipschitz", lipschitz, 1e-300), ("kappa", kappa, 0.0)):
        if not (isinstance(value, (int, float)) and least <= value < math.inf):
            raise BadInput(f"certificate: {name}={value!r}; give a finite number, not negative")
    return LearnerPull(float(kappa), float(lipschitz), "G2' with your lipschitz and kappa")


def _refusal(learner: Learner, state: LearnerState, promise: LearnerPull | None) -> str:
    """Why no theorem covers what happened; empty where one may."""
    facts, task, geometry = state.internals.observed, learner.observer.task, learner.geometry
    step = facts[seen_at.LARGEST_STEP] * facts[seen_at.HEAVIEST] * facts[seen_at.ROW_SIZE]
    gradients, alone = facts[seen_at.OWN_GRADIENTS], not facts[seen_at.OVERLAPPING]
    if not state.n:
        return "no labels yet"
    if facts[seen_at.DIRECTIONS]:
        return "steps went along directions of your own, and nothing proves that these turn back"
    if facts[seen_at.STALE]:
        return "a label came after others had moved the parameters; layers have bounds for late labels"
    if task.name == "mean" and not gradients and task.factor * step >= 2.0:
        return "this step is too large for the squared error: step x weight x ||z||^2 must be below 2"
    if not facts[seen_at.COMPLETE] or facts[seen_at.TASK] != learner.observer.identity:
        return "what was learned before is not known: under another recipe, or by an earlier version"
    if gradients and promise is None:
        return "gradients of your own: give what they promise, certificate(..., lipschitz=, kappa=)"
    if gradients and gradients != state.n:
        return "labels and gradients of your own are mixed"
    if task.name == "own" and promise is None:
        return "nothing is known of this loss: give what it promises, certificate(..., lipschitz=, kappa=)"
    if task.name == "count" and promise is None and not (alone and isinstance(geometry, geometries.Euclidean)):
        return "a constant step can diverge with this loss unless each row has one parameter, z = 1"
    if isinstance(geometry, geometries.EntropicSimplex):
        return "mirror descent: see gradeq.theory.floored_simplex_average (result 7.3)"
    if learner.lazy and not isinstance(geometry, geometries.Euclidean):
        return "in lazy form a bound needs a flow that points into the set (result 8.7)"
    known = isinstance(geometry, (geometries.Euclidean, *PROXIMAL, *PROJECTIONS))
    if not known:
        return "nothing is known of this geometry"
    if learner.penalty is None:
        return ""
    if not isinstance(learner.penalty, (Lasso, Ridge)):
        return "nothing is known of this penalty"
    if not isinstance(geometry, geometries.Euclidean):
        return "no bound is proven for a penalty on a set"
    if task.name in ("own", "huber", "count") or promise is not None:
        return "no bound is proven for this penalty with this loss"
    return "no bound is proven for a penalty from another start than 0" if any(state.first) else ""


def _pull(task: LossTask, facts: list[float]) -> LearnerPull | None:
    """kappa and the size of the slope, for the losses whose slope is bounded."""
    low, high = facts[seen_at.LOW], facts[seen_at.HIGH]
    if task.name == "quantile":
        kappa = task.factor * theory.quantile_pull(low, high, task.level)
        return LearnerPull(kappa, task.factor * max(task.level, 1.0 - task.level), "5.3")
    if task.name == "huber":
        return LearnerPull(theory.huber_pull(low, high, task.width), task.width, "G2'")
    span = task.high - task.low
    if task.name == "logistic" and task.low <= low and high <= task.high:
        reach = facts[seen_at.REACH]
        return LearnerPull(span * theory.logit_pull(reach), span, "C3" if reach else "5.1")
    return None


def _growths(task: LossTask, state: LearnerState, pull: LearnerPull | None) -> list[Total]:
    """From the growth of ||theta - theta_1||^2 alone, for any rows, weights and steps (results 5.1 to 5.3, 1.8)."""
    facts, last = state.internals.observed, state.step
    changes, totals = facts[seen_at.CHANGES], []
    if task.name == "mean" and not facts[seen_at.OWN_GRADIENTS]:
        growth, changed = facts[seen_at.RESIDUALS], facts[seen_at.RESIDUALS_CHANGED]
        totals.append((theory.sum_from_growth(growth, last, changes, changed), "5.2"))
    if pull is not None:
        a, b = 2.0 * pull.kappa, pull.lipschitz * pull.lipschitz
        growth = a * facts[seen_at.STEPS] + b * facts[seen_at.SQUARES]
        changed = a * facts[seen_at.STEPS_CHANGED] + b * facts[seen_at.SQUARES_CHANGED]
        totals.append((theory.sum_from_growth(growth, last, changes, changed), pull.result))
    return totals


def _proximal(
    geometry: geometries.Shrink | geometries.SoftThreshold,
    task: LossTask,
    state: LearnerState,
    pull: LearnerPull | None,
) -> list[Total]:
    """Results 6.4 and 6.5, and no more than without the penalty: one step and weight, from 0."""
    facts = state.internals.observed
    eta, size = facts[seen_at.FIRST_STEP], facts[seen_at.ROW_SIZE]
    varied = facts[seen_at.CHANGES] or facts[seen_at.HEAVIEST] != 1.0 or state.weight != state.n
    if varied or any(state.first):
        return []
    growths = []
    if task.name == "mean":
        b = max(abs(facts[seen_at.LOW]), abs(facts[seen_at.HIGH]))
        factor = task.factor * eta
        growths.append(factor * b * b / (2.0 - factor * size))
    if pull is not None:
        growths.append(2.0 * eta * pull.kappa + eta * eta * pull.lipschitz**2 * size)
    strength, totals = geometry.strength, []
    for growth in growths:
        free = math.sqrt(state.n * growth)
        if isinstance(geometry, geometries.Shrink):
            radius = min(free, theory.proximal_ridge_radius(0.0, growth, strength, eta))
            totals.append((radius / eta + state.n * strength * radius, "6.4"))
        else:
            radius = min(free, max(0.0, theory.proximal_lasso_radius(0.0, growth, strength, eta)))
            totals.append((radius / eta + state.n * strength, "6.5"))
    return totals


def _setting(learner: Learner, state: LearnerState) -> tuple[Setting | None, float]:
    """The same as theory describes a layer, if it can, and what its bounds are multiplied by."""
    facts, task, d = state.internals.observed, learner.observer.task, state.dimension
    if facts[seen_at.OWN_GRADIENTS] or task.name in ("own", "huber"):
        return None, 1.0
    low, high, reach = facts[seen_at.LOW], facts[seen_at.HIGH], facts[seen_at.REACH]
    span, unit, factor = task.high - task.low, 1.0, 1.0
    more: Arguments
    if task.name == "mean":
        more = {"task": "mean", "low": low, "high": high}
        factor = task.factor
    elif task.name == "quantile":
        more = {"task": "quantile", "level": task.level, "low": low, "high": high}
        unit = task.factor
    elif task.name == "count":
        more = {"task": "multiplicative", "ratio_low": low, "ratio_high": high}
        more |= {"forecast_max": math.exp(reach), "label_max": facts[seen_at.LARGEST_LABEL]}
    elif low < task.low or high > task.high:
        return None, 1.0
    elif reach:
        more = {"task": "probability_logit", "odds_sum": facts[seen_at.ODDS], "clip": sigmoid(-reach) or None}
        more |= {"label_low": (low - task.low) / span, "label_high": (high - task.low) / span}
        unit = span
    else:
        more = {"task": "glm", "span_low": task.low, "span_high": task.high, "low": low, "high": high}
    if isinstance(learner.penalty, (Lasso, Ridge)):
        more["penalty"] = "lasso" if isinstance(learner.penalty, Lasso) else "ridge"
        more["strength"] = learner.penalty.strength / unit
    if facts[seen_at.OVERLAPPING]:
        more |= {"structure": "features", "size": facts[seen_at.ROW_SIZE], "largest": facts[seen_at.LARGEST_ENTRY]}
    elif d > 1:
        more |= {"structure": "disjoint", "counts": (state.n,)}
    return Setting(
        n=state.n,
        dimension=d,
        eta=unit * facts[seen_at.FIRST_STEP],
        eta_last=unit * state.step,
        eta_min=unit * facts[seen_at.SMALLEST_STEP],
        eta_max=unit * facts[seen_at.LARGEST_STEP],
        inverse_variation=facts[seen_at.CHANGES] / unit,
        weight_max=factor * facts[seen_at.HEAVIEST],
        weight_sum=factor * state.weight,
        divisor=state.weight,
        **more,
    ), unit
