"""What a step can cost: results B1, B2, B4, B5, A6, and the harm cap of a layer in one sentence."""

from __future__ import annotations

import math
from typing import NamedTuple

from gradeq.theory.setting import Setting

HARD_LABEL_RATIO = 0.40727  # sup over p of (1 - p)^2 / (-log p), rounded up


def squared_harm_factor(eta: float, size: float = 1.0) -> float:
    """MSE served <= MSE base / (1 - eta c^2), any sequence, no range needed (result B1, attained).

    Infinite from eta c^2 = 1 on.

    >>> squared_harm_factor(0.5)
    2.0
    """
    room = 1.0 - eta * size
    return 1.0 / room if room > 0.0 else math.inf


def squared_oracle_total(oracle_squares: float, distance_squared: float, eta: float, size: float = 1.0) -> float:
    """Sum of squared errors against ANY fixed u: (sum (z'u - r)^2 + ||u - theta_1||^2/eta)/(1 - eta c^2) (B1).

    >>> squared_oracle_total(10.0, 1.0, 0.5)
    24.0
    """
    return squared_harm_factor(eta, size) * (oracle_squares + distance_squared / eta)


def step_from_budget(budget: float, size: float = 1.0) -> float:
    """The step whose worst harm is ``budget`` (0.01 = 1 % of the squared error): h/((1 + h) c^2) (B1).

    >>> round(step_from_budget(0.01), 6)
    0.009901
    """
    return budget / ((1.0 + budget) * size)


def convex_harm(eta: float, gradient_squares: float, start: float = 0.0) -> float:
    """Most that the SUM of any convex loss can exceed the base's: (eta/2) sum ||g||^2 + ||theta_1||^2/(2 eta).

    Pinball and log loss in particular (result B2, attained).

    >>> convex_harm(0.1, 20.0)
    1.0
    """
    return 0.5 * eta * gradient_squares + start**2 / (2.0 * eta)


def pinball_harm(eta: float, level: float, size: float = 1.0) -> float:
    """Most that the mean pinball loss can rise, in the unit of y: (eta/2) c^2 max(tau, 1 - tau)^2 (B2).

    >>> pinball_harm(0.5, 0.5)
    0.0625
    """
    return 0.5 * eta * size * max(level, 1.0 - level) ** 2


def log_loss_harm_factor(eta: float, size: float = 1.0) -> float:
    """Log loss served <= base/(1 - 0.2037 eta c^2) with 0/1 labels and the logit link (results B2, C4).

    (1 - p)^2 <= 0.40727 (-log p). The base is the clipped forecast.

    >>> round(log_loss_harm_factor(0.1), 4)
    1.0208
    """
    room = 1.0 - 0.5 * HARD_LABEL_RATIO * eta * size
    return 1.0 / room if room > 0.0 else math.inf


def late_squared_harm_factor(eta: float, delay: int, size: float = 1.0) -> float:
    """MSE served <= MSE base / (1 - eta c^2 (2 D + 1)) with every delay at most D tickets (result A6).

    >>> late_squared_harm_factor(0.1, 2)
    2.0
    """
    room = 1.0 - eta * size * (2 * delay + 1)
    return 1.0 / room if room > 0.0 else math.inf


def late_convex_harm(eta: float, lipschitz: float, most_open: int) -> float:
    """Most that the mean convex loss can rise with at most P open: (eta/2) L^2 (2 P - 1) (result A6).

    >>> late_convex_harm(0.1, 1.0, 1)
    0.05
    """
    return 0.5 * eta * lipschitz * lipschitz * (2 * most_open - 1)


def uncertainty_product(variance: float, final_square: float = 0.0, n: float = 1.0) -> float:
    """Least (excess MSE) x (mean squared cumulative error), white residuals, any rule (result B4).

        (s^2 - E M^2/n)^2 / 4,   M = the cumulative error at the end, E M^2 <= n s^2

    A statement in expectation. A constant step attains it up to (1 - eta/2)^-2.

    >>> uncertainty_product(2.0)
    1.0
    """
    return max(0.0, variance - final_square / n) ** 2 / 4.0


def constant_step_product(variance: float, eta: float) -> float:
    """The same product for a constant step in the long run: s^4/(2 - eta)^2 (result B4).

    >>> constant_step_product(1.0, 1.0)
    1.0
    """
    return variance**2 / (2.0 - eta) ** 2


def least_excess(variance: float, error_bound: float, n: float) -> float:
    """Least excess MSE of a rule whose cumulative error never exceeds B: (s^2 - B^2/n)^2/(4 B^2) (B4).

    >>> least_excess(1.0, 1.0, 1e12) > 0.2499
    True
    """
    return uncertainty_product(variance, error_bound**2, n) / error_bound**2


def final_residual_bound(b: float, expert_radii: list[float]) -> float:
    """Residual range of the final layer over a mix of experts: b + max_k R_k (results B5, 7.5).

    >>> final_residual_bound(1.0, [0.0, 1.0])
    2.0
    """
    return b + max(expert_radii)


def bayes_mix_regret(experts: int) -> float:
    """Total log loss of the mix over that of the best of K + 1 experts: ln(K + 1) (result B5).

    Weights exp(-sum of log losses); 0/1 or soft labels. ``experts`` counts the raw forecast.

    >>> round(bayes_mix_regret(7), 3)
    1.946
    """
    return math.log(experts)


def bayes_final_log_loss(
    best_total: float, experts: int, final_eta: float, square_sum: float, size: float = 1.0
) -> float:
    """Total log loss served: best expert + ln(K + 1) + (eta_f c^2/2) sum e^2 (result B5)."""
    return best_total + bayes_mix_regret(experts) + 0.5 * final_eta * size * square_sum


def adahedge_regret(variance: float, loss_range: float, experts: int) -> float:
    """Regret of AdaHedge: sqrt(V ln K) + range (4/3 ln K + 2) (de Rooij et al. 2014; quoted in B5).

    >>> adahedge_regret(0.0, 1.0, 1)
    2.0
    """
    ln_k = math.log(experts)
    return math.sqrt(variance * ln_k) + loss_range * (4.0 / 3.0 * ln_k + 2.0)


def mixed_mse(base_mse: float, regret: float, n: float, final_eta: float) -> float:
    """MSE served by mix and final layer: (base + regret/n)/(1 - eta_f) (results B5, B1).

    >>> mixed_mse(1.0, 0.0, 10, 0.5)
    2.0
    """
    return (base_mse + regret / n) * squared_harm_factor(final_eta)


def late_mix_regret(experts: int, rate: float, range_squares: float, range_products: float) -> float:
    """Exponential weights at a constant rate with late losses (result B5).

        ln K/lambda + lambda sum s_t^2/8 + (lambda/4) sum_t s_t sum_{j open} s_j,   s = range of a round's losses

    ``range_squares`` = sum s_t^2, ``range_products`` = sum of s_t s_j over the pairs open together.

    >>> late_mix_regret(1, 1.0, 8.0, 4.0)
    2.0
    """
    return math.log(experts) / rate + rate * range_squares / 8.0 + rate * range_products / 4.0


JUDGED = 1e-6  # log losses are of probabilities within [1e-6, 1 - 1e-6], before and after


class HarmCap(NamedTuple):
    """Most that a layer can cost: ``factor`` multiplies the base's loss, ``added`` is added to it.

    Both are None where nothing is proven; ``sentence`` is fit to print either way. The base is the prediction as it
    came: a logit link clips it, and what that can cost is in ``added``. ``soft``: what is added to the log loss
    where labels lie between 0 and 1; ``factor`` and ``added`` are then of labels that are 0 or 1.
    """

    factor: float | None
    added: float | None
    result: str
    sentence: str
    soft: float | None = None


def harm_cap(setting: Setting, *, sinh: bool = False) -> HarmCap:
    """Most that this layer's step can cost, whatever the data (results B1, B2, C4, A6).

    ``sinh`` says that a quantile is served with the sinh link, which has no cap. With disjoint groups each
    row has one active parameter, so the size of a row is that of the setting (1).

    >>> harm_cap(Setting(task="mean", eta=0.0099)).sentence
    'this step can raise the squared error by at most 1 %, whatever the data'
    """
    if setting.penalty is not None:
        return _none("no harm cap is proven with a penalty")
    if not setting.constant:
        return _none("no harm cap is proven for a step that changes")
    if setting.task not in ("mean", "quantile", "probability_logit", "elo"):
        return _none("no harm cap is proven for this link")
    if setting.structure == "isotonic" or sinh:
        return _none("no harm cap is proven for the sinh link or for several levels")
    step = setting.largest_step
    if setting.has_late_labels:
        return _late(setting, step)
    if setting.task == "mean":
        return _factor(squared_harm_factor(step, setting.row_size), "B1", "the squared error")
    if setting.task == "quantile":
        return _added(pinball_harm(step, setting.level, setting.row_size), "B2", "the mean pinball loss")
    size = setting.row_size
    if setting.task == "elo":
        return _factor(log_loss_harm_factor(step, size), "B2", "the log loss of 0/1 labels")
    soft = _clipped(setting, 0.5 * step * size, "C4")
    # Labels known to be 0 or 1 only cannot be told from a range; the default range is taken as hard.
    if setting.label_low != 0.0 or setting.label_high != 1.0:
        return soft
    found = _factor(log_loss_harm_factor(step, size), "C4", "the log loss of 0/1 labels")
    return found if found.factor is None else _of_hard_labels(found.factor, setting.clip, soft)


def _of_hard_labels(factor: float, clip: float | None, soft: HarmCap) -> HarmCap:
    """The cap of 0/1 labels: results B2 and C4 are against the clipped prediction, this is against the raw one.

    The log loss of the clipped prediction exceeds that of the raw one by at most -log(1 - clip). A clip below that
    of the judge instead hides some of the loss of the base: at most log(clip) / log(1e-6) times what is shown.
    """
    cost = clip_cost(clip)
    if clip is not None and clip < JUDGED:
        factor, cost = factor * math.log(clip) / math.log(JUDGED), JUDGED
    percent, added = at_least(100.0 * (factor - 1.0)), factor * cost
    plus = f" plus {at_least(added)}, the cost of clipping to [{clip:g}, 1 - {clip:g}]" if clip else ""
    other = "" if soft.added is None else f" (labels between 0 and 1: {at_least(soft.added)})"
    most = f"{percent} %{plus}{other}, whatever the data"
    sentence = f"this step can raise the log loss of 0/1 labels by at most {most}"
    return HarmCap(factor, added if clip else None, "C4", sentence, soft.added)


def _clipped(setting: Setting, added: float, result: str) -> HarmCap:
    """A cap on the mean log loss against the prediction as it came, for any labels."""
    if setting.clip is not None and setting.clip < JUDGED:
        return _none(f"no harm cap is proven for a clip below {JUDGED:g}")
    return _added(added + clip_cost(setting.clip), result, "the mean log loss")


def clip_cost(clip: float | None) -> float:
    """Most that clipping to [clip, 1 - clip] can add to a log loss: -log(1 - clip).

    >>> round(clip_cost(0.1), 4)
    0.1054
    """
    return -math.log1p(-clip) if clip else 0.0


def _late(setting: Setting, step: float) -> HarmCap:
    """A6 for one constant step: a row meets at most D - 1 open ones in each of its groups, and as many meet it."""
    if setting.weight_max != 1.0:
        return _none("no harm cap is proven for late labels with weights")
    if setting.home:
        return _none("no harm cap is proven for late scores with a home advantage")
    if setting.task == "mean":
        factor = late_squared_harm_factor(step, setting.latest - 1, setting.row_size)
        return _factor(factor, "A6", "the squared error")
    quantile = setting.task == "quantile"
    error = max(setting.level, 1.0 - setting.level) if quantile else 1.0
    added = late_convex_harm(step, error * math.sqrt(setting.row_size), setting.latest)
    if setting.task == "probability_logit":
        return _clipped(setting, added, "A6")
    return _added(added, "A6", "the mean pinball loss" if quantile else "the mean log loss")


def _factor(factor: float, result: str, loss: str) -> HarmCap:
    if not math.isfinite(factor):
        return _none("this step is too large for any harm cap")
    percent = at_least(100.0 * (factor - 1.0))
    sentence = f"this step can raise {loss} by at most {percent} %, whatever the data"
    return HarmCap(factor, None, result, sentence)


def _added(added: float, result: str, loss: str) -> HarmCap:
    sentence = f"this step can raise {loss} by at most {at_least(added)}, whatever the data"
    return HarmCap(None, added, result, sentence)


def at_least(value: float) -> str:
    """A bound in three digits, rounded up: what is printed must hold too (rounding of the last bits apart).

    >>> at_least(1.0101), at_least(5.0000000000001), at_least(0.0)
    ('1.02', '5', '0')
    """
    if value <= 0.0:
        return f"{value:g}"
    unit = 10.0 ** (math.floor(math.log10(value)) - 2)
    return f"{math.ceil(value / unit * (1.0 - 1e-12)) * unit:.3g}"


def _none(reason: str) -> HarmCap:
    return HarmCap(None, None, "no theorem fits", reason)
