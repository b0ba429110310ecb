"""What a run did not reach: coverage that is clearly off its target, a bias of which much is left."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gradeq.report.numerals import decimals, number, percent, points, target
from gradeq.report.story import Coverage, Loss, Notice, Pair

CLEAR = 4.0  # standard errors: more is not chance, even where labels depend on each other somewhat
NOTABLE = 0.03  # of all labels: less is no miss to speak of
LEFT = 0.2  # of the bias before, and
FELT = 0.1  # of the typical error: less is none to speak of


def off_target(coverage: Sequence[Coverage], labels: int) -> Coverage | None:
    """The coverage farthest from its target, if that is clearly more than chance and notable."""
    farthest = max(coverage, key=lambda c: abs(c.after - c.target), default=None)
    if farthest is None or not labels:
        return None
    aim = farthest.target
    least = max(NOTABLE, CLEAR * math.sqrt(aim * (1.0 - aim) / labels))
    return farthest if abs(farthest.after - aim) > least else None


def bias_left(bias: Pair, loss: Loss, labels: int) -> bool:
    """Whether much of a bias is left, more than chance explains, and enough to be felt beside single errors."""
    left, typical = abs(bias.after), math.sqrt(max(loss.after, 0.0))
    if not labels or not abs(bias.before) > left > LEFT * abs(bias.before):
        return False
    return left > max(FELT, CLEAR / math.sqrt(labels)) * typical


def coverage_missed(coverage: Coverage, why: str, remedy: str) -> Notice:
    """What was served does not cover what was asked for."""
    off = coverage.after - coverage.target
    level = "" if coverage.name == "interval" else f" at level {coverage.name}"
    side = "below" if off < 0 else "above"
    covers = f"What was served covers {percent(coverage.after)} of labels, the target is {target(coverage.target)}."
    return Notice(
        "amber",
        f"Coverage{level} is {points(abs(off), False)} points {side} its target.",
        f"{covers} {why}".strip(),
        remedy,
    )


def bias_remains(bias: Pair, why: str, remedy: str) -> Notice:
    """Much of the bias is still there."""
    places = decimals(bias.before, bias.after)
    was, now = (number(abs(value), places) for value in (bias.before, bias.after))
    share = percent(abs(bias.after / bias.before), 0)
    return Notice(
        "amber",
        f"{share} of the bias is left: {now} of {was}.",
        why,
        remedy,
    )
