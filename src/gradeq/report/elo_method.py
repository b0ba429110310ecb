"""The method section of the Elo page: how the games of this run were forecast, and what the board is."""

from gradeq.report import formulas
from gradeq.report.markup import Markup, el, name, prose, tidy
from gradeq.report.numerals import percent, plain
from gradeq.report.parts import folded
from gradeq.report.story import EloStory
from gradeq.report.worked import equation, worked


def build(story: EloStory) -> Markup:
    """The section: forecast, step, board, and the identity worked through."""
    method, home = story.method, story.home is not None
    lines = [(line.name, worked(line)) for line in method.worked]
    return folded(
        "Method",
        el("p", prose(_forecast(story))),
        el(
            "div",
            formulas.game(method.auto, home),
            formulas.game_update(home, not method.exact),
            class_="formula",
        ),
        el("p", tidy(_step(story))),
        el("p", tidy(_board(story))),
        *(el("p", "For ", name(who, None), f": {text}") for who, text in lines if text),
    )


def _forecast(story: EloStory) -> str:
    """What is served before a game, and what moves after it."""
    said, moved = "Before each game p is the probability that a wins", "both ratings move"
    if story.method.auto:
        said += (
            ": m mixes filters that expect more or less drift, weighted by their log loss, and each "
            f"{story.noun} has a correction on the scale of log-odds"
        )
        moved = "the filters learn from the game, and both corrections move"
    said += f". Afterwards {moved} by a small step against the error"
    said += f". {story.method.extra}" if story.method.extra else "; their sum stays."
    if story.home is not None:
        said += (
            " h is 1 where a is at home, 0 on neutral ground, \u22121 where b is; the advantage at home has "
            f"a step of its own, {plain(float(f'{story.home.step:.3g}'))}."
        )
    return said


def _step(story: EloStory) -> str:
    """The step, as K where that is what moves the ratings, and what its sums say."""
    if story.method.auto:
        size = f"\u03b7 = {plain(story.eta)}."
    else:
        per = story.k / story.eta
        k = equation(lambda eta, per: eta * per, "{0} \u00d7 {1}", (story.eta, per), story.k, 1)
        size = f"K = \u03b7 \u00d7 400 / ln 10{f', here {k}' if k else ''}."
    if story.method.exact:
        return (
            f"{size} Hence for each {story.noun}, exactly: mean predicted \u2212 actual win rate = "
            "(\u03b8 at the start \u2212 \u03b8 at the end) / (\u03b7 \u00d7 games)."
        )
    return f"{size} Each bias is the stored exact sum of errors over its games: \u03b8 alone does not give it."


def _board(story: EloStory) -> str:
    """What the Elo of the leaderboard is."""
    fit = (
        "strengths for which the expected wins of all games equal the actual ones, but for one drawn game of "
        f"each {story.noun} spread over its opponents"
    )
    now = (
        "strengths of the moment, by the filter with the most weight among those that expect drift"
    )
    views = [(story.fitted, fit), (1.0 - story.fitted, now)]
    for share, what in views:
        if share > 0.9995:
            rest = "" if share == 1.0 else " (the other view has a weight below 0.1 %)"
            return f"The Elo of the leaderboard are {what}{rest}."
    both = ", and ".join(f"{what} (weight {percent(share)})" for share, what in views)
    return (
        f"The Elo of the leaderboard average two views by what the games say about drift: {both}."
    )
