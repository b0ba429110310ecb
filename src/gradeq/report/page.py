"""A story as one self-contained HTML file: the sections of a debias or quantile report in reading order."""

import base64
import hashlib
import json
from dataclasses import replace
from functools import cache
from importlib.resources import files

from gradeq.report import charts, elo_page, method
from gradeq.report.charts import ChartSheet, Line, LineChart, NumberFormat, axis_scale, coloured, finite
from gradeq.report.components import (
    BRAND,
    Markup,
    arrow,
    certificate_figure,
    chart_box,
    clean,
    command_section,
    el,
    figure,
    join,
    lede,
    loss_figure,
    notices,
    pair,
    prose,
    section,
    series_table,
    table,
)
from gradeq.report.group_tables import group_section, heat_map_section, level_section, series_section
from gradeq.report.numerals import count, decimals, edge, moment, number, percent, plain, points, target, word
from gradeq.report.sentences import (
    SHADOWED,
    coverage_inside_limits,
    farthest,
    headline,
    improved,
    qualification,
    subject,
)
from gradeq.report.story import EloStory, Histogram, NamedCurve, Reliability, Rolling, Story, ThetaPanel
from gradeq.tables import some

LARGEST = 300_000
"""A page is smaller than this many bytes, whatever the input."""

PERCENT = NumberFormat(100.0, 1, False, "\u00a0%")


def html(story: Story | EloStory) -> str:
    """The page of a story; tables are cut to fewer rows until it is small enough."""
    made, kind = story.made, f"{'elo' if isinstance(story, EloStory) else story.kind} report".capitalize()
    script, style = bundle("js", resource("report.js")), bundle("css")
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (script, style)]
    policy = (
        f"default-src 'none'; script-src 'sha256-{digests[0]}'; style-src 'sha256-{digests[1]}'; "
        "base-uri 'none'; form-action 'none'"
    )
    source = clean(made.source, 80)
    header = el(
        "header",
        BRAND,
        el("span", kind),
        el("bdi", source, class_="source"),
        el("span", moment(made.at), class_="made"),
        el("button", "Light / dark", type="button", id="theme"),
        el("button", "Print", type="button", id="print"),
    )
    promise = "This page is one file and loads nothing from outside."
    footer = el("footer", el("div", el("span", f"gradeq {clean(made.version)}"), el("span", promise)))
    top = (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark"><meta name="referrer" content="no-referrer">'
        f"{el('title', f'{kind}: {source}')}<style>{style}</style></head>\n"
        f"<body>{el('div', header, class_='bar')}"
    )
    text = ""
    for most in (200, 60, 30, 12, 5):
        sheet = ChartSheet()
        if isinstance(story, EloStory):
            main = el("main", elo_page.elo_sections(story, sheet, most))
        else:
            main = el("main", run_sections(story, sheet, most))
        # No character of the data can end or open a tag.
        data = json.dumps({"x": sheet.x, "charts": sheet.charts}, separators=(",", ":"))
        data = data.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
        data = f'<script type="application/json" id="data">{data}</script>'
        text = f"{top}{main}{footer}{data}<script>{script}</script></body></html>\n"
        if len(text.encode()) < LARGEST:
            break
    return text


@cache
def bundle(kind: str, last: str = "") -> str:
    """What a page runs ("js": uPlot, our charts) or how it looks ("css"), with the page's text ``last``."""
    if kind == "css":
        return "\n".join((resource("vendor/uPlot.min.css"), resource("report.css"), last))
    # The licence of uPlot goes with it in full, in place of its one-line banner.
    plot = resource("vendor/uPlot.iife.min.js")
    plot = plot[plot.index("*/") + 2 :] if plot.startswith("/*") else plot
    licence = f"/* uPlot\n{resource('vendor/uPlot.LICENSE')}*/"
    return "\n".join((licence + plot, resource("charts.js"), last))


@cache
def resource(path: str, package: str = "gradeq.report") -> str:
    return files(package).joinpath(path).read_text(encoding="utf-8").replace("\r\n", "\n")


def run_sections(story: Story, sheet: ChartSheet, most: int) -> Markup:
    more, names = len(story.prediction) - 4, (*story.by, *story.features)
    about: list[str] = []
    for i, column in enumerate(story.prediction[:4]):
        about += [", " if i else "", el("code", clean(column))]
    about += [f" and {count(more)} more"] if more > 0 else []
    about += [" against ", el("code", clean(story.label))] if story.labelled else []
    for i, column in enumerate(names):
        first = ", debiased by " if story.kind == "debias" else ", corrected by "
        about += [first if i == 0 else " and " if i == len(names) - 1 else ", ", el("code", clean(column))]
    about += [", one layer for each ", el("code", clean(story.key))] if story.key else []
    rolling, heat, series, reliability, data = (
        story.rolling, story.heat, story.series, story.reliability, story.histogram
    )  # fmt: skip
    panels = [panel for panel in story.theta[:4] if len(panel.x) > 1 and panel.lines]
    none = join()
    parts = [
        lede(about, headline(story), qualification(story), _figures(story)),
        notices(story.notices),
        time_section(story, rolling, sheet) if rolling is not None and len(rolling.x) > 1 else none,
        group_section(story, most) if story.groups else none,
        heat_map_section(story, heat) if heat is not None else none,
        series_section(story, series) if series is not None and series.worst else none,
        level_section(story) if story.levels else none,
        pair(
            _step_section(story) if len(story.frontier) > 1 else none,
            parameter_section(story, panels, sheet) if panels else none,
        ),
    ]
    histogram = _histogram(story, data) if data is not None and data.counts and len(data.edges) > 1 else none
    facts = none
    if story.data:
        rows = ((el("dt", prose(fact.term, 40)), el("dd", prose(fact.text, 300))) for fact in story.data[:20])
        facts = section("Data", "", el("dl", *(part for row in rows for part in row)))
    if reliability is not None and reliability.after:
        parts.append(pair(reliability_section(reliability), join(histogram, facts)))
    else:
        parts.append(pair(histogram, facts))
    return join(*parts, command_section(story.made), method.method_section(story))


def _figures(story: Story) -> list[Markup]:
    verdict, unit, width, worst = story.verdict, story.unit, story.width, story.verdict.worst
    figures, would = [], SHADOWED if verdict.shadow else ""
    if not story.labelled:  # nothing was measured in this file
        gloss = f"{some(story.rows, 'row')} served; labels come later"
        return [figure("Labelled rows", el("span", "0"), gloss)]
    if verdict.bias is not None:
        value = arrow(verdict.bias.before, verdict.bias.after, unit, sign=True)
        gloss = f"{'weighted ' if story.weight else ''}mean of served − label{would}"
        figures.append(figure("Bias, all labels", value, gloss))
    elif verdict.coverage:
        inside = coverage_inside_limits(verdict.coverage)
        covered, served = inside or verdict.coverage, (", as served" if inside else "") + would
        if len(covered) == 1:
            level = covered[0]
            gloss = f"target {target(level.target)}, {some(story.labelled, 'label')}{served}"
            gloss += ", by weight" if story.weight else ""
            figures.append(figure("Coverage", arrow(percent(level.before), percent(level.after)), gloss))
        else:
            value = arrow(points(farthest(covered, "before")), points(farthest(covered, "after")), "points")
            figures.append(figure("Farthest from its level", value, f"{count(len(covered))} levels{served}"))
    figures.append(loss_figure(verdict.loss, verdict.shadow))
    if width is not None:
        figures.append(figure("Mean width", arrow(width.before, width.after, unit), "upper − lower end"))
    if worst is not None and (story.groups_total or story.groups):
        value = arrow(worst.before, worst.after, unit, sign=True)
        term = "Worst group bias"
        if story.kind == "quantile":
            value = arrow(points(worst.before), points(worst.after), "points")
            term = "Worst group coverage, off by"
        gloss = clean(worst.group_after, 32)
        if worst.group_before != worst.group_after:
            gloss = f"{clean(worst.group_before, 32)} before, {gloss} after"
        gloss += f", at level {story.levels[0].name}" if story.levels else ""
        figures.append(figure(term, value, gloss))
    elif width is None:
        skipped = story.rows - story.labelled
        gloss = "all labelled" if not skipped else f"{count(skipped)} more without a label"
        gloss += " or weight" if story.weight and skipped else ""
        figures.append(figure("Labelled rows", el("span", count(story.labelled)), gloss))
    if verdict.nothing:
        return [*figures, figure("Certificate", el("span", "–"), "no label learned from: nothing to certify")]
    return [*figures, certificate_figure(verdict.certificate, improved(story))]


def time_section(story: Story, rolling: Rolling, sheet: ChartSheet) -> Markup:
    axis, unit = (rolling.axis, rolling.axis_name, "row"), clean(story.unit, 20)
    binary = story.outcome == "binary"
    who = subject(story.prediction).removeprefix("the ")
    means: list[Line] = [
        (f"{who} (before)", "before", rolling.before),
        ("", "before", rolling.before_upper),
        ("label rate" if binary else "label", "truth", rolling.labels),
        ("served (after)", "after", rolling.after),
        ("", "after", rolling.after_upper),
    ]
    lines = [line for line in means if line[2]]
    limits = (0.0, 1.0) if binary else None
    y = axis_scale(finite(*(line[2] for line in lines)), 4, "percent" if binary else "number", (), 0.05, limits)
    how = PERCENT if binary else NumberFormat(1.0, decimals(y.low, y.high, 0.0))
    title = "Mean prediction and label rate" if binary else "Mean prediction and label"
    mean = LineChart(
        "mean", title, axis, rolling.x, lines, y, how, span=rolling.span, show_x=False,
        sync="time", begin=rolling.begin, height=230,
    )  # fmt: skip
    parts = [sheet.add(mean, f"in {unit}" if unit else ""), _error_chart(story, rolling, sheet)]
    if rolling.width_after:
        lines = [("before", "before", rolling.width_before), ("after", "after", rolling.width_after)]
        y = axis_scale(finite(rolling.width_before, rolling.width_after), 4, "number", (0.0,), 0.05)
        how = NumberFormat(1.0, decimals(y.low, y.high, 0.0))
        width = LineChart(
            "width", "Width", axis, rolling.x, lines, y, how, sync="time", begin=rolling.begin, height=160
        )
        parts.append(sheet.add(width, f"upper − lower end{f', {unit}' if unit else ''}"))
    order = "in file order" if rolling.axis == "row" else f"by `{rolling.axis_name}`"
    return section(
        "Over time",
        f"Means over the last {count(rolling.window)} labelled rows, {order}.",
        *parts,
        series_table("Show these numbers as a table", ("mean", "error", "width")),
    )


def _error_chart(story: Story, rolling: Rolling, sheet: ChartSheet) -> Markup:
    tracked, covers = rolling.tracked[:3], story.kind == "quantile"
    lines = coloured([NamedCurve(t.name, t.after) for t in tracked])
    if len(tracked) == 1:
        lines = [("before", "before", tracked[0].before), ("after", "after", tracked[0].after)]
    targets = [t.target for t in tracked]
    limits = (0.0, 1.0) if covers else None
    values = finite(*(line[2] for line in lines))
    y = axis_scale(values, 5, "percent" if covers else "sign", targets, 0.05, limits)
    how = PERCENT if covers else NumberFormat(1.0, decimals(y.low, y.high, 0.0), True)
    sub = f"served − label{f', {clean(story.unit, 20)}' if story.unit else ''}"
    if covers:
        sub = f"{'after; ' if len(tracked) > 1 else ''}target {', '.join(target(value) for value in targets)}"
    span = None if rolling.span is None else replace(rolling.span, text="")
    error = LineChart(
        "error", "Coverage" if covers else "Bias", (rolling.axis, rolling.axis_name, "row"), rolling.x, lines, y,
        how, marks=targets, span=span, sync="time", begin=rolling.begin, height=200,
    )  # fmt: skip
    return sheet.add(error, sub)


def parameter_section(story: Story, panels: list[ThetaPanel], sheet: ChartSheet) -> Markup:
    y = axis_scale(finite(*(line.values for panel in panels for line in panel.lines)), 4, "sign", (0.0,))
    how = NumberFormat(1.0, max(decimals(y.low, y.high, 0.0), 2), True)
    auto, rolling, steps = story.method.auto, story.rolling, story.steps
    begin, axis_name, span = (
        (None, "row", None) if rolling is None else (rolling.begin, rolling.axis_name, rolling.span)
    )
    span = None if span is None else replace(span, text="")
    parts = []
    for i, panel in enumerate(panels):
        theta = LineChart(
            f"theta{i}", f"{'correction' if auto else 'θ'} {clean(panel.by)}", (panel.axis, axis_name, "row"),
            panel.x, coloured(panel.lines), y, how, marks=(0.0,), span=span, show_x=i == len(panels) - 1,
            sync="theta", begin=begin, height=150 if len(panels) > 1 else 250, left=44,
        )  # fmt: skip
        title = "Correction as served" if auto else "Correction θ"
        parts.append(sheet.add(theta, f"by {panel.by}" if panel.by else "", title))
    if steps is not None:
        values = steps.lines[0].values
        ordered = sorted(finite(values))
        # The first steps may be far larger than all later ones: the axis is for the later ones.
        reach = min(ordered[-1], 3.0 * ordered[len(ordered) // 2])
        y, how = axis_scale([0.0, reach], 4, "number", (), 0.05), NumberFormat(1.0, decimals(*finite(values)) + 1)
        step = LineChart(
            "step", "Step", (steps.axis, axis_name, "row"), steps.x, [("", "after", values)], y, how,
            sync="theta", height=120, left=60, begin=begin,
        )  # fmt: skip
        cut = f"; begins at {plain(float(f'{ordered[-1]:.3g}'))}" if ordered[-1] > reach else ""
        sub = f"{'smallest over groups' if story.by else 'over all rows'}{cut}"
        parts.append(sheet.add(step, sub, "Step in force"))
    intro = "Served less prediction, the mean of recent labelled rows: one" if auto else "One"
    intro += f" correction{' per group' if story.by else ''}{f', {story.theta_scale}' if story.theta_scale else ''}"
    if len(story.by) > 1 and not auto:
        intro += f"; a row gets the sum of its {word(len(story.by)).lower()}"
    more = len(panels[0].lines) > 8 or len(story.groups) > sum(len(p.lines) for p in panels)
    intro += ". The groups with most rows are drawn." if more else "."
    ids = (*(f"theta{i}" for i in range(len(panels))), *(["step"] if steps is not None else []))
    return section("What the layer learned", intro, *parts, series_table("Show as a table", ids))


def reliability_section(reliability: Reliability) -> Markup:
    scores = []
    for name, (before, after) in (
        ("Brier score (mean squared error)", reliability.brier),
        ("log loss", reliability.log),
    ):
        places = decimals(before, after)
        scores.append(f"{name} {number(before, places)} → {number(after, places)}")
    intro = (
        f"{'; '.join(scores)}. Grey is before, blue after; bins of 5 points, area is the number of rows, bars are "
        "95 % intervals."
    )
    head = ("Actual frequency", "of a label 1; dotted: as predicted")
    return charts.calibration_section(
        intro, head, "predicted probability →", "rows", reliability.after, reliability.before
    )


def _step_section(story: Story) -> Markup:
    sweep, loss = story.frontier, story.verdict.loss.name
    best = min(sweep, key=lambda point: point.loss)
    larger = any(point.step > best.step for point in sweep)
    intro = "In hindsight, on these same rows: not a forecast. Lower left is better"
    intro += f"; past η = {plain(best.step)} larger steps cost accuracy." if larger and best.step else "."
    places, error_places = (
        decimals(*values, 0.0) for values in zip(*((point.loss, point.worst) for point in sweep), strict=True)
    )
    covers = story.kind == "quantile"
    error = f"{'group ' if story.groups else ''}{'miscoverage' if covers else '|bias|'}"
    words = charts.SweepWords("η", error, loss, places, None if covers else error_places)
    return charts.sweep_section("Step size", intro, sweep, words, f"{loss} →")


def _histogram(story: Story, data: Histogram) -> Markup:
    width = round(data.edges[1] - data.edges[0], 12)
    unit = f" {clean(story.unit, 20)}" if story.unit else ""
    return section(
        "Served values",
        f"{count(sum(data.counts))} adjusted values, in bins of {edge(width)}{unit}.",
        chart_box("", "", charts.histogram(data)),
        table("Show as a table", ("Served value", "Rows"), charts.bin_rows(data, edge)),
    )
