"""Warnings about single values: far outside all others, or so large that rounding hides the rest."""

from collections.abc import Sequence
from typing import NamedTuple

from gradeq.report.markup import clean
from gradeq.report.numerals import plain, some
from gradeq.report.story import Notice
from gradeq.rounding import HIDDEN


def not_known(figures: Sequence[str]) -> Notice | None:
    """Figures that rounding has destroyed; None if all are well."""
    if not figures:
        return None
    named = " and ".join(figures)
    return Notice(
        "amber",
        f"{named[0].upper()}{named[1:]} since the state began: not known.",
        f"The sums cannot be read: {HIDDEN}.",
        "Go back to the state saved before that label; `--min` and `--max` refuse such values.",
    )


def far_value(noun: str, many: int, value: float, where: str) -> Notice:
    """Predictions or labels far outside everything seen before; ``value`` is the largest."""
    lie = f"{some(many, noun)} {'lies' if many == 1 else 'lie'}"
    return Notice(
        "amber",
        f"{lie} far outside everything seen before: {clean(where, 80)} has {value:.6g}.",
        "It is over 100,000 times as large as 99 % of the values; what is served from now on may be far off.",
        "If it is wrong, go back to the state saved before this run; "
        "`--min` and `--max`, given from the first day, refuse such values.",
    )


class Cause(NamedTuple):
    """What the data show of why something happened, a sentence, and what helps."""

    why: str
    remedy: str


FAR_LABEL = Cause(
    "A label that far from its prediction was learned from; it may move what is served even after it was corrected.",
    "Go back to the state saved before that label, or start a new one.",
)
FAR_PREDICTION = Cause(
    "A prediction far outside all others was learned from.",
    "Go back to the state saved before that prediction, or start a new one.",
)
LATE_UNCAPPED = Cause(
    "Labels came late and steps were not capped, so corrections overshoot.",
    "Start a new state without `--no-cap`.",
)
ABSOLUTE_WEIGHTS = Cause(
    "Weights far above 1 multiplied the step when the state was made; they are relative to their mean by now.",
    "Start a new state from the files.",
)
UNKNOWN = Cause(
    "No label or prediction seen here lies that far out: the rows do not show what moved it.",
    "Go back to a state that served usual values, or start a new one.",
)


def large_step(eta: float) -> Cause:
    """The step itself is out of proportion."""
    return Cause(
        f"The step is {plain(eta)}, which moves the correction as far at a single label.",
        "Start a new state with a smaller `--eta`.",
    )


def large_features(largest: float) -> Cause:
    """A feature multiplies what was learned."""
    return Cause(
        f"Features reach {plain(float(f'{largest:.2g}'))}, and multiply the correction.",
        "Scale features to about 1, and start a new state.",
    )


def served_astray(many: int, value: float, where: str, cause: Cause = UNKNOWN) -> Notice:
    """Served values out of all proportion to the forecasts and labels; ``value`` is the largest."""
    return Notice(
        "red",
        f"{some(many, 'served value')} {'is' if many == 1 else 'are'} out of all proportion: "
        f"{clean(where, 80)} was served {value:.6g}.",
        f"{'It is' if many == 1 else 'Each is'} over 1,000 times as large as its prediction and as all usual "
        f"predictions and labels. {cause.why}",
        f"Do not use these values. {cause.remedy}",
    )


def means_remember(many: int, id: str, old: float, new: float) -> Notice:
    """Labels that were far off were corrected under the automatic step."""
    labels = "A label" if many == 1 else f"{some(many, 'label')}"
    return Notice(
        "amber",
        f"{labels} that {'was' if many == 1 else 'were'} far off {'was' if many == 1 else 'were'} corrected: "
        f"id {clean(id, 80)!r} from {old:.6g} to {new:.6g}.",
        "Bias, loss, certificate and the final step are corrected exactly, rounding apart. "
        "The running means of the automatic step heard the old label too, and forget it only as they forget "
        "everything, over 10 to 30,000 labels.",
        "If what is served is off, go back to the state saved before that label and bring the right one; "
        "with `--eta plain` a correction undoes all that a label taught.",
    )
