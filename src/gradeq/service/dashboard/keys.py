"""The table of keys of a layer at work: those farthest off first, and how many there are."""

from __future__ import annotations

from gradeq.report.markup import Markup, clean, el, join, tidy
from gradeq.report.numerals import count, decimals, number, points
from gradeq.report.of_keys import ENOUGH, YOUNG, having
from gradeq.report.parts import bound_means, section
from gradeq.report.story import EloStory, ManySeries
from gradeq.service.dashboard.groups import Table
from gradeq.service.dashboard.overview import Overview


def keys(view: Overview) -> Markup:
    """The section on keys; empty for other layers, and before two of them have labels."""
    story = view.story
    if isinstance(story, EloStory) or story.series is None or not story.series.worst:
        return join()
    many = story.series
    table = Table(many.worst, [None] * len(many.worst), [], story.verdict.loss.name)
    table.first = clean(story.key, 40)
    body = [table.row(one, None, None, False) for one in many.worst]
    made = el("table", table.head(), el("tbody", *body), class_="groups live", id="keys")
    feet = [YOUNG] if many.fewest < ENOUGH else []
    feet += [bound_means("error")] if table.bound else []
    foot = el("p", tidy(" ".join(feet)), class_="foot") if feet else join()
    return section("Keys", told(many, table.covers), el("div", made, class_="wide"), foot)


def told(many: ManySeries, covers: bool) -> str:
    """How many keys there are, how many are compared, and how far they are off."""
    rest = (
        "" if many.judged == many.total else f", {count(many.judged)} of them {having(many.fewest)}"
    )
    if covers:
        off = f"{points(many.mean, False)} points off on average"
    else:
        what = "relative bias" if many.relative else "bias"
        off = f"{what} {number(many.mean, decimals(many.mean))} in size on average"
    shown = f"the {count(len(many.worst))} farthest off" if len(many.worst) < many.total else "all"
    return f"{count(many.total)} keys{rest}, {off}; {shown}, the worst first."
