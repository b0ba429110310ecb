"""The calibration of probabilities: predicted against actual frequency, before and after, with scores."""

from collections.abc import Sequence

from gradeq.report import plots
from gradeq.report.markup import Markup, join
from gradeq.report.numerals import count, decimals, number, percent
from gradeq.report.parts import section, still, table
from gradeq.report.story import Bin, Story


def build(story: Story) -> Markup:
    """The section; empty for anything but probabilities."""
    given = story.reliability
    if given is None or not given.after:
        return join()
    scores = [("Brier score (mean squared error)", given.brier), ("log loss", given.log)]
    said = "; ".join(f"{name} {_arrow(*pair)}" for name, pair in scores)
    rows = [*_rows("before", given.before), *_rows("after", given.after)]
    drawing = plots.calibration(given.after, "predicted probability →", "rows", given.before)
    return section(
        "Calibration",
        f"{said}. Grey is before, blue after; bins of 5 points, area is the number of rows, bars are "
        "95 % intervals.",
        still("Actual frequency", "of a label 1; dotted: as predicted", drawing),
        table("Show as a table", ("", "Predicted", "Actual", "95 % interval", "Rows"), rows),
    )


def _arrow(before: float, after: float) -> str:
    places = decimals(before, after)
    return f"{number(before, places)} → {number(after, places)}"


def _rows(when: str, bins: Sequence[Bin]) -> list[list[str]]:
    return [
        [when, percent(b.predicted), percent(b.actual), f"{percent(b.low)} to {percent(b.high)}",
         count(b.games)]
        for b in bins
    ]  # fmt: skip
