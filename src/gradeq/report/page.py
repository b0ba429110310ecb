"""A story as one self-contained HTML file: the sections of a report in reading order."""

import base64
import hashlib
import json
import math
from dataclasses import replace
from functools import cache
from importlib.resources import files

from gradeq.certificates.figures import NO_GUARANTEE
from gradeq.leaderboard.ranks import WIDEST_RANKED
from gradeq.report import charts, group_tables, method, sentences
from gradeq.report.charts import ChartSheet, LineChart, NumberFormat, Scale, axis_scale, coloured, finite
from gradeq.report.components import (
    BRAND,
    TICK,
    Markup,
    arrow,
    bound_text,
    certificate_figure,
    chart_box,
    clean,
    command_section,
    el,
    figure,
    join,
    lede,
    loss_figure,
    name,
    notices,
    pair,
    prose,
    section,
    series_table,
    show_all,
    table,
    tidy,
)
from gradeq.report.numerals import count, decimals, edge, gap, moment, number, percent, plain, points, target, word
from gradeq.report.story import EloStory, Histogram, NamedCurve, Player, Reliability, Rolling, Story, ThetaPanel
from gradeq.tables import some

LARGEST = 300_000
"""A page is smaller than this many bytes, whatever the input."""

PERCENT = NumberFormat(100.0, 1, False, "\u00a0%")
NO_RANK = (
    f"No rank: fewer than {sentences.FEW} games, a current strength not known within {WIDEST_RANKED} Elo, or no "
    "chain of games to the largest group."
)


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
        column = elo_sections(story, sheet, most) if isinstance(story, EloStory) else run_sections(story, sheet, most)
        # No character of the data can end or open a tag.
        data = json.dumps({"x": sheet.x, "charts": sheet.charts}, separators=(",", ":"))
        data = data.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
        data = f'<script type="application/json" id="data">{data}</script>'
        text = f"{top}{el('main', column)}{footer}{data}<script>{script}</script></body></html>\n"
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
    rolling, heat, series = story.rolling, story.heat, story.series
    reliability, data = story.reliability, story.histogram
    panels = [panel for panel in story.theta[:4] if len(panel.x) > 1 and panel.lines]
    none = join()
    parts = [
        lede(about, sentences.headline(story), sentences.qualification(story), _figures(story)),
        notices(story.notices),
        time_section(story, rolling, sheet) if rolling is not None and len(rolling.x) > 1 else none,
        group_tables.group_section(story, most) if story.groups else none,
        group_tables.heat_map_section(story, heat) if heat is not None else none,
        group_tables.series_section(story, series) if series is not None and series.worst else none,
        group_tables.level_section(story) if story.levels else none,
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
    figures, would = [], sentences.SHADOWED if verdict.shadow else ""
    if not story.labelled:  # nothing was measured in this file
        gloss = f"{some(story.rows, 'row')} served; labels come later"
        return [figure("Labelled rows", el("span", "0"), gloss)]
    if verdict.bias is not None:
        value = arrow(verdict.bias.before, verdict.bias.after, unit, sign=True)
        gloss = f"{'weighted ' if story.weight else ''}mean of served − label{would}"
        figures.append(figure("Bias, all labels", value, gloss))
    elif verdict.coverage:
        inside = sentences.coverage_inside_limits(verdict.coverage)
        covered, served = inside or verdict.coverage, (", as served" if inside else "") + would
        if len(covered) == 1:
            level = covered[0]
            gloss = f"target {target(level.target)}, {some(story.labelled, 'label')}{served}"
            gloss += ", by weight" if story.weight else ""
            figures.append(figure("Coverage", arrow(percent(level.before), percent(level.after)), gloss))
        else:
            before, after = sentences.farthest(covered, "before"), sentences.farthest(covered, "after")
            value = arrow(points(before), points(after), "points")
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
        skipped = story.rows - story.labelled - story.open
        gloss = f"{count(story.open)} more wait for a label" if story.open else "" if skipped else "all labelled"
        gloss += f"{', ' if gloss else ''}{count(skipped)} more without a label" if skipped else ""
        gloss += " or weight" if story.weight and skipped else ""
        figures.append(figure("Labelled rows", el("span", count(story.labelled)), gloss))
    if verdict.nothing:
        return [*figures, figure("Certificate", el("span", "–"), "no label learned from: nothing to certify")]
    return [*figures, certificate_figure(verdict.certificate, sentences.improved(story))]


def time_section(story: Story, rolling: Rolling, sheet: ChartSheet) -> Markup:
    axis, unit = (rolling.axis, rolling.axis_name, "row"), clean(story.unit, 20)
    binary = story.outcome == "binary"
    who = sentences.subject(story.prediction).removeprefix("the ")
    means: list[charts.Line] = [
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
    for score, (before, after) in (
        ("Brier score (mean squared error)", reliability.brier),
        ("log loss", reliability.log),
    ):
        places = decimals(before, after)
        scores.append(f"{score} {number(before, places)} → {number(after, places)}")
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


# Elo


def elo_sections(story: EloStory, sheet: ChartSheet, most: int) -> Markup:
    left = _elo_calibration(story)
    right = join(_elo_step_section(story) if len(story.frontier) > 1 else "", command_section(story.made))
    since = ""
    if story.added is not None:
        since = f" since the state began, {count(story.added) if story.added else 'none'} in this run"
    games = f", {some(story.games, 'game')}{since}, {some(story.players, story.noun)}"
    about = [el("code", clean(story.a)), " against ", el("code", clean(story.b)), games]
    return join(
        lede(about, sentences.elo_headline(story), sentences.elo_qualification(story), elo_figures(story)),
        notices([notice for notice in story.notices if notice.level != "note"]),
        leaderboard(story, most),
        certificate_section(story),
        notices([notice for notice in story.notices if notice.level == "note"], "Good to know"),
        _curves(story, sheet),
        el("div", left, el("div", right), class_="pair") if left else right,
        method.elo_method_section(story),
    )


def elo_figures(story: EloStory) -> list[Markup]:
    figures, loss, home = [], story.loss, story.home
    if loss is not None:
        figures.append(figure("Log loss", arrow(loss.before, loss.after), "equal ratings, then Elo"))
    if home is not None:
        interval = f"95 % interval {number(home.low, 0)} to {number(home.high, 0)}"
        figures.append(figure("Home advantage", el("span", f"{number(home.elo, 0)} Elo"), interval))
    facts = []
    if story.added is not None:
        facts.append(f"since the state began; {count(story.added)} in this run")
    if story.ties:
        facts.append(f"{some(story.ties, 'tie')} ({'half a win' if story.ties_rule == 'half' else 'dropped'})")
    elif story.ties == 0 and story.games:
        facts.append("no ties")
    if story.skipped:
        facts.append(f"{some(story.skipped, 'game')} of a {story.noun} against itself skipped")
    return [*figures, figure("Games", el("span", count(story.games)), "; ".join(facts))]


def certificate_section(story: EloStory) -> Markup:
    """What holds for any sequence of games: bias, bound and certificate."""
    judged = [row for row in story.rows if row.games >= sentences.FEW]
    figures, intro = [], "Exact, whatever the games; Elo, intervals and ranks above are statistics."
    if judged:
        worst = max(judged, key=lambda row: abs(row.bias))
        intro = f"{sentences.forecasts_matched(abs(worst.bias), len(judged), story.noun)} {intro}"
        term = f"Worst bias, {some(len(judged), story.noun)} with {sentences.FEW} games or more"
        value = el("span", f"{points(worst.bias)} points", class_="after")
        figures.append(figure(term, value, f"{clean(worst.player, 40)}, {some(worst.games, 'game')}"))
        if worst.bound is not None:
            bound = NO_GUARANTEE if worst.vacuous else f"{bound_text(100.0 * worst.bound, 1)} points"
            gloss = (
                "the largest |bias| that any results of as many games, as late as these, could have caused, for "
                f"{clean(worst.player, 40)}; below the raw error for "
                f"{count(sum(not row.vacuous for row in judged))} of {some(len(judged), story.noun)}"
            )
            figures.append(figure("Bound", el("span", bound), gloss))
    certificate = story.certificate
    trusted = certificate.gap <= 1e-6
    tag = el("span", TICK, "exact", class_="tag ok") if trusted else el("span", "broken", class_="tag bad")
    words = "the sum of step times error equals the move of the ratings"
    if certificate.exact:
        words = "bias from the games equals bias from the ratings"
    close = ", exactly" if certificate.gap == 0 else f", to {gap(certificate.gap)}"
    figures.append(figure("Certificate", el("span", "Holds" if trusted else "Does not hold"), words + close, tag))
    if story.residual is not None:
        left = "0" if story.residual == 0.0 else gap(story.residual)
        gloss = f"the most that expected and actual wins of a {story.noun} differ in the fit, beyond its drawn game"
        figures.append(figure("Fit residual", el("span", f"{left} games"), gloss))
    return section("What is certified", intro, el("div", *figures, class_="figures"))


def leaderboard(story: EloStory, most: int) -> Markup:
    """The table of players, the first rank first; no more than ``most``."""
    order = sorted(story.rows, key=lambda row: (row.rank is None, row.rank or 0, -row.elo))
    rows = order[:most]
    if not rows:
        return join()
    # Intervals of players without a rank may be wider than the whole board: they end at its edge.
    ranked = [row for row in rows if row.rank is not None] or rows
    ratings = axis_scale(
        finite([r.elo for r in ranked], (v for r in ranked for v in (r.elo_low, r.elo_high))), most=4
    )
    ratings = Scale(ratings.low, ratings.high, tuple((v, _elo(v)) for v, _ in ratings.ticks))
    sizes = sorted(abs(100.0 * row.bias) for row in rows)
    # The axis holds nine rows in ten, of a few all; those beyond end in an arrow head.
    reach = max(sizes[math.ceil(0.9 * (len(sizes) - 1))], 1.0) * 1.15
    width = charts.tick_step(reach, 1)
    inner = charts.ticks(-reach, reach, width if width <= reach else width / 2, "sign")
    biases = Scale(-reach, reach, inner)
    heads = [
        (join("Rank ", el("span", "range", class_="mid")), "rank"),
        (story.noun.capitalize(), "who"),
        ("Elo", ""),
        ("±", "pm mid"),
        (charts.axis(ratings, 164.0), "dots"),
        ("Games", ""),
        ("Win rate actual", "wide"),
        ("Win rate predicted", "wide"),
        ("Bias, points", ""),
        (charts.axis(biases, 94.0), "biasbar"),
    ]
    long = len(rows) > group_tables.FIRST + 3
    body = [_player_row(row, ratings, biases, hidden=long and i >= group_tables.FIRST) for i, row in enumerate(rows)]
    board = el("table", group_tables.table_head(heads), el("tbody", *body), class_="board", id="board")
    intro = (
        "Rank is the position by Elo; the range beside it is what the differences to all other "
        f"{story.noun}s leave open (95 %). 1000 is the mean of the ranked. Bias = predicted − actual "
        "win rate, in percentage points."
    )
    foot = "± is half of a 95 % interval."
    foot += f" {NO_RANK}" if any(row.rank is None for row in rows) else ""
    which = f"all {count(len(rows))}"
    if len(rows) < len(order):
        which = f"the first {count(len(rows))} of {count(len(order))}"
    button = show_all("board", f"{which} {story.noun}s", group_tables.FIRST) if long else ""
    under = el("div", button, el("p", tidy(foot), class_="foot"), class_="under")
    return section("Leaderboard", intro, board, under, class_="long")


def _player_row(row: Player, ratings: Scale, biases: Scale, hidden: bool) -> Markup:
    low, high = row.rank_low, row.rank_high
    around = "" if low is None or high is None else f"{low}–{high}" if low != high else f"{low}"
    rank = el("b", "–" if row.rank is None else str(row.rank))
    return el(
        "tr",
        el("td", rank, " ", el("small", around, class_="mid"), class_="rank"),
        el("th", name(row.player), scope="row"),
        el("td", _elo(row.elo), class_="elo"),
        el("td", f"±{number((row.elo_high - row.elo_low) / 2, 0)}", class_="pm mid"),
        el("td", charts.dot(row.elo, row.elo_low, row.elo_high, ratings), class_="dots"),
        el("td", count(row.games)),
        el("td", tidy(percent(row.win_rate)), class_="wide nowrap"),
        el("td", tidy(percent(row.predicted_win_rate)), class_="wide nowrap"),
        el("td", points(row.bias), class_="bias"),
        el("td", charts.bar(100.0 * row.bias, biases), class_="biasbar"),
        class_="more" if hidden else None,
    )


def _elo(value: float) -> str:
    """A rating without decimals and, as is usual, without a comma."""
    return number(value, 0).replace(",", "")


def _curves(story: EloStory, sheet: ChartSheet) -> Markup:
    curves = story.curves
    if curves is None or len(curves.x) < 2 or not curves.lines:
        return join()
    y = axis_scale(finite(*(line.values for line in curves.lines)), most=8, include=(1000.0,))
    y = Scale(y.low, y.high, tuple((v, _elo(v)) for v, _ in y.ticks))
    unit, begin = ("game", 1.0) if curves.axis == "row" else ("", None)
    chart = LineChart(
        "curves", "Elo", (curves.axis, curves.axis_name, unit), curves.x, coloured(curves.lines),
        y, NumberFormat(1.0, 0), marks=(1000.0,), height=340, begin=begin,
    )  # fmt: skip
    grey = len(curves.lines) - 3
    others = f" and, in grey, {count(grey)} others" if grey > 0 else ""
    intro = (
        f"Strength as it stood after each game, for the {story.noun}s with the highest Elo{others}. "
        "1000 is where everyone starts."
    )
    sub = "by number of games played in the file" if not story.timed else f"by {curves.axis_name}"
    numbers = series_table("Show these numbers as a table", ("curves",))
    return section("Rating curves", intro, sheet.add(chart, sub), numbers)


def _elo_calibration(story: EloStory) -> Markup:
    bins = [b for b in story.bins if b.games > 0]
    if not bins:
        return join()
    width = "bins of 5 points; " if len(bins) > 1 else ""
    intro = f"All games in {width}area is the number of games, bars are 95 % intervals."
    apart = [b for b in bins if b.games >= sentences.FEW and not b.low <= b.predicted <= b.high]
    if apart:
        off = max(apart, key=lambda b: abs(b.actual - b.predicted) / max(b.high - b.low, 1e-9))
        intro += f" Clearest departure: {percent(off.actual)} won where {percent(off.predicted)} was predicted."
    head = ("Actual win rate", "of side a; dotted: as predicted")
    return charts.calibration_section(intro, head, "predicted win rate of side a →", "games", bins)


def _elo_step_section(story: EloStory) -> Markup:
    places = max(decimals(*(point.loss for point in story.frontier), 0.0), 4)
    words = charts.SweepWords("K", "|bias|", "log loss", places, None)
    coin = f"log loss → (coin flip: {number(math.log(2.0), 3)})"
    intro = "In hindsight, on these same games: not a forecast. Lower left is better."
    who = f"{story.noun}s with {sentences.FEW} games or more"
    return charts.sweep_section("Choice of K", intro, story.frontier, words, coin, who)
