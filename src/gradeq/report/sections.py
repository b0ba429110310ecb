"""The report of a debias or quantile run, section by section in reading order."""

import math

from gradeq.report import heatmap, method, overtime, plots, reliability
from gradeq.report.grouptable import groups, levels
from gradeq.report.manyseries import series
from gradeq.report.markup import Markup, clean, el, join, prose
from gradeq.report.numerals import count, decimals, number, percent, plain, points, target
from gradeq.report.parts import (
    arrow,
    bound_text,
    certificate,
    command,
    figure,
    notices,
    runs,
    section,
    still,
    table,
)
from gradeq.report.series import Sheet, step_name
from gradeq.report.story import Certificate, Loss, Pair, Story
from gradeq.report.words import (
    SHADOWED,
    as_used,
    headline,
    improved,
    limits_changed,
    loss_change,
    qualification,
)


def build(story: Story, sheet: Sheet, most: int) -> Markup:
    """The whole column; charts put their numbers on the sheet."""
    return join(
        _title(story),
        notices(story.notices),
        overtime.means(story, sheet),
        groups(story, most),
        heatmap.build(story),
        series(story),
        levels(
            story.levels,
            story.verdict.loss.name,
            story.verdict.certificate.over,
            limits_changed(story.verdict.coverage),
        ),
        _pair(_frontier(story), overtime.learned(story, sheet)),
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
    made, would = [], SHADOWED if verdict.shadow else ""
    if not story.labelled:  # nothing was measured in this file
        gloss = f"{count(story.rows)} rows served; labels come later"
        return [figure("Labelled rows", el("span", "0"), gloss)]
    if verdict.bias is not None:
        places = decimals(verdict.bias.before, verdict.bias.after)
        made.append(figure("Bias, all labels", signed_arrow(verdict.bias, places, unit),
                           f"{'weighted ' if story.weight else ''}mean of served − label{would}"))  # fmt: skip
    used = as_used(verdict.coverage)
    covered, served = used or verdict.coverage, (", as served" if used else "") + would
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
    made.append(loss_figure(verdict.loss, verdict.shadow))
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
            else signed_arrow(pair, decimals(worst.before, worst.after), unit)
        )
        same = worst.group_before == worst.group_after
        gloss = (
            clean(worst.group_after, 32)
            if same
            else f"{clean(worst.group_before, 32)} before, {clean(worst.group_after, 32)} after"
        )
        term = "Worst group coverage, off by" if story.kind == "quantile" else "Worst group bias"
        gloss += f", at level {story.levels[0].name}" if story.levels else ""
        made.append(figure(term, value, gloss))
    elif story.width is None:
        skipped = story.rows - story.labelled
        gloss = "all labelled" if not skipped else f"{count(skipped)} more without a label"
        gloss += " or weight" if story.weight and skipped else ""
        made.append(figure("Labelled rows", el("span", count(story.labelled)), gloss))
    if verdict.nothing:
        none = el("span", "–")
        return [*made, figure("Certificate", none, "no label learned from: nothing to certify")]
    made.append(certificate_figure(verdict.certificate, improved(story)))
    return made


def certificate_figure(held: Certificate, praise: bool) -> Markup:
    """The average gradient and its worst case; green where there is ``praise``."""
    beside = held.value if held.bound is None or held.vacuous else held.bound
    places = decimals(held.value, beside)
    limit = bound_text(held.bound, places)
    gloss = f"average gradient {held.over}".rstrip()
    gloss += " and its worst case" if held.bound is not None and not held.vacuous else ""
    return certificate(held, number(held.value, places), limit, gloss, praise)


def loss_figure(loss: Loss, shadow: bool = False) -> Markup:
    """A loss before and after, and by how much it changed."""
    places = decimals(loss.before, loss.after)
    change = loss_change(loss)
    if change == "same":
        gloss = "did not change"
    elif not math.isfinite(loss.before + loss.after):
        gloss = "too large for a number"
    elif not loss.before:
        gloss = "rose from 0"
    else:
        share = percent(abs(loss.after / loss.before - 1.0), 0 if change == "fell" else 1)
        gloss = f"{share} {'lower' if change == 'fell' else 'higher'}"
    gloss += SHADOWED if shadow else ""
    title = loss.name[:1].upper() + loss.name[1:]
    return figure(title, arrow(number(loss.before, places), number(loss.after, places)), gloss)


def signed_arrow(pair: Pair, places: int, unit: str) -> Markup:
    """A bias before and after."""
    return arrow(number(pair.before, places, True), number(pair.after, places, True), unit)


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
