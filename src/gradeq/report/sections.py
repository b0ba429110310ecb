"""The report of a debias or quantile run, section by section in reading order."""

from gradeq.report import heatmap, method, plots, reliability
from gradeq.report.grouptable import groups, levels
from gradeq.report.manyseries import series
from gradeq.report.markup import Markup, clean, el, join, prose
from gradeq.report.numerals import count, decimals, number, percent, plain, points, target, word
from gradeq.report.parts import (
    arrow,
    bound_text,
    certificate,
    chart,
    command,
    figure,
    notices,
    runs,
    section,
    series_table,
    still,
    table,
)
from gradeq.report.series import Sheet, coloured, panel_scale, step_name
from gradeq.report.story import Line, Pair, Rolling, Story, Values
from gradeq.report.ticks import How, finite, scale
from gradeq.report.words import as_used, headline, improved, loss_change, qualification, subject


def build(story: Story, sheet: Sheet, most: int) -> Markup:
    """The whole column; charts put their numbers on the sheet."""
    return join(
        _title(story),
        notices(story.notices),
        _over_time(story, sheet),
        groups(story, most),
        heatmap.build(story),
        series(story),
        levels(story.levels, story.verdict.loss.name, story.verdict.certificate.over),
        _pair(_frontier(story), _theta(story, sheet)),
        *_distribution(story),
        section("How it was computed", "", command(story.made)),
        method.build(story),
    )


def _pair(left: Markup, right: Markup) -> Markup:
    both = [part for part in (left, right) if part]
    return (
        el("div", *(el("div", part) for part in both), class_="pair")
        if len(both) == 2
        else join(*both)
    )


def _distribution(story: Story) -> list[Markup]:
    """Served values and data; probabilities have their calibration beside the histogram."""
    calibrated = reliability.build(story)
    if not calibrated:
        return [_pair(_histogram(story), _data(story))]
    return [_pair(calibrated, join(_histogram(story), _data(story)))]


def _title(story: Story) -> Markup:
    parts: list[str] = []
    for i, column in enumerate(story.prediction[:4]):
        parts += [", "] if i else []
        parts.append(el("code", clean(column)))
    more = len(story.prediction) - 4
    parts += [f" and {count(more)} more"] if more > 0 else []
    parts += [" against ", el("code", clean(story.label))] if story.labelled else []
    names = [el("code", clean(column)) for column in (*story.by, *story.features)]
    if names:
        parts.append(", debiased by " if story.kind == "debias" else ", corrected by ")
        for i, shown in enumerate(names):
            parts += [] if i == 0 else [" and " if i == len(names) - 1 else ", "]
            parts.append(shown)
    if story.key:
        parts += [", one layer for each ", el("code", clean(story.key))]
    return el(
        "div",
        el("p", *parts, class_="about"),
        el("h1", runs(headline(story))),
        el("p", runs(qualification(story)), class_="second"),
        el("div", *_figures(story), class_="figures"),
        class_="lede",
    )


def _figures(story: Story) -> list[Markup]:
    verdict, unit = story.verdict, story.unit
    made = []
    if not story.labelled:  # nothing was measured in this file
        gloss = f"{count(story.rows)} rows served; labels come later"
        return [figure("Labelled rows", el("span", "0"), gloss)]
    if verdict.bias is not None:
        places = decimals(verdict.bias.before, verdict.bias.after)
        made.append(figure("Bias, all labels", _signed(verdict.bias, places, unit),
                           f"{'weighted ' if story.weight else ''}mean of served − label"))  # fmt: skip
    used = as_used(verdict.coverage)
    covered, served = used or verdict.coverage, ", as served" if used else ""
    if len(covered) == 1:
        level = covered[0]
        gloss = f"target {target(level.target)}, {count(story.labelled)} labels{served}"
        gloss += ", by weight" if story.weight else ""
        made.append(figure("Coverage", arrow(percent(level.before), percent(level.after)), gloss))
    elif covered:
        was, now = (
            max((getattr(c, side) - c.target for c in covered), key=abs)
            for side in ("before", "after")
        )
        value = arrow(points(was), points(now), "points")
        made.append(figure("Farthest from its level", value,
                           f"{count(len(covered))} levels{served}"))  # fmt: skip
    made.append(_loss_figure(story))
    if story.width is not None:
        places = decimals(story.width.before, story.width.after)
        wide = arrow(number(story.width.before, places), number(story.width.after, places), unit)
        made.append(figure("Mean width", wide, "upper − lower end"))
    if verdict.worst is not None and (story.groups_total or story.groups):
        worst = verdict.worst
        pair = Pair(worst.before, worst.after)
        value = (
            arrow(points(worst.before), points(worst.after), "points")
            if story.kind == "quantile"
            else _signed(pair, decimals(worst.before, worst.after), unit)
        )
        same = worst.group_before == worst.group_after
        gloss = (
            clean(worst.group_after, 32)
            if same
            else f"{clean(worst.group_before, 32)} before, {clean(worst.group_after, 32)} after"
        )
        term = "Worst group coverage, off by" if story.kind == "quantile" else "Worst group bias"
        made.append(figure(term, value, gloss))
    elif story.width is None:
        skipped = story.rows - story.labelled
        gloss = "all labelled" if not skipped else f"{count(skipped)} more without a label"
        gloss += " or weight" if story.weight and skipped else ""
        made.append(figure("Labelled rows", el("span", count(story.labelled)), gloss))
    held = verdict.certificate
    beside = held.value if held.bound is None or held.vacuous else held.bound
    places = decimals(held.value, beside)
    limit = bound_text(held.bound, places)
    gloss = f"average gradient {held.over}".rstrip()
    gloss += " and its worst case" if held.bound is not None else ""
    if verdict.nothing:
        none = el("span", "–")
        return [*made, figure("Certificate", none, "no label learned from: nothing to certify")]
    made.append(certificate(held, number(held.value, places), limit, gloss, improved(story)))
    return made


def _loss_figure(story: Story) -> Markup:
    loss = story.verdict.loss
    places = decimals(loss.before, loss.after)
    change = loss_change(loss.before, loss.after)
    gloss = "did not change"
    if change != "same" and loss.before:
        share = percent(abs(loss.after / loss.before - 1.0), 0 if change == "fell" else 1)
        gloss = f"{share} {'lower' if change == 'fell' else 'higher'}"
    title = loss.name[:1].upper() + loss.name[1:]
    return figure(title, arrow(number(loss.before, places), number(loss.after, places)), gloss)


def _signed(pair: Pair, places: int, unit: str) -> Markup:
    return arrow(number(pair.before, places, True), number(pair.after, places, True), unit)


def _over_time(story: Story, sheet: Sheet) -> Markup:
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
        include=(0.0, 1.0) if binary else (),
        pad=0.02 if binary else 0.05,
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


def _frontier(story: Story) -> Markup:
    points_ = story.frontier
    if len(points_) < 2:
        return join()
    covers, loss = story.kind == "quantile", story.verdict.loss.name
    grouped = bool(story.groups)
    best = min(points_, key=lambda point: point.loss)
    larger = [point for point in points_ if point.step > best.step]
    intro = "In hindsight, on these same rows: not a forecast. Lower left is better"
    intro += (
        f"; past η = {plain(best.step)} larger steps cost accuracy."
        if larger and best.step
        else "."
    )
    places = decimals(*(point.loss for point in points_), 0.0)
    names = [step_name(point.step, "η", i == 0) for i, point in enumerate(points_)]

    def off(value: float) -> str:
        return f"{points(value, False)} points" if covers else number(value, worst_places)

    worst_places = decimals(*(point.worst for point in points_), 0.0)
    chosen = next((point for point in points_ if point.chosen), None)
    said = ("", "")
    if chosen is not None:
        lowest = "lowest " if chosen is best else ""
        what = "off by" if covers else "bias"
        said = (
            f"chosen: η = {plain(chosen.step)}",
            f"{what} {off(chosen.worst)}, {lowest}{loss.split()[-1]} {number(chosen.loss, places)}",
        )
    reads = [
        f"η = {plain(point.step)}: worst {'group ' if grouped else ''}"
        f"{'coverage off by' if covers else '|bias|'} {off(point.worst)}, "
        f"{loss} {number(point.loss, places)}"
        for point in points_
    ]
    drawing = plots.frontier(points_, names, said, f"{loss} →", reads, covers)
    title = f"Worst {'group ' if grouped else ''}{'miscoverage, points' if covers else '|bias|'}"
    rows = [
        [plain(p.step) + (" (chosen)" if p.chosen else ""), off(p.worst), number(p.loss, places)]
        for p in points_
    ]
    return section(
        "Step size",
        intro,
        still(title, "", drawing),
        table("Show as a table", ("η", title, loss[:1].upper() + loss[1:]), rows),
    )


def _theta(story: Story, sheet: Sheet) -> Markup:
    panels = [panel for panel in story.theta[:4] if len(panel.x) > 1 and panel.lines]
    if not panels:
        return join()
    y = panel_scale(panels)
    how = How(1.0, max(decimals(y.low, y.high, 0.0), 2), True)
    parts, ids = [], []
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
            id_, f"θ {clean(panel.by)}", (panel.axis, axis_name, "row"), panel.x,
            coloured(panel.lines), y, how, marks=(0.0,), span=quiet,
            show_x=i == len(panels) - 1, sync="theta", begin=begin,
            height=150 if len(panels) > 1 else 250, left=44,
        )  # fmt: skip
        parts.append(chart(id_, "Correction θ", f"by {panel.by}" if panel.by else ""))
    if story.steps is not None:
        ids.append("step")
        parts.append(_step(story, sheet))
    scale_words = f", {story.theta_scale}" if story.theta_scale else ""
    which = (
        "The final, certified step on top of the automatic mix: one" if story.method.auto else "One"
    )
    intro = f"{which} correction{' per group' if story.by else ''}{scale_words}"
    if len(story.by) > 1:
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


def _histogram(story: Story) -> Markup:
    data = story.histogram
    if data is None or not data.counts or len(data.edges) < 2:
        return join()
    width = round(data.edges[1] - data.edges[0], 12)
    unit = f" {clean(story.unit, 20)}" if story.unit else ""
    intro = f"{count(sum(data.counts))} adjusted values, in bins of {plain(width)}{unit}."
    rows = [
        [f"{plain(low)} to {plain(high)}", count(n)]
        for low, high, n in zip(data.edges[:-1], data.edges[1:], data.counts, strict=True)
    ]
    return section(
        "Served values",
        intro,
        still("", "", plots.histogram(data)),
        table("Show as a table", ("Served value", "Rows"), rows),
    )


def _data(story: Story) -> Markup:
    if not story.data:
        return join()
    facts = [
        part
        for fact in story.data[:20]
        for part in (el("dt", prose(fact.term, 40)), el("dd", prose(fact.text, 300)))
    ]
    return section("Data", "", el("dl", *facts))
