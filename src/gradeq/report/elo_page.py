"""The Elo page: who is first, leaderboard, what is certified, curves, calibration, choice of K, method."""

import math

from gradeq.certificates.figures import NO_GUARANTEE
from gradeq.leaderboard.ranks import WITHIN, Standing
from gradeq.report import charts, method
from gradeq.report.charts import (
    ChartSheet,
    LineChart,
    NumberFormat,
    Scale,
    SweepWords,
    axis_scale,
    coloured,
    finite,
    tick_step,
    ticks,
)
from gradeq.report.components import (
    TICK,
    Markup,
    arrow,
    bound_text,
    clean,
    command_section,
    el,
    figure,
    join,
    lede,
    name,
    notices,
    section,
    series_table,
    show_all,
    tidy,
)
from gradeq.report.group_tables import FIRST, table_head
from gradeq.report.numerals import count, decimals, gap, number, percent, points
from gradeq.report.sentences import FEW, elo_headline, elo_qualification, forecasts_matched
from gradeq.report.story import EloStory
from gradeq.tables import some

NO_RANK = (
    f"No rank: fewer than {FEW} games, a current strength not known within {WITHIN} Elo, or no "
    "chain of games to the largest group."
)


def elo_sections(story: EloStory, sheet: ChartSheet, most: int) -> Markup:
    left = _calibration(story)
    right = join(_step_section(story) if len(story.frontier) > 1 else "", command_section(story.made))
    since = ""
    if story.added is not None:
        since = f" since the state began, {count(story.added) if story.added else 'none'} in this run"
    games = f", {some(story.games, 'game')}{since}, {some(story.players, story.noun)}"
    about = [el("code", clean(story.a)), " against ", el("code", clean(story.b)), games]
    return join(
        lede(about, elo_headline(story), elo_qualification(story), elo_figures(story)),
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
    judged = [row for row in story.rows if row.games >= FEW]
    figures, intro = [], "Exact, whatever the games; Elo, intervals and ranks above are statistics."
    if judged:
        worst = max(judged, key=lambda row: abs(row.bias))
        intro = f"{forecasts_matched(abs(worst.bias), len(judged), story.noun)} {intro}"
        term = f"Worst bias, {some(len(judged), story.noun)} with {FEW} games or more"
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
    inner = ticks(-reach, reach, tick_step(reach, 1) / (1 if tick_step(reach, 1) <= reach else 2), "sign")
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
    long = len(rows) > FIRST + 3
    body = [_row(row, ratings, biases, hidden=long and i >= FIRST) for i, row in enumerate(rows)]
    board = el("table", table_head(heads), el("tbody", *body), class_="board", id="board")
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
    button = show_all("board", f"{which} {story.noun}s", FIRST) if long else ""
    under = el("div", button, el("p", tidy(foot), class_="foot"), class_="under")
    return section("Leaderboard", intro, board, under, class_="long")


def _row(row: Standing, ratings: Scale, biases: Scale, hidden: bool) -> Markup:
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


def _calibration(story: EloStory) -> Markup:
    bins = [b for b in story.bins if b.games > 0]
    if not bins:
        return join()
    width = "bins of 5 points; " if len(bins) > 1 else ""
    intro = f"All games in {width}area is the number of games, bars are 95 % intervals."
    apart = [b for b in bins if b.games >= FEW and not b.low <= b.predicted <= b.high]
    if apart:
        off = max(apart, key=lambda b: abs(b.actual - b.predicted) / max(b.high - b.low, 1e-9))
        intro += f" Clearest departure: {percent(off.actual)} won where {percent(off.predicted)} was predicted."
    head = ("Actual win rate", "of side a; dotted: as predicted")
    return charts.calibration_section(intro, head, "predicted win rate of side a →", "games", bins)


def _step_section(story: EloStory) -> Markup:
    words = SweepWords("K", "|bias|", "log loss", max(decimals(*(p.loss for p in story.frontier), 0.0), 4), None)
    coin = f"log loss → (coin flip: {number(math.log(2.0), 3)})"
    intro = "In hindsight, on these same games: not a forecast. Lower left is better."
    who = f"{story.noun}s with {FEW} games or more"
    return charts.sweep_section("Choice of K", intro, story.frontier, words, coin, who)
