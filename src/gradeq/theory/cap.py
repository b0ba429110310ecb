"""The harm cap of a layer in one sentence, or why there is none."""

from __future__ import annotations

import math
from typing import NamedTuple

from gradeq.theory.harm import (
    late_convex_harm,
    late_squared_harm_factor,
    log_loss_harm_factor,
    pinball_harm,
    squared_harm_factor,
)
from gradeq.theory.setting import Setting

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
    if setting.task in ("probability_shift", "glm", "poisson", "multiplicative"):
        return _none("no harm cap is proven for this link")
    if setting.structure == "isotonic" or sinh:
        return _none("no harm cap is proven for the sinh link or for several levels")
    step = setting.largest_step
    if setting.has_late_labels:
        return _late(setting, step)
    if setting.task == "mean":
        return _factor(squared_harm_factor(step, setting.row_size), "B1", "the squared error")
    if setting.task == "quantile":
        return _added(
            pinball_harm(step, setting.level, setting.row_size), "B2", "the mean pinball loss"
        )
    size = setting.row_size
    if setting.task == "elo":
        return _factor(log_loss_harm_factor(step, size), "B2", "the log loss of 0/1 labels")
    soft = _clipped(setting, 0.5 * step * size, "C4")
    if not _hard(setting):
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
    plus = (
        f" plus {at_least(added)}, the cost of clipping to [{clip:g}, 1 - {clip:g}]" if clip else ""
    )
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


def _hard(setting: Setting) -> bool:
    """Labels known to be 0 or 1 only cannot be told from a range; the default range is taken as hard."""
    return setting.label_low == 0.0 and setting.label_high == 1.0


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
