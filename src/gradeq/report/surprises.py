"""Warnings about single values: so large that rounding hides the rest."""

from collections.abc import Sequence

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
