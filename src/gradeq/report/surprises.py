"""Warnings about single values: far outside all others, or so large that rounding hides the rest."""

from collections.abc import Sequence

from gradeq.report.markup import clean
from gradeq.report.numerals import some
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


def served_astray(many: int, value: float, where: str) -> Notice:
    """Served values out of all proportion to the forecasts and labels; ``value`` is the largest."""
    return Notice(
        "red",
        f"{some(many, 'served value')} {'is' if many == 1 else 'are'} out of all proportion: "
        f"{clean(where, 80)} was served {value:.6g}.",
        f"{'It is' if many == 1 else 'Each is'} over 1,000 times as large as its prediction and as all usual "
        "predictions and labels: something far off was learned from. A wrong label may move what is served even "
        "after it was corrected.",
        "Do not use these values. Go back to the state saved before the wrong label, or start a new one.",
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
