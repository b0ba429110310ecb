"""The warnings of a run, each as a claim with a number, its evidence, and one thing to do.

Numbers in, :class:`Notice` out; the terminal prints the claim and the remedy, the page all three.
"""

from collections.abc import Iterable, Sequence

from gradeq.report.markup import clean
from gradeq.report.numerals import count, date, decimals, number, percent, plain, points, some
from gradeq.report.story import Loss, Notice, Pair
from gradeq.report.words import FEW, loss_change, loss_sentence, side, text, too_few

ENOUGH = 10.0
"""Step times rows below this: the correction has hardly had time to move."""

_ORDER = {"red": 0, "amber": 1, "note": 2}


def ordered(notices: Iterable[Notice]) -> tuple[Notice, ...]:
    """Sort warnings red, amber, note; within a level they keep their order."""
    return tuple(sorted(notices, key=lambda notice: _ORDER[notice.level]))


def position(axis: str, x: float) -> str:
    """Say where on the x axis: 2 April 2014, row 5,835, or 17.5."""
    if axis == "date":
        return date(x)
    return f"row {count(int(x))}" if axis == "row" else plain(x)


def labels_changed(
    axis: str,
    x: float,
    labels: int,
    mean: Pair,
    bias: Pair,
    who: str,
    unit: str,
    binary: bool,
    earlier: tuple[Pair, Loss],
) -> Notice:
    """The mean label jumped at x: ``mean`` on both sides, ``bias`` after it, ``earlier`` bias and loss before it."""
    where = ("on " if axis == "date" else "at ") + position(axis, x)
    start = "From that day" if axis == "date" else "From there"
    if binary and mean.after in (0.0, 1.0):
        rates = (
            f"all {count(labels)} labels are 0; before it, {percent(mean.before)} were 1"
            if mean.after == 0.0
            else f"all {count(labels)} labels are 1; before it, {percent(mean.before)} were"
        )
    elif binary:
        rates = (
            f"{percent(mean.after)} of {count(labels)} labels are 1; "
            f"before it, {percent(mean.before)} were"
        )
    else:
        places = decimals(mean.before, mean.after)
        rates = (
            f"{count(labels)} labels average {number(mean.after, places)}; "
            f"before it, {number(mean.before, places)}"
        )
    places = decimals(bias.before, bias.after)
    (was, loss), (own, small) = earlier, [decimals(p.before, p.after) + 1 for p in earlier]
    return Notice(
        "amber",
        f"The labels changed {where}.",
        f"{start} {rates}. There {who} was {side(bias.before, places, unit)} and the served value "
        f"{side(bias.after, places, unit)}. Without these rows the bias went from "
        f"{number(was.before, own)} to {number(was.after, own)} and {loss.name} from "
        f"{number(loss.before, small)} to {number(loss.after, small)}.",
        f"Check how the later labels were collected. If they are an artefact, end the file before "
        f"{position(axis, x)}.",
    )


def error_from_change(axis: str, x: float, labels: int, loss: Loss) -> Notice:
    """The loss fell only after the labels changed: ``loss`` is that up to x."""
    was, now = (number(v, decimals(loss.before, loss.after) + 1) for v in (loss.before, loss.after))
    return Notice(
        "amber",
        f"The lower error comes from those {count(labels)} rows.",
        f"Before {position(axis, x)} {loss.name} did not improve: {was} before, {now} after.",
        "On stable data, expect less bias but not better accuracy. A smaller `--eta` costs less.",
    )


def outside_range(
    outside: int, served: int, minimum: float, maximum: float, link: str, remedy: str = ""
) -> Notice:
    """Served values that are not probabilities, which the shift link may give."""
    return Notice(
        "amber",
        f"{some(outside, 'served value')} ({percent(outside / max(served, 1))}) "
        + ("is not a probability." if outside == 1 else "are not probabilities."),
        f"{'It lies' if outside == 1 else 'They lie'} outside [0, 1], "
        f"from {number(minimum, 2)} to {number(maximum, 2)}. "
        f"The {link} link allows this.",
        remedy or "`--link logit` keeps values inside.",
    )


def loss_worse(loss: Loss, remedy: str = "") -> Notice | None:
    """The loss got worse by more than 0.5 %; None when it did not."""
    if loss_change(loss.before, loss.after) != "rose":
        return None
    name = loss.name[:1].upper() + loss.name[1:]
    more = f" by {percent(loss.after / loss.before - 1.0)}" if loss.before > 0 else ""
    return Notice(
        "amber",
        f"{name} got worse{more}.",
        text(loss_sentence(loss)),
        remedy or "Try a smaller `--eta`, or `--eta auto`, which also weighs the raw prediction.",
    )


def steps_held(
    asked: float | None, least: float, labels: int, late: int, whose: str = "you asked for"
) -> Notice:
    """Labels came late: their steps were held down to stay stable; ``whose`` the step was before."""
    before = "" if asked is None else f", {whose} {plain(asked)}"
    came = f"Labels arrived up to {some(late, 'row')} late: steps" if late else "Steps"
    return Notice(
        "note",
        f"{came} were capped, down to {plain(least)}, for {some(labels, 'label')}{before}.",
        "With larger steps, labels that arrive late together overshoot. Steps grow again once labels "
        "arrive with less delay.",
    )


def labels_at_once() -> Notice:
    """Nobody said when labels come, and the figures are those of labels that come before the next row."""
    return Notice(
        "note",
        "Each label was assumed known before the next prediction.",
        "If labels arrive later, expect less improvement than shown here.",
        "Use `--delay` (rows, or a duration such as 3d; many rows a date? give `--time` as well) or `--label-time` "
        "to say when they arrive.",
    )


def no_cap_with_late_labels(eta: float, late: int) -> Notice:
    """Labels are late and the cap is off."""
    return Notice(
        "amber",
        f"Labels arrived up to {some(late, 'row')} late and steps were not capped.",
        f"With a step of {plain(eta)} and labels this late, corrections can oscillate or diverge.",
        "Remove `--no-cap`.",
    )


def rows_too_large(rows: int) -> Notice:
    """Rows whose weight and features are too large for the step: each got a smaller one."""
    were = "row was" if rows == 1 else "rows were"
    return Notice(
        "note",
        f"{count(rows)} {were} too large for the step and got a smaller one.",
        "The squared error is stable while step times weight times squared size is below 2; such a "
        "row moves by 1 / (weight times squared size) instead.",
        "Scale features and weights to about 1.",
    )


def no_label(rows: int, later: bool | None = None) -> Notice:
    """Rows without a label: predicted, not learned from; ``later``: whether `gradeq label` can bring it."""
    have = "row has" if rows == 1 else "rows have"
    them = "it" if rows == 1 else "them"
    return Notice(
        "note",
        f"{count(rows)} {have} no label: nothing is claimed about {them}.",
        "It was served with the corrections learned so far and is excluded from every average."
        if rows == 1
        else "They were served with the corrections learned so far and are excluded from every average.",
        {
            True: "`gradeq label` with the same `--state` and `--id` brings the labels later.",
            False: "With `--id` and `--state` such rows wait, and `gradeq label` brings their labels later.",
        }[later]
        if later is not None
        else "",
    )


def not_due(learned: int, labels: int, nothing: bool, kept: bool) -> Notice:
    """Labels came too late for this file: few or none were due before the last row.

    ``nothing``: nothing at all was learned; ``kept``: a state keeps those that wait.
    """
    each = "label" if labels == 1 else "labels"
    was = "was" if learned == 1 else "were"
    claim = f"Only {count(learned)} of {count(labels)} {each} {was} due before the last row."
    if not learned:
        claim = f"None of the {count(labels)} labels was due before the last row"
        claim = "The one label was not due before the last row" if labels == 1 else claim
        claim += ": nothing was learned." if nothing else "."
    wait = labels - learned
    return Notice(
        "amber",
        claim,
        "A label is learned from before the first later row whose time has reached it; "
        f"{count(wait)} {'has' if wait == 1 else 'have'} no such row.",
        "The state keeps them for the next run."
        if kept
        else "Use a longer file, or `--state`, which keeps them for the next run.",
    )


def not_learned(learned: int, labels: int, reason: str, remedy: str) -> Notice:
    """Few or no labels taught the layer anything; ``reason`` is a sentence."""
    each = "label" if labels == 1 else "labels"
    some = f"Only {count(learned)}" if learned else "None"
    was = "was" if learned <= 1 else "were"
    claim = f"{some} of {count(labels)} {each} {was} learned from."
    return Notice("amber", claim, reason, remedy)


def few_labels(labels: int) -> Notice:
    """Too few labels to say anything."""
    return Notice(
        "amber",
        too_few(labels),
        "Averages over so few labels reflect chance more than the prediction.",
        "Run again with `--state` as labels arrive; the layer continues where it stopped.",
    )


def identity_broken(gap: str) -> Notice:
    """The averages from rows and from state differ by more than rounding."""
    return Notice(
        "red",
        f"Rows and state differ by {gap}.",
        "An update was lost or applied twice: the averages on this page cannot be trusted.",
        "Run `gradeq audit` on the state, then rerun from the files.",
    )


def loose_bounds(loose: int, groups: int) -> Notice:
    """The advance bound of some groups is larger than the bias they started with."""
    return Notice(
        "note",
        f"The worst-case bound is loose for {count(loose)} of {count(groups)} groups.",
        "It is larger than the bias they started with. The measured biases are exact regardless.",
    )


def vacuous_bounds(vacuous: int, total: int, noun: str, why: str) -> Notice:
    """The bound of some groups or players says nothing; ``noun`` is singular; ``why`` a sentence."""
    of = f" for {count(vacuous)} of {some(total, noun)}" if total > 1 else ""
    return Notice(
        "note",
        f"The worst-case bound is vacuous{of}.",
        f"It is no smaller than the largest error possible. {why} The measured averages are exact "
        "regardless.",
    )


def vacuous_because(
    rows: int, eta: float, capped: float | None, late: int, overlapping: bool, player: str = ""
) -> str:
    """Why a bound is vacuous: steps ``capped`` for late labels, step times rows too small, or overlap.

    ``player``: what plays, where rows are the games of the one that has the fewest.
    """
    what = "game" if player else "row"
    if capped is not None:
        return (
            f"Labels arrived up to {some(late, 'row')} late: steps went down to {plain(capped)}, and "
            "the bound grows with the delay."
        )
    if rows * eta < ENOUGH:
        if player:
            return (
                f"It shrinks as step × games grows: the step is {plain(eta)}, and the {player} with the "
                f"fewest games has {count(rows)}."
            )
        size = f"{some(rows, what)}, step {plain(eta)}"
        return f"It shrinks as step × {what}s grows, which is still small here ({size})."
    if overlapping:
        return f"Where {what}s count in several averages, it shrinks only with the square root of their number."
    return "The range of the data seen is large for the steps taken."


def worse_groups(
    biases: Sequence[tuple[str, Pair]],
    losses: Sequence[tuple[str, Pair]],
    total: int,
    what: str,
    loss: str,
    serious: bool,
) -> Notice:
    """Groups whose bias (``what``: or coverage) or loss got worse, by name."""
    names = {name for name, _ in (*biases, *losses)}

    def listed(pairs: Sequence[tuple[str, Pair]]) -> str:
        places = decimals(*(v for _, p in pairs for v in (p.before, p.after)), 0.0) + 1
        shown = [
            f"{clean(name, 40)} ({number(p.before, places)} to {number(p.after, places)})"
            for name, p in pairs[:5]
        ]
        more = f" and {count(len(pairs) - 5)} more" if len(pairs) > 5 else ""
        return ", ".join(shown) + more

    said = [f"{what}: {listed(biases)}."] if biases else []
    said += [f"{loss}: {listed(losses)}."] if losses else []
    return Notice(
        "amber" if serious else "note",
        f"{count(len(names))} of {some(total, 'group')} got worse.",
        " ".join(said)
        + ("" if serious else " The remaining errors are within twice their standard errors."),
    )


def looks_like_probabilities(outside: int, low: float, high: float) -> Notice:
    """Probabilities with 0/1 labels were corrected as plain numbers."""
    left = ""
    if outside:
        left = (
            f" {some(outside, 'served value')} left [0, 1], "
            f"from {number(low, 2)} to {number(high, 2)}."
        )
    return Notice(
        "amber",
        "These look like probabilities with 0/1 labels, corrected as plain numbers.",
        f"Every prediction lies in [0, 1] and every label is 0 or 1.{left}",
        "Add `--outcome binary`: served values then stay in [0, 1], and the log loss is shown.",
    )


def many_groups(column: str, groups: int, rows: int) -> Notice:
    """A group column with so many values that few rows are left for each."""
    return Notice(
        "amber",
        f"{count(groups)} groups in `{column}`.",
        f"That is {number(rows / max(groups, 1), 1)} rows a group; most corrections have "
        "barely started to learn.",
        "Bin the column, or drop this `--by`.",
    )


def coverage_not_guaranteed() -> Notice:
    """An ensemble without a final tracker: its coverage has no guarantee."""
    return Notice(
        "amber",
        "Coverage is not guaranteed.",
        "The weights of an ensemble minimise the pinball loss; they do not drive coverage to its "
        "target.",
        "Add `--eta` for a final tracker, which restores the guarantee.",
    )


def predicted_off(player: str, bias: float, games: int, off: int, total: int, noun: str) -> Notice:
    """Of ``total`` players with enough games the one whose predicted win rate is farthest from the actual one."""
    direction = "high" if bias > 0 else "low"
    others = (
        f"{count(off)} of {count(total)} {noun}s with {FEW} games or more are off by more than 1 point."
        if off > 1
        else f"No other {noun} with {FEW} games or more is off by more than 1 point."
    )
    return Notice(
        "amber",
        f"{player} is predicted {points(abs(bias), sign=False)} points too {direction}.",
        f"It played {count(games)} games. {others} Forecasts lag while a strength moves; once it stands "
        "still, what is left shrinks as 1 / (step × games).",
    )


def never_met(groups: list[list[str]]) -> Notice:
    """Groups of players that no game joins, the largest first: the others are named."""
    apart = [name for group in groups[1:] for name in group]
    named = ", ".join(clean(name, 40) for name in apart[:5])
    more = f" and {count(len(apart) - 5)} more" if len(apart) > 5 else ""
    return Notice(
        "amber",
        f"{some(len(apart), 'player')} never met the other {count(len(groups[0]))}.",
        f"No chain of games joins {named}{more} to them ({count(len(groups))} groups in all). "
        "Players of different groups cannot be compared: only the largest group is ranked.",
        "Rate each group separately, or add games between them.",
    )


def views_apart(correlation: float) -> Notice:
    """The strengths of the moment rank players in another order than the fit of all games."""
    return Notice(
        "amber",
        "Recent games and all games rank players differently.",
        f"The two views have a rank correlation of {correlation:.2f}. Where players mostly meet their "
        "equals, everyone wins half of the games, and only a fit of all games can tell them apart.",
        "Compare the columns `elo_all_time` and `elo_now`; `--view all-time` shows the fit alone.",
    )


def no_time(ordered: bool = True) -> Notice:
    """Games were taken in file order because no time column was given; ``ordered``: the board depends on it."""
    board = "recent games are those at its end" if ordered else "the all-time board ignores it"
    return Notice(
        "note",
        "No time column was given.",
        f"The order of the file counts as time: {board}. If it is shuffled, rating curves show "
        "convergence, not progress.",
        "Give `--time` if the games have dates"
        + ("; `--view all-time` ignores the order." if ordered else "."),
    )
