"""The Elo page: who is first, leaderboard, what is certified, curves, calibration, choice of K, method."""

import math

from gradeq.report import elo_method, marks, plots
from gradeq.report.grouptable import FIRST
from gradeq.report.markup import Markup, clean, el, join, name, tidy
from gradeq.report.numerals import count, decimals, gap, number, percent, plain, points, some
from gradeq.report.parts import (
    arrow,
    bound_text,
    chart,
    command,
    figure,
    icon,
    notices,
    runs,
    section,
    series_table,
    show_all,
    still,
    table,
)
from gradeq.report.series import Sheet, coloured, step_name
from gradeq.report.story import EloStory, Player
from gradeq.report.ticks import How, Scale, finite, scale, step, ticks
from gradeq.report.words import FEW, elo_headline, elo_qualification, forecasts_matched
from gradeq.standings.words import WITHIN

NO_RANK = (
    f"No rank: fewer than {FEW} games, a strength of the moment not known within {WITHIN} Elo, or no "
    "chain of games to the largest group."
)


def build(story: EloStory, sheet: Sheet, most: int) -> Markup:
    """The whole column; the rating curves put their numbers on the sheet."""
    computed = section("How it was computed", "", command(story.made))
    left, right = _calibration(story), join(_frontier(story), computed)
    pair = el("div", left, el("div", right), class_="pair") if left else right
    urgent = [notice for notice in story.notices if notice.level != "note"]
    return join(
        _title(story),
        notices(urgent),
        leaderboard(story, most),
        certified(story),
        notices([notice for notice in story.notices if notice.level == "note"], "Good to know"),
        _curves(story, sheet),
        pair,
        elo_method.build(story),
    )


def _title(story: EloStory) -> Markup:
    about = [
        el("code", clean(story.a)), " against ", el("code", clean(story.b)),
        f", {some(story.games, 'game')}{_added(story)}, {some(story.players, story.noun)}",
    ]  # fmt: skip
    return el(
        "div",
        el("p", *about, class_="about"),
        el("h1", runs(elo_headline(story))),
        el("p", runs(elo_qualification(story)), class_="second"),
        el("div", *figures_of(story), class_="figures"),
        class_="lede",
    )


def _added(story: EloStory) -> str:
    """Which games are counted, where a state was there before this run."""
    if story.added is None:
        return ""
    return f" since the state began, {count(story.added) if story.added else 'none'} in this run"


def figures_of(story: EloStory) -> list[Markup]:
    """Log loss, home advantage and games."""
    made, loss = [], story.loss
    if loss is not None:
        places = decimals(loss.before, loss.after)
        value = arrow(number(loss.before, places), number(loss.after, places))
        made.append(figure("Log loss", value, "equal ratings, then Elo"))
    rule = "half a win" if story.ties_rule == "half" else "dropped"
    facts = ["no ties"] if story.ties == 0 and story.games else []
    if story.ties:
        facts = [f"{some(story.ties, 'tie')} ({rule})"]
    if story.added is not None:
        facts = [f"since the state began; {count(story.added)} in this run", *facts]
    if story.skipped:
        facts.append(f"{count(story.skipped)} games of a {story.noun} against itself skipped")
    if story.home is not None:
        low, high = (number(end, 0) for end in (story.home.low, story.home.high))
        value = el("span", f"{number(story.home.elo, 0)} Elo")
        made.append(figure("Home advantage", value, f"95 % interval {low} to {high}"))
    made.append(figure("Games", el("span", count(story.games)), "; ".join(facts)))
    return made


def certified(story: EloStory) -> Markup:
    """What holds for any sequence of games: bias, bound and certificate."""
    judged = [row for row in story.rows if row.games >= FEW]
    made, said = [], "Exact, whatever the games; Elo, intervals and ranks above are statistics."
    if judged:
        worst = max(judged, key=lambda row: abs(row.bias))
        said = f"{forecasts_matched(abs(worst.bias), len(judged), story.noun)} {said}"
        made.append(
            figure(
                f"Worst bias, {some(len(judged), story.noun)} with {FEW} games or more",
                el("span", f"{points(worst.bias)} points", class_="after"),
                f"{clean(worst.player, 40)}, {count(worst.games)} games",
            )
        )
        made += _bound(worst, judged, story.noun)
    held = story.certificate
    trusted = held.gap <= 1e-6
    tick = icon("M2.5 6.5l2.5 2.5 4.5-5.5", 11, 12)
    tag = (
        el("span", tick, "exact", class_="tag ok")
        if trusted
        else el("span", "broken", class_="tag bad")
    )
    words = (
        "bias from the games equals bias from the ratings"
        if held.exact
        else "the sum of step times error equals the move of the ratings"
    )
    close = ", exactly" if held.gap == 0 else f", to {gap(held.gap)}"
    shown = el("span", "Holds" if trusted else "Does not hold")
    made.append(figure("Certificate", shown, words + close, tag))
    if story.residual is not None:
        left = "0" if story.residual == 0.0 else gap(story.residual)
        made.append(
            figure(
                "Fit residual",
                el("span", f"{left} games"),
                f"the most that expected and actual wins of a {story.noun} differ in the fit, beyond its drawn game",
            )
        )
    return section("What is certified", said, el("div", *made, class_="figures"))


def _bound(worst: Player, judged: list[Player], noun: str) -> list[Markup]:
    """The bound of the player whose bias stands beside it, and how many have one that says something."""
    if worst.bound is None:
        return []
    value = "none yet" if worst.vacuous else f"{bound_text(100.0 * worst.bound, 1)} points"
    said = (
        "the largest |bias| that any results of as many games, as late as these, could have caused, for "
        f"{clean(worst.player, 40)}"
    )
    proven = sum(not row.vacuous for row in judged)
    said += f"; below the raw error for {count(proven)} of {some(len(judged), noun)}"
    return [figure("Bound", el("span", value), said)]


def leaderboard(story: EloStory, most: int) -> Markup:
    """The table of players, the first rank first; no more than ``most``."""
    order = sorted(
        story.rows,
        key=lambda row: (row.rank is None, row.rank or 0, -row.elo),
    )
    rows = order[:most]
    if not rows:
        return join()
    # Intervals of players without a rank may be wider than the whole board: they end at its edge.
    own = [row for row in rows if row.rank is not None] or rows
    spread = finite([row.elo for row in own], [v for r in own for v in (r.elo_low, r.elo_high)])
    ratings = scale(spread, most=4)
    ratings = Scale(ratings.low, ratings.high, tuple((v, _elo(v)) for v, _ in ratings.ticks))
    sizes = sorted(abs(100.0 * row.bias) for row in rows)
    # The axis holds nine rows in ten, of a few all; those beyond end in an arrow head.
    reach = max(sizes[math.ceil(0.9 * (len(sizes) - 1))], 1.0) * 1.15
    inner = ticks(-reach, reach, step(reach, 1) / (1 if step(reach, 1) <= reach else 2), "sign")
    biases = Scale(-reach, reach, inner)
    heads = [
        (join("Rank ", el("span", "range", class_="mid")), "rank"),
        (join(story.noun.capitalize()), "who"),
        (join("Elo"), ""),
        (join("±"), "pm mid"),
        (marks.axis(ratings, 164.0), "dots"),
        (join("Games"), ""),
        (join("Win rate actual"), "wide"),
        (join("Win rate predicted"), "wide"),
        (join("Bias, points"), ""),
        (marks.axis(biases, 94.0), "biasbar"),
    ]
    head = el("tr", *(el("th", inside, scope="col", class_=c or None) for inside, c in heads))
    long = len(rows) > FIRST + 3
    body = [_row(row, ratings, biases, hidden=long and i >= FIRST) for i, row in enumerate(rows)]
    made = el("table", el("thead", head), el("tbody", *body), class_="board", id="board")
    intro = (
        "Rank is the position by Elo; the range beside it is what the differences to all other "
        f"{story.noun}s leave open (95 %). 1000 is the mean of the ranked. Bias = predicted − actual "
        "win rate, in percentage points."
    )
    foot = "± is half of a 95 % interval."
    if any(row.rank is None for row in rows):
        foot += f" {NO_RANK}"
    which = f"all {count(len(rows))}"
    if len(rows) < len(order):
        which = f"the first {count(len(rows))} of {count(len(order))}"
    button = [show_all("board", f"{which} {story.noun}s", FIRST)] if long else []
    under = el("div", *button, el("p", tidy(foot), class_="foot"), class_="under")
    return section("Leaderboard", intro, made, under, class_="long")


def _row(row: Player, ratings: Scale, biases: Scale, hidden: bool) -> Markup:
    low, high = row.rank_low, row.rank_high
    around = "" if low is None or high is None else f"{low}–{high}" if low != high else f"{low}"
    half = (
        ""
        if row.elo_low is None or row.elo_high is None
        else f"±{number((row.elo_high - row.elo_low) / 2, 0)}"
    )
    rank = el("b", "–" if row.rank is None else str(row.rank))
    return el(
        "tr",
        el("td", rank, " ", el("small", around, class_="mid"), class_="rank"),
        el("th", name(row.player), scope="row"),
        el("td", _elo(row.elo), class_="elo"),
        el("td", half, class_="pm mid"),
        el("td", marks.dot(row.elo, row.elo_low, row.elo_high, ratings), class_="dots"),
        el("td", count(row.games)),
        el("td", tidy(percent(row.win_rate)), class_="wide nowrap"),
        el("td", tidy(percent(row.predicted_win_rate)), class_="wide nowrap"),
        el("td", points(row.bias), class_="bias"),
        el("td", marks.bar(100.0 * row.bias, biases), class_="biasbar"),
        class_="more" if hidden else None,
    )


def _elo(value: float) -> str:
    """A rating without decimals and, as is usual, without a comma."""
    return number(value, 0).replace(",", "")


def _curves(story: EloStory, sheet: Sheet) -> Markup:
    curves = story.curves
    if curves is None or len(curves.x) < 2 or not curves.lines:
        return join()
    values = finite(*(line.values for line in curves.lines))
    y = scale(values, most=8, include=(1000.0,))
    y = Scale(y.low, y.high, tuple((v, _elo(v)) for v, _ in y.ticks))
    unit = "game" if curves.axis == "row" else ""
    sheet.add(
        "curves", "Elo", (curves.axis, curves.axis_name, unit), curves.x, coloured(curves.lines),
        y, How(1.0, 0), marks=(1000.0,), height=340,
        begin=1.0 if curves.axis == "row" else None,
    )  # fmt: skip
    grey = len(curves.lines) - 3
    others = f" and, in grey, {count(grey)} others" if grey > 0 else ""
    intro = (
        f"Strength as it stood after each game, for the {story.noun}s with the highest Elo{others}. "
        "1000 is where everyone starts."
    )
    sub = "by number of games played in the file" if not story.timed else f"by {curves.axis_name}"
    return section(
        "Rating curves",
        intro,
        chart("curves", "Elo", sub),
        series_table("Show these numbers as a table", ("curves",)),
    )


def _calibration(story: EloStory) -> Markup:
    bins = [b for b in story.bins if b.games > 0]
    if not bins:
        return join()
    width = "bins of 5 points; " if len(bins) > 1 else ""
    rows = [
        [percent(b.predicted), percent(b.actual), f"{percent(b.low)} to {percent(b.high)}",
         count(b.games)]
        for b in bins
    ]  # fmt: skip
    intro = f"All games in {width}area is the number of games, bars are 95 % intervals."
    full = [b for b in bins if b.games >= FEW]
    apart = [b for b in full if not b.low <= b.predicted <= b.high]
    if apart:
        off = max(apart, key=lambda b: abs(b.actual - b.predicted) / max(b.high - b.low, 1e-9))
        intro += (
            f" Clearest departure: {percent(off.actual)} won where {percent(off.predicted)} was "
            "predicted."
        )
    return section(
        "Calibration",
        intro,
        still(
            "Actual win rate",
            "of side a; dotted: as predicted",
            plots.calibration(bins, "predicted win rate of side a →", "games"),
        ),
        table("Show as a table", ("Predicted", "Actual", "95 % interval", "Games"), rows),
    )


def _frontier(story: EloStory) -> Markup:
    given = story.frontier
    if len(given) < 2:
        return join()
    places = max(decimals(*(point.loss for point in given), 0.0), 4)
    chosen = next((point for point in given if point.chosen), None)
    said = ("", "")
    if chosen is not None:
        said = (
            f"chosen: K = {plain(chosen.step)}",
            f"worst bias {points(chosen.worst, False)} points, "
            f"log loss {number(chosen.loss, places)}",
        )
    names = [step_name(point.step, "K", i == 0) for i, point in enumerate(given)]
    reads = [
        f"K = {plain(p.step)}: worst |bias| {points(p.worst, False)} points, "
        f"log loss {number(p.loss, places)}"
        for p in given
    ]
    coin = f"log loss → (coin flip: {number(math.log(2.0), 3)})"
    rows = [
        [
            plain(p.step) + (" (chosen)" if p.chosen else ""),
            points(p.worst, False),
            number(p.loss, places),
        ]
        for p in given
    ]
    return section(
        "Choice of K",
        "In hindsight, on these same games: not a forecast. Lower left is better.",
        still(
            "Worst |bias|, points",
            f"{story.noun}s with {FEW} games or more",
            plots.frontier(given, names, said, coin, reads, percent_points=True),
        ),
        table("Show as a table", ("K", "Worst |bias|, points", "Log loss"), rows),
    )
