"""Groups by month: one cell for each group and period, before and after on one colour scale."""

from gradeq.report.markup import Markup, clean, el, join, tidy
from gradeq.report.numerals import count, decimals, number, points
from gradeq.report.parts import section, still, table
from gradeq.report.story import HeatMap, Story, Values
from gradeq.report.ticks import finite

_WIDTH, _LEFT, _ROW = 494.0, 116.0, 24.0


def build(story: Story) -> Markup:
    """The section; empty where rows have no dates or no groups."""
    given = story.heat
    if given is None or not given.rows:
        return join()
    covers = story.kind == "quantile"
    sizes = sorted(abs(v) for row in given.rows for v in finite(row.before, row.after))
    if not sizes:
        return join()
    # Full colour is reached by one cell in twenty, so that a few extremes do not bleach the rest.
    reach = sizes[int(0.95 * (len(sizes) - 1))] or 1.0
    places = decimals(reach, 0.0)

    def said(value: float | None) -> str:
        if value is None:
            return "–"
        return points(value) if covers else number(value, places, sign=True)

    what = "coverage − target, points" if covers else "served − label"
    full = f"{said(reach)}{' points' if covers else ''}".replace("+", "±")
    intro = f"Blue is too low, orange too high; full colour from {full} on. Blank: fewer than 10 labels."
    if story.levels:
        intro += f" Coverage at level {story.levels[0].name}."
    panels = [
        still(title, what, _map(given, [getattr(row, when) for row in given.rows], reach, said))
        for title, when in (("Before", "before"), ("After", "after"))
    ]
    rows = [
        [row.name, period, count(n), said(before), said(after)]
        for row in given.rows
        for period, n, before, after in zip(
            given.periods, row.rows, row.before, row.after, strict=True
        )
        if n
    ]
    heads = ("Group", "Period", "Labels", "Before", "After")
    return section(
        "Groups over time",
        intro,
        el("div", *panels, class_="pair tight"),
        table("Show as a table", heads, rows),
    )


def _map(given: HeatMap, values: list[Values], reach: float, said: object) -> Markup:
    assert callable(said)
    width = (_WIDTH - _LEFT) / len(given.periods)
    parts = []
    for i, (row, errors) in enumerate(zip(given.rows, values, strict=True)):
        y = i * _ROW
        label = clean(row.name, 17)
        parts.append(el("text", label, x=_LEFT - 8, y=y + 16, text_anchor="end", class_="mark"))
        for j, error in enumerate(errors):
            if error is None:
                continue
            strength = 0.06 + 0.94 * min(abs(error) / reach, 1.0)
            words = f"{clean(row.name, 30)}, {given.periods[j]}: {said(error)}, {count(row.rows[j])} labels"
            parts.append(
                el(
                    "rect",
                    x=_LEFT + j * width,
                    y=y + 1,
                    width=max(width - 1.0, 0.8),
                    height=_ROW - 2,
                    fill_opacity=round(strength, 2),
                    class_="high" if error > 0 else "low",
                    data_read=words,
                )
            )
    height = len(given.rows) * _ROW
    every = -(-len(given.periods) // 5)
    for j in range(0, len(given.periods), every):
        x = _LEFT + j * width
        parts.append(el("text", tidy(given.periods[j]), x=x, y=height + 15))
    return el(
        "svg",
        join(*parts),
        viewBox=f"0 0 {_WIDTH:.0f} {height + 20:.0f}",
        width=_WIDTH,
        height=height + 20,
        class_="plotsvg",
        aria_hidden="true",
    )
