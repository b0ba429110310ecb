"""The page of one layer: verdict, warnings, figures, charts, groups, checks and refused events, in reading order."""

from __future__ import annotations

from datetime import UTC, datetime

from gradeq.report import board
from gradeq.report.markup import Markup, clean, el, join, name, prose, tidy
from gradeq.report.numerals import (
    count,
    decimals,
    moment,
    number,
    percent,
    plain,
    points,
    some,
    target,
)
from gradeq.report.parts import arrow, bound_text, figure, icon, notice_icon, runs, section
from gradeq.report.sections import certificate_figure, loss_figure, signed_arrow
from gradeq.report.series import Sheet
from gradeq.report.story import EloStory, Notice, Pair
from gradeq.report.words import (
    FEW,
    SHADOWED,
    Run,
    Sentence,
    elo_headline,
    elo_qualification,
    headline,
    improved,
    not_counted,
)
from gradeq.service.dashboard.charts import delays, moving, waiting
from gradeq.service.dashboard.groups import groups
from gradeq.service.dashboard.keys import keys
from gradeq.service.dashboard.overview import Check, Overview, Refused
from gradeq.service.dashboard.warnings import span

NO_LABEL = "No label to learn from: nothing to judge."
CHECK = "M8 1a7 7 0 1 0 .01 0zM4.8 8.3l2.2 2.2 4.2-4.8"
_REMEDIES = {
    "conflict": 'send it with `"correct": true` to change the label',
    "unknown": "post the prediction first, with the same id",
    "expired": "make the layer with a longer `ttl`",
}


def layer_page(view: Overview, sheet: Sheet, admin: bool) -> Markup:
    """The whole column; charts put their numbers on the sheet."""
    return join(
        _title(view, admin),
        el("p", runs(verdict(view)), class_="verdict"),
        *(bar(notice) for notice in view.notices),
        el("div", *_figures(view), class_="figures"),
        moving(view, sheet),
        *_board(view),
        el("div", waiting(view, sheet), delays(view.flight.delays), class_="pair"),
        keys(view),
        groups(view),
        el("div", _checks(view), _refused(view), class_="pair"),
        _learning(view),
    )


def _title(view: Overview, admin: bool) -> Markup:
    buttons = [
        el("button", "Resume learning" if view.frozen else "Pause learning", type="button",
           data_do="resume" if view.frozen else "freeze"),
        el("a", "Download state", href=f"/layers/{view.name}/state", class_="button", download=True),
    ] if admin else []  # fmt: skip
    said = "no label yet" if view.last_label is None else "last label "
    since = [] if view.last_label is None else [el("time", "", data_since=f"{view.last_label:.3f}")]
    return el(
        "div",
        el(
            "div",
            el("h1", name(view.name, None)),
            el("p", prose(view.about), class_="about"),
        ),
        el(
            "div",
            el("span", el("span", "", class_="beat"), said, *since, class_="heard"),
            *buttons,
            class_="controls",
        ),
        class_="title",
    )


def verdict(view: Overview) -> Sentence:
    """What the layer has done, in a sentence or two, and which labels are not in it."""
    beside = not_counted(view.paused, view.taken_back)
    if not beside:
        return _done(view)
    return (*(_done(view) if view.labels else (Run(NO_LABEL),)), Run(f" {beside}."))


def _done(view: Overview) -> Sentence:
    if isinstance(view.story, EloStory):
        first = (Run(view.story.lines[0], ""),) if view.story.lines else elo_headline(view.story)
        return (*first, Run(" "), *elo_qualification(_brief(view.story)))
    told = view.story.verdict
    if view.labels >= FEW and told.bias is None and not told.coverage:
        return (Run(f"{count(view.labels)} labels in series with groups of their own."),)
    return headline(view.story)


def _brief(story: EloStory) -> EloStory:
    from dataclasses import replace

    return replace(story, lines=())


def bar(notice: Notice) -> Markup:
    """A warning: claim, evidence, what to do."""
    said = [el("b", prose(notice.claim, 240)), " ", prose(notice.evidence)]
    said += [" ", el("span", prose(notice.remedy), class_="remedy")] if notice.remedy else []
    return el(
        "div", el("div", notice_icon(notice.level), class_="icon"), el("div", *said), class_=f"notice {notice.level}",
        role="status",
    )  # fmt: skip


def _figures(view: Overview) -> list[Markup]:
    story = view.story
    flight = _in_flight(view)
    if isinstance(story, EloStory):
        own = board.figures_of(story)
        return [*own, *_last(view), flight]
    if not view.labels:
        gloss = f"{some(view.served, 'prediction')} served"
        gloss += f", {some(view.paused, 'label')} heard" if view.paused else ""
        gloss += f", {some(view.taken_back, 'label')} taken back" if view.taken_back else ""
        return [figure("Labels learned from", el("span", "0"), gloss), flight]
    told, made = story.verdict, []
    over, sides = some(view.labels, "label"), _sides(view)
    if told.bias is not None:
        places = decimals(told.bias.before, told.bias.after)
        made.append(
            figure(
                "Bias since start",
                signed_arrow(told.bias, places, ""),
                f"{sides}; {over}",
            )
        )
    elif len(told.coverage) == 1:
        one = told.coverage[0]
        value = arrow(percent(one.before), percent(one.after))
        made.append(figure(f"Coverage, target {target(one.target)}", value, f"{sides}; {over}"))
    elif told.coverage:
        was, now = (
            max((getattr(c, w) - c.target for c in told.coverage), key=abs)
            for w in ("before", "after")
        )
        value = arrow(points(was), points(now), "points")
        made.append(
            figure(
                "Farthest from its level",
                value,
                f"{sides}; {count(len(told.coverage))} levels, {over}",
            )
        )
    made += _last(view)
    made.append(loss_figure(told.loss, told.shadow))
    made.append(flight)
    made.append(certificate_figure(told.certificate, improved(story)))
    return made


def _last(view: Overview) -> list[Markup]:
    """Bias or coverage over the last labels, with the loss beside it; of games and of several levels the loss."""
    last, story = view.last, view.story
    if last is None or last.labels < FEW:
        return []
    many = count(last.labels)
    if isinstance(story, EloStory) or len(story.verdict.coverage) > 1:
        places = decimals(last.loss.before, last.loss.after)
        value = arrow(number(last.loss.before, places), number(last.loss.after, places))
        return [figure(f"Loss, last {many}", value, _sides(view))]
    error = last.error
    if story.verdict.coverage:
        value = arrow(percent(error.before), percent(error.after))
        return [figure(f"Last {many} labels", value, _loss(view, last.loss))]
    value = signed_arrow(error, decimals(error.before, error.after), "")
    return [figure(f"Bias, last {many}", value, _loss(view, last.loss))]


def _loss(view: Overview, loss: Pair) -> str:
    places = decimals(loss.before, loss.after)
    shadow = SHADOWED if view.shadow else ""
    return f"loss {number(loss.before, places)} → {number(loss.after, places)}{shadow}"


def _sides(view: Overview) -> str:
    """What the two numbers of a figure are."""
    return "as served, then as it would be" if view.shadow else "before, then served"


def _in_flight(view: Overview) -> Markup:
    flight = view.flight
    facts = []
    if flight.oldest is not None and flight.open:
        facts.append(f"oldest {span(flight.oldest)}")
    if flight.waiting is not None:
        facts.append(f"peak {count(flight.waiting.peak)}")
    if flight.expired:
        facts.append(f"{count(flight.expired)} never came")
    facts = facts or [
        "no prediction waits for its label" if not flight.open else "wait for their labels"
    ]
    return figure("Labels in flight", el("span", count(flight.open)), ", ".join(facts))


def _board(view: Overview) -> list[Markup]:
    if not isinstance(view.story, EloStory):
        return []
    return [board.leaderboard(view.story, 200), board.certified(view.story)]


def _checks(view: Overview) -> Markup:
    rows = [_check(check) for check in view.checks]
    return section("Certificate and audit", "", el("ul", *rows, class_="checks"))


def _check(check: Check) -> Markup:
    sign = icon(CHECK, 16, 16, "green") if check.good else notice_icon("red")
    spoken = el("span", "Holds" if check.good else "Fails", class_="hide")
    when = (
        el("time", "", data_since=f"{check.at:.0f}") if check.at is not None else join(check.often)
    )
    return el(
        "li", el("div", sign, spoken, class_="icon"),
        el("div", el("b", check.name), el("p", prose(check.text))), el("span", when, class_="when"),
    )  # fmt: skip


def _refused(view: Overview) -> Markup:
    if not view.refused:
        none = el(
            "p",
            "None. Conflicts, unknown ids and values that are no labels would stand here.",
            class_="foot",
        )
        return section("Refused events", "", none)
    rows = [_event(one, view.now) for one in list(view.refused)[::-1][:12]]
    intro = f"the last {count(len(rows))}" if len(view.refused) > len(rows) else ""
    head = el("h2", "Refused events", *([" ", el("small", intro)] if intro else []))
    return el("section", head, el("ul", *rows, class_="refused"))


def _event(one: Refused, now: float) -> Markup:
    at = datetime.fromtimestamp(one.at, UTC)
    clock = f"{at:%H:%M}" if now - one.at < 86_400 else f"{at.day} {at:%b}"
    detail, _, remedy = clean(one.detail, 300).partition("; ")
    remedy = remedy or _REMEDIES.get(one.status, "")
    return el(
        "li",
        el("time", clock, title=moment(one.at)),
        el(
            "div",
            el("p", el("code", clean(one.id, 60)), " ", el("span", one.status, class_="tag grey")),
            el("p", detail),
            *([el("p", prose(remedy), class_="do")] if remedy else []),
        ),
    )


def _learning(view: Overview) -> Markup:
    story = view.story
    told = story.certificate if isinstance(story, EloStory) else story.verdict.certificate
    bound = "no theorem covers these settings"
    if told.bound is not None:
        bound = f"{bound_text(told.bound)} on the largest average gradient"
        bound = (
            "no worst-case guarantee yet: no smaller than the raw error" if told.vacuous else bound
        )
    behind = ""
    if view.behind is not None:
        behind = f"{count(view.behind[0])} of their entries not read here yet, at most {count(view.behind[1])} so far"
    step = plain(float(f"{view.step:.2g}"))
    if view.method != "auto" and view.step < view.asked * (1.0 - 1e-9):
        step += f", the layer's own is {plain(view.asked)}"
    facts = [
        ("Step in force", step),
        ("Learning", view.learning),
        ("Served", f"{some(view.served, 'prediction')}, {some(view.labels, 'label')} learned from"),
        ("Proven bound", bound),
        ("Other servers", behind),
    ]
    parts = [
        part for term, text in facts if text for part in (el("dt", term), el("dd", tidy(text)))
    ]
    return section("How it learns", "", el("dl", *parts))
