"""The charts over time: means, errors and widths of what was served, and what the layer learned."""

from gradeq.report.markup import Markup, clean, join
from gradeq.report.numerals import count, decimals, plain, target, word
from gradeq.report.parts import (
    chart,
    section,
    series_table,
)
from gradeq.report.series import Sheet, coloured, panel_scale
from gradeq.report.story import Line, Rolling, Story, Values
from gradeq.report.ticks import How, finite, scale
from gradeq.report.words import subject


def means(story: Story, sheet: Sheet) -> Markup:
    """Trailing means of predictions and labels, of errors, and of widths; empty without a series."""
    rolling = story.rolling
    if rolling is None or len(rolling.x) < 2:
        return join()
    axis = (rolling.axis, rolling.axis_name, "row")
    binary = story.outcome == "binary"
    who = subject(story.prediction).removeprefix("the ")
    means = [
        (f"{who} (before)", "before", rolling.before),
        ("", "before", rolling.before_upper),
        ("label rate" if binary else "label", "truth", rolling.labels),
        ("served (after)", "after", rolling.after),
        ("", "after", rolling.after_upper),
    ]
    drawn = [(label, role, values) for label, role, values in means if values]
    y = scale(
        finite(*(values for _, _, values in drawn)),
        most=4,
        how="percent" if binary else "number",
        pad=0.05,
        limits=(0.0, 1.0) if binary else None,
    )
    how = How(100.0, 1, False, "\u00a0%") if binary else How(1.0, decimals(y.low, y.high, 0.0))
    title = "Mean prediction and label rate" if binary else "Mean prediction and label"
    sheet.add(
        "mean", title, axis, rolling.x, drawn, y, how, span=rolling.span, show_x=False,
        sync="time", begin=rolling.begin, height=230,
    )  # fmt: skip
    second = _errors(story, rolling, sheet)
    order = {"row": "in file order", "date": f"by `{rolling.axis_name}`"}
    listed = order.get(rolling.axis, f"by `{rolling.axis_name}`")
    unit = "" if not story.unit else f", in {clean(story.unit, 20)}"
    return section(
        "Over time",
        f"Means over the last {count(rolling.window)} labelled rows, {listed}.",
        chart("mean", title, unit.removeprefix(", ")),
        second,
        _widths(story, rolling, sheet),
        series_table("Show these numbers as a table", ("mean", "error", "width")),
    )


def _errors(story: Story, rolling: Rolling, sheet: Sheet) -> Markup:
    tracked = rolling.tracked[:3]
    covers = story.kind == "quantile"
    if len(tracked) == 1:
        only = tracked[0]
        lines: list[tuple[str, str, Values]] = [
            ("before", "before", only.before),
            ("after", "after", only.after),
        ]
    else:
        lines = coloured([Line(t.name, t.after) for t in tracked])
    values = finite(*(values for _, _, values in lines))
    targets = [t.target for t in tracked]
    limits = (0.0, 1.0) if covers else None
    y = scale(values, 5, "percent" if covers else "sign", targets, 0.05, limits)
    places = decimals(y.low, y.high, 0.0)
    how = How(100.0, 1, False, "\u00a0%") if covers else How(1.0, places, True)
    title = "Coverage" if covers else "Bias"
    listed = ", ".join(target(value) for value in targets)
    sub = f"after; target {listed}" if covers and len(tracked) > 1 else "served − label"
    sub = f"target {listed}" if covers and len(tracked) == 1 else sub
    sub += f", {clean(story.unit, 20)}" if story.unit and not covers else ""
    span = rolling.span
    quiet = None if span is None else type(span)(span.start, span.end, "")
    sheet.add(
        "error", title, (rolling.axis, rolling.axis_name, "row"), rolling.x, lines, y, how, marks=targets,
        span=quiet, sync="time", begin=rolling.begin, height=200,
    )  # fmt: skip
    return chart("error", title, sub)


def _widths(story: Story, rolling: Rolling, sheet: Sheet) -> Markup:
    """Mean width of the interval, before and after."""
    if not rolling.width_after:
        return join()
    lines: list[tuple[str, str, Values]] = [
        ("before", "before", rolling.width_before),
        ("after", "after", rolling.width_after),
    ]
    y = scale(finite(*(values for _, _, values in lines)), 4, "number", (0.0,), 0.05)
    sheet.add(
        "width", "Width", (rolling.axis, rolling.axis_name, "row"), rolling.x, lines, y,
        How(1.0, decimals(y.low, y.high, 0.0)), sync="time", begin=rolling.begin, height=160,
    )  # fmt: skip
    return chart(
        "width", "Width", f"upper − lower end{f', {clean(story.unit, 20)}' if story.unit else ''}"
    )


def learned(story: Story, sheet: Sheet) -> Markup:
    """The parameters over time, and the step in force where it changed."""
    panels = [panel for panel in story.theta[:4] if len(panel.x) > 1 and panel.lines]
    if not panels:
        return join()
    y = panel_scale(panels)
    how = How(1.0, max(decimals(y.low, y.high, 0.0), 2), True)
    parts, ids = [], []
    symbol = "correction" if story.method.auto else "θ"
    quiet = None
    if story.rolling is not None and story.rolling.span is not None:
        span = story.rolling.span
        quiet = type(span)(span.start, span.end, "")
    for i, panel in enumerate(panels):
        id_ = f"theta{i}"
        ids.append(id_)
        begin = story.rolling.begin if story.rolling is not None else None
        axis_name = story.rolling.axis_name if story.rolling is not None else "row"
        sheet.add(
            id_, f"{symbol} {clean(panel.by)}", (panel.axis, axis_name, "row"), panel.x,
            coloured(panel.lines), y, how, marks=(0.0,), span=quiet,
            show_x=i == len(panels) - 1, sync="theta", begin=begin,
            height=150 if len(panels) > 1 else 250, left=44,
        )  # fmt: skip
        title = "Correction as served" if story.method.auto else "Correction θ"
        parts.append(chart(id_, title, f"by {panel.by}" if panel.by else ""))
    if story.steps is not None:
        ids.append("step")
        parts.append(_step(story, sheet))
    scale_words = f", {story.theta_scale}" if story.theta_scale else ""
    which = (
        "Served less prediction, the mean of recent labelled rows: one"
        if story.method.auto
        else "One"
    )
    intro = f"{which} correction{' per group' if story.by else ''}{scale_words}"
    if len(story.by) > 1 and not story.method.auto:
        intro += f"; a row gets the sum of its {word(len(story.by)).lower()}"
    more = len(panels[0].lines) > 8 or len(story.groups) > sum(len(p.lines) for p in panels)
    intro += ". The groups with most rows are drawn." if more else "."
    return section(
        "What the layer learned", intro, *parts, series_table("Show as a table", tuple(ids))
    )


def _step(story: Story, sheet: Sheet) -> Markup:
    """The step in force, where late labels or a schedule changed it."""
    assert story.steps is not None
    panel, rolling = story.steps, story.rolling
    values = panel.lines[0].values
    shown = sorted(finite(values))
    # The first steps may be far larger than all later ones: the axis is for the later ones.
    reach = min(shown[-1], 3.0 * shown[len(shown) // 2])
    y = scale([0.0, reach], 4, "number", (), 0.05)
    name = rolling.axis_name if rolling is not None else "row"
    sheet.add(
        "step", "Step", (panel.axis, name, "row"), panel.x, [("", "after", values)], y,
        How(1.0, decimals(*finite(values)) + 1), sync="theta", height=120, left=60,
        begin=rolling.begin if rolling is not None else None,
    )  # fmt: skip
    cut = f"; begins at {plain(float(f'{shown[-1]:.3g}'))}" if shown[-1] > reach else ""
    return chart(
        "step", "Step in force", f"{'smallest over groups' if story.by else 'over all rows'}{cut}"
    )
