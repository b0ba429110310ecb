"""The warnings of a run, each as a claim with a number, its evidence, and one thing to do.

Numbers in, :class:`Notice` out; the terminal prints the claim and the remedy, the page all three.
"""

import math
from collections.abc import Iterable, Sequence

from gradeq.report.markup import clean
from gradeq.report.numerals import count, date, decimals, number, percent, plain, some
from gradeq.report.story import Loss, Notice, Pair
from gradeq.report.words import loss_change, loss_sentence, side, text, too_few

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
    if loss_change(loss) != "rose":
        return None
    name = loss.name[:1].upper() + loss.name[1:]
    share = loss.after / loss.before - 1.0 if loss.before > 0 else math.nan
    more = f" by {percent(share)}" if math.isfinite(share) else ""
    return Notice(
        "amber",
        f"{name} got worse{more}.",
        text(loss_sentence(loss)),
        remedy or "Try a smaller `--eta`, or `--eta auto`, which also weighs the raw prediction.",
    )


def rows_too_large(
    rows: int, weights: bool, features: bool, squared: bool, unit: bool = False
) -> Notice:
    """Rows too large for the step: each got a smaller one. ``weights``, ``features``: what rows have; ``squared``:
    the error is; ``unit``: parameters have the unit of the labels."""
    were = "row was" if rows == 1 else "rows were"
    what = [word for word, there in (("weights", weights), ("features", features)) if there]
    size = " times ".join(
        word for word, there in (("relative weight", weights), ("squared size", features)) if there
    )
    if squared and what:
        why = f"The squared error is stable while step times {size} is below 2; such a row has 1 / ({size}) instead."
    elif squared:
        why = "The squared error is stable while the step is below 2; such a row has a step of 1 instead."
    elif unit:
        why = "A row of 20 times the mean weight or more moves the correction as far as ten rows of the mean weight."
    else:
        why = f"Where step times {size} is 2 or more, a heavy row moves the correction by about 1 and no more."
    remedy = {
        (): "Use a schedule whose steps stay below 2.",
        ("weights",): "If a weight is a mistake, correct it; only ratios of weights matter.",
        ("features",): "Scale features to about 1.",
    }.get(tuple(what), "Scale features to about 1; of weights only ratios matter.")
    return Notice(
        "note", f"{count(rows)} {were} too large for the step and got a smaller one.", why, remedy
    )


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
        "The state is not the sum of the rows it has counted: the averages on this page cannot be trusted.",
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
        f"There is no worst-case guarantee yet{of}.",
        f"The bound proven in advance is no smaller than the raw error. {why} The measured averages are exact "
        "regardless.",
    )


def vacuous_because(
    rows: int, eta: float, capped: float | None, late: str, overlapping: bool, player: str = ""
) -> str:
    """Why a bound is vacuous: steps ``capped`` for late labels, step times rows too small, or overlap.

    ``player``: what plays, where rows are the games of the one that has the fewest.
    """
    what = "game" if player else "row"
    if capped is not None:
        came = f"Labels arrived up to {late} late: steps" if late else "For late labels steps"
        return f"{came} went down to {plain(capped)}, and the bound grows with the delay."
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
    return _many(column, groups, rows, ("group", "groups"), "Bin the column, or drop this `--by`.")


def many_series(column: str, series: int, rows: int) -> Notice:
    """A key whose values hardly come back."""
    remedy = "Give `--key` a column whose values come back, or drop it."
    return _many(column, series, rows, ("series", "series"), remedy)


def _many(column: str, values: int, rows: int, nouns: tuple[str, str], remedy: str) -> Notice:
    return Notice(
        "amber",
        f"{count(values)} {nouns[1]} in `{column}`.",
        f"That is {number(rows / max(values, 1), 1)} rows a {nouns[0]}; most corrections have "
        "barely started to learn.",
        remedy,
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
