"""Warnings of a run and about its data: each a claim with a number, its evidence, and one thing to do."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from gradeq.certificates.figures import HIDDEN, LargeWeight, no_guarantee
from gradeq.report.components import clean
from gradeq.report.numerals import count, date, decimals, number, percent, plain, points, target
from gradeq.report.numerals import gap as power_of_ten
from gradeq.report.sentences import bias_side, loss_change, loss_sentence, text, too_few
from gradeq.report.story import BeforeAfter, CoverageFigures, LossFigures, Notice
from gradeq.tables import agreeing, some

if TYPE_CHECKING:
    from gradeq.certificates.certificate import Coverage

ENOUGH = 10.0  # step times rows: below it, the correction has hardly had time to move
FORGIVEN = 0.01  # of the labels: clocks may differ

amber, note, red = (partial(Notice, level) for level in ("amber", "note", "red"))


class LabelChange(NamedTuple):
    """A jump of the mean label: the first row after it, how many labels follow, and the mean on both sides."""

    axis: str
    x: float
    labels: int
    mean: BeforeAfter

    @property
    def position(self) -> str:
        """A position on the x axis: 2 April 2014, row 5,835, or 17.5."""
        if self.axis == "date":
            return date(self.x)
        return f"row {count(int(self.x))}" if self.axis == "row" else plain(self.x)


def labels_changed(
    change: LabelChange, bias: BeforeAfter, who: str, binary: bool, earlier: tuple[BeforeAfter, LossFigures]
) -> Notice:
    """The mean label jumped. ``bias``: after the jump; ``earlier``: bias and loss before it."""
    labels, mean, dated = change.labels, change.mean, change.axis == "date"
    if binary:
        every = "the one label is" if labels == 1 else f"all {count(labels)} labels are"
        share = f"{percent(mean.after)} of {some(labels, 'label')} are 1"
        rates = share if 0.0 < mean.after < 1.0 else f"{every} {mean.after:.0f}"
        rates += f"; before it, {percent(mean.before)} were{' 1' if mean.after == 0.0 else ''}"
    else:
        was, now = (number(value, decimals(mean.before, mean.after)) for value in (mean.before, mean.after))
        rates = f"{some(labels, 'label', 'is', 'average')} {now}; before it, {was}"
    places = decimals(bias.before, bias.after)
    bias_moved, loss_moved = (
        " to ".join(number(value, decimals(pair.before, pair.after) + 1) for value in (pair.before, pair.after))
        for pair in earlier
    )
    return amber(
        f"The labels changed {'on' if dated else 'at'} {change.position}.",
        f"From {'that day' if dated else 'there'} {rates}. There {who} was {bias_side(bias.before, places)} and the "
        f"served value {bias_side(bias.after, places)}. Without these rows the bias went from {bias_moved} and "
        f"{earlier[1].name} from {loss_moved}.",
        f"Check how the later labels were collected. If they are wrong, end the file before {change.position}.",
    )


def error_from_change(change: LabelChange, loss: LossFigures) -> Notice:
    """The loss fell only after the labels changed. ``loss``: before the change."""
    was, now = (number(v, decimals(loss.before, loss.after) + 1) for v in (loss.before, loss.after))
    return amber(
        f"The lower error comes from {agreeing(change.labels, 'that', 'those')} {some(change.labels, 'row')}.",
        f"Before {change.position} {loss.name} did not improve: {was} before, {now} after.",
        "On stable data, expect less bias but not better accuracy. A smaller `--eta` costs less.",
    )


def outside_range(outside: int, served: int, minimum: float, maximum: float, link: str) -> Notice:
    are = agreeing(outside, "is not a probability", "are not probabilities")
    return amber(
        f"{some(outside, 'served value')} ({percent(outside / max(served, 1))}) {are}.",
        f"{agreeing(outside, 'It lies', 'They lie')} outside [0, 1], from {number(minimum, 2)} to "
        f"{number(maximum, 2)}. The {link} link allows this.",
        "`--link logit` keeps values inside.",
    )


def like_probabilities(outside: int, low: float, high: float) -> Notice:
    left = f" {some(outside, 'served value')} left [0, 1], from {number(low, 2)} to {number(high, 2)}."
    return amber(
        "These look like probabilities with 0/1 labels, corrected as plain numbers.",
        f"Every prediction lies in [0, 1] and every label is 0 or 1.{left if outside else ''}",
        "Add `--outcome binary`: served values then stay in [0, 1], and the log loss is shown.",
    )


def bias_left(bias: BeforeAfter, why: str, remedy: str) -> Notice:
    places, left = decimals(bias.before, bias.after), percent(abs(bias.after / bias.before), 0)
    before, after = (number(abs(value), places) for value in (bias.before, bias.after))
    return amber(f"{left} of the bias is left: {after} of {before}.", why, remedy)


def coverage_off(found: CoverageFigures, weighted: bool, why: str, remedy: str) -> Notice:
    off = found.after - found.target
    level = "" if found.name == "interval" else f" at level {found.name}"
    by = " by weight" if weighted else ""
    covers = f"What was served covers {percent(found.after)} of labels{by}, the target is {target(found.target)}."
    return amber(
        f"Coverage{level} is {points(abs(off), False)} points {'below' if off < 0 else 'above'} its target.",
        f"{covers} {why}".strip(),
        remedy,
    )


def coverage_not_guaranteed() -> Notice:
    """An ensemble without a final tracker."""
    return amber(
        "Coverage is not guaranteed.",
        "The weights of an ensemble minimise the pinball loss; they do not drive coverage to its target.",
        "Add `--eta` for a final tracker, which restores the guarantee.",
    )


def short_series(series: int, labels: int, off: float) -> Notice:
    """``labels``: of a series, in the median; ``off``: how far from its target a series is on average."""
    return note(
        f"The {count(series)} series are short: {some(labels, 'label')} in the median.",
        f"Alone they are off target by {points(off, False)} points on average.",
        "Try `--pool` and no `--eta`: series then share an overall correction.",
    )


def loss_worse(loss: LossFigures, remedy: str = "") -> Notice | None:
    """The loss got worse by more than 0.5 %; None when it did not."""
    if loss_change(loss) != "rose":
        return None
    share = loss.after / loss.before - 1.0 if loss.before > 0 else math.nan
    more = f" by {percent(share)}" if math.isfinite(share) else ""
    remedy = remedy or "Try a smaller `--eta`, or `--eta auto`, which also weighs the raw prediction."
    return amber(f"{loss.name[:1].upper()}{loss.name[1:]} got worse{more}.", text(loss_sentence(loss)), remedy)


def rows_too_large(rows: int, weights: bool, features: bool, squared: bool, unit: bool = False) -> Notice:
    """Rows too large for the step. ``squared``: with squared error. ``unit``: parameters have the labels' unit."""
    size = " times ".join(["relative weight"] * weights + ["squared size"] * features)
    if squared and size:
        why = f"The squared error is stable while step times {size} is below 2; such a row has 1 / ({size}) instead."
    elif squared:
        why = "The squared error is stable while the step is below 2; such a row has a step of 1 instead."
    elif unit:
        why = "A row of 20 times the mean weight or more moves the correction as far as ten rows of the mean weight."
    else:
        why = f"Where step times {size} is 2 or more, a heavy row moves the correction by about 1 and no more."
    remedy = "Scale features to about 1" if features else "Use a schedule whose steps stay below 2"
    if weights:
        remedy = f"{remedy}; only" if features else "If a weight is a mistake, correct it; only"
        remedy += " ratios of weights matter"
    return note(
        f"{some(rows, 'row', 'was', 'were')} too large for the step and got a smaller one.", why, f"{remedy}."
    )


def large_weight(found: LargeWeight) -> Notice:
    usual = plain(float(f"{found.usual:.3g}"))
    slowest, rows = (count(round(value)) for value in (found.slowest, min(found.rows, 1e15)))
    return amber(
        f"The weight {found.named} outweighs all others, which are {usual} on average.",
        f"Weights are relative to the mean so far: later rows are learned up to {slowest} times as slowly, until "
        f"about {rows} rows were served.",
        "If it is a mistake, correct it and start again from the state before it; if it is right, cap the weights, "
        "for example at 20 times their median.",
    )


def few_labels(labels: int) -> Notice:
    return amber(
        too_few(labels),
        "Averages over so few labels reflect chance more than the prediction.",
        "Run again with `--state` as labels arrive; the layer continues where it stopped.",
    )


def identity_broken(gap: float) -> Notice:
    return red(
        f"Rows and state differ by {power_of_ten(gap)}.",
        "The state is not the sum of the rows it has counted: the averages on this page cannot be trusted.",
        "Run `gradeq audit` on the state, then rerun from the files.",
    )


def loose_bounds(loose: int, groups: int) -> Notice:
    return note(
        f"The worst-case bound is loose for {count(loose)} of {some(groups, 'group')}.",
        f"It is larger than the bias {agreeing(loose, 'it', 'they')} started with. "
        "The measured biases are exact regardless.",
    )


def vacuous_bounds(vacuous: int, total: int, noun: str, why: str) -> Notice:
    return vacuous_bound(f"There is no worst-case guarantee for {count(vacuous)} of {some(total, noun)}.", why)


def layer_bound_vacuous(needed: int | None, why: str, of: str = "") -> Notice:
    """The bound of the layer is vacuous. ``needed`` and ``of`` as for ``no_guarantee``. ``why``: a sentence."""
    claim = no_guarantee(needed, of=of)
    return vacuous_bound(f"{claim[:1].upper()}{claim[1:]}.", "" if needed is None else why)


def vacuous_bound(claim: str, why: str) -> Notice:
    first = "The bound proven in advance is no smaller than the raw error."
    return note(claim, " ".join(filter(None, (first, why, "The measured averages are exact regardless."))))


def vacuous_because(
    rows: int, eta: float, capped: float | None, late: str, overlapping: bool, player: str = ""
) -> str:
    """Why a bound is vacuous: late labels capped the steps, too few rows for the step, or overlapping groups.

    ``capped``: the smallest capped step, 0 if unknown, None if no step was capped for lateness.
    ``player``: what plays, if rows are games; ``rows`` then counts those of the player with the fewest.
    """
    what = "game" if player else "row"
    if capped is not None:
        came = f"Labels arrived up to {late} late: steps" if late else "For late labels steps"
        down = f"went down to {plain(capped)}" if capped else "were capped"
        return f"{came} {down}, and the bound grows with the delay."
    if rows * eta < ENOUGH:
        grows = f"It shrinks as step × {what}s grows"
        if player:
            return f"{grows}: the step is {plain(eta)}, and the {player} with the fewest games has {count(rows)}."
        return f"{grows}, which is still small here ({some(rows, what)}, step {plain(eta)})."
    if overlapping:
        return f"Where {what}s count in several averages, it shrinks only with the square root of their number."
    return "The range of the data seen is large for the steps taken."


def many_groups(column: str, groups: int, rows: int, series: bool = False) -> Notice:
    """A column with so many groups or series that each has few rows."""
    remedy = "Give `--key` a column whose values come back, or drop it."
    return amber(
        f"{count(groups)} {'series' if series else 'groups'} in `{column}`.",
        f"That is {number(rows / max(groups, 1), 1)} rows a {'series' if series else 'group'}; most corrections have "
        "barely started to learn.",
        remedy if series else "Bin the column, or drop this `--by`.",
    )


def judged_before_limits(coverage: Sequence[Coverage]) -> Notice | None:
    """The coverage as served beside the one before the limits, if they differ."""
    apart = [
        f"{percent(c.clipped)} of labels (target {target(c.target)}, judged: {percent(c.after)})"
        for c in coverage
        if c.clipped is not None and c.clipped != c.after
    ]
    if not apart:
        return None
    return note(
        "Coverage on this page is judged before the limits of the support.",
        f"Inside them, what was served covers {', '.join(apart[:9])}. A state has no such figure of the raw ones.",
    )


def held_inside(low: float | None, high: float | None, coverage: Sequence[CoverageFigures], loss: float) -> Notice:
    """What limits do to the coverage and the loss."""
    ends = [f"at {plain(low)} or above"] if low is not None else []
    ends += [f"at {plain(high)} or below"] if high is not None else []
    levels = []
    for c in coverage[:9]:
        if c.held is not None:
            of = "labels" if c.name == "interval" else f"labels at level {c.name}"
            levels.append(
                f"{percent(c.held.after)} of {of} (judged: {percent(c.after)}), "
                f"the raw forecast {percent(c.held.before)} (judged: {percent(c.before)})"
            )
    return note(
        f"What was served stays {' and '.join(ends)}.",
        f"As served it covers {'; '.join(levels)}; pinball loss {loss:.4g}. Coverage is "
        "judged before the limits, because labels tied at a limit would always count as covered.",
    )


def tied_labels(
    value: float, below: float, equal: float, levels: Sequence[str], limited: bool, interval: bool = False
) -> Notice:
    """Many labels share one value. ``levels``: those that no single value can meet.

    ``limited``: served values are clipped there. ``interval``: the levels are the ends of an interval.
    """
    shown = plain(value)
    least = percent(math.floor(1000.0 * (below + equal)) / 1000.0)
    most = f"at most {percent(math.ceil(1000.0 * below) / 1000.0)}" if below > 0.0 else "none"
    fact = f"Every value of {shown} or more covers at least {least} of labels, a lower one {most}"
    each = ", ".join(target(float(level)) for level in levels[:9])
    remedy = ""
    if not levels:
        fact += "; your levels lie outside that range and keep their usual meaning."
    elif limited and interval:
        fact += f". A lower end held at {shown} is inclusive there, so the interval keeps its meaning."
    elif limited:
        fact += f": clipped to {shown}, what is served covers more than the {each} you ask for."
        remedy = f"Read it as “{shown} is all you can expect at this level”."
    else:
        fact += f", so no single value covers {each}: it is met on average, by values on both sides."
        if below == 0.0:
            remedy = f"If labels are never below {shown}, say so with `--min {shown}`."
    return note(f"{percent(equal, 0)} of the labels are exactly {shown}.", fact, remedy)


def crossing(crossed: int, rows: int) -> Notice:
    claim = f"{count(crossed)} of {some(rows, 'row')} had crossing forecasts; they were sorted."
    evidence = "The forecast of a higher level was below that of a lower one."
    if 2 * crossed <= rows:
        return note(claim, evidence)
    remedy = "Give `--prediction` in the order of `--level`, for an interval the lower end first."
    return amber(claim, f"{evidence} The columns may be given in the wrong order.", remedy)


def steps_capped(
    least: float | None,
    labels: int,
    late: str,
    before: str = "",
    *,
    weighted: bool = False,
    heavy: int = 0,
    features: bool = False,
) -> Notice:
    """Labels came ``late`` (for example 24 rows), so steps were capped. ``before``: for example you asked for 0.05.

    ``least``: the smallest capped step, None if unknown. ``weighted``, ``features``: whether rows have them.
    ``heavy``: how many labels were capped only because of their weight.
    """
    down = "" if least is None else f", down to {plain(least)}"
    cause = f"Labels arrived up to {late} late: steps" if late else "Steps"
    before = before and f" ({before})"
    if heavy == labels:
        return note(
            f"{cause} of {some(labels, 'heavy row')} were capped{down}{before}.",
            "The cap is on step times relative weight. Labels this late would not have capped a row of the mean "
            "weight: the weights did.",
            "If a weight is a mistake, correct it.",
        )
    why = "With larger steps, labels that arrive late together overshoot."
    if weighted:
        why += " The cap is on step times relative weight, so the smallest steps are those of heavy rows"
        why += f"; {count(heavy)} of these labels it would not have capped at the mean weight." if heavy else "."
    if features:
        why += " With features the cap is divided by the largest squared size of a row."
    claim = f"{cause} were capped{down}{',' if down else ''} for {some(labels, 'label')}{before}."
    return note(claim, f"{why} Steps grow again once labels arrive with less delay.")


def assumed_at_once() -> Notice:
    return note(
        "Each label was assumed known before the next prediction.",
        "If labels arrive later, expect less improvement than shown here.",
        "Say when they arrive with `--delay` (rows, or a duration such as 3d) or `--label-time`. "
        "If several rows share a date, also pass `--time`.",
    )


def dated_before(early: int, labels: int, first: str) -> Notice:
    are, whose = agreeing(early, "is", "are"), agreeing(early, "its row", "their row")
    return Notice(
        "amber" if early > FORGIVEN * labels else "note",
        f"{count(early)} of {some(labels, 'label')} {are} dated before {whose}; are --time and --label-time swapped?",
        f"The first is {first}. A label cannot be known before its row is served: each was taken as known right "
        "after it, so figures may be better than the truth. A date without a time of day counts as its midnight.",
        "Give `--time` the column that says when rows are served, `--label-time` the one that says when labels come.",
    )


def no_cap_with_late_labels(eta: float, late: str) -> Notice:
    return amber(
        f"Labels arrived up to {late} late and steps were not capped.",
        f"With a step of {plain(eta)} and labels this late, corrections can oscillate or diverge.",
        "Remove `--no-cap`.",
    )


def read_as_seconds(option: str, number: str) -> Notice:
    """A span without a unit, where times are dates."""
    return amber(
        f"`{option} {clean(number, 20)}` is read as seconds.",
        "The times are dates, and the number has no unit.",
        f"Write the unit: `{option} {clean(number, 20)}d` for days, `h` for hours, `m` for minutes, `s` for seconds.",
    )


def no_label(rows: int, later: bool | None = None, waiting: int = 0) -> Notice:
    """Rows without a label. ``later``: whether `gradeq label` can add it. ``waiting``: how many have a ticket."""
    them = agreeing(rows, "it", "them")
    claim = f"{some(rows, 'row', 'has', 'have')} no label: nothing is claimed about {them}."
    if waiting:
        wait = some(waiting, "row", "waits for its label", "wait for their label")
        rest = f", {count(rows - waiting)} more will have none" if rows > waiting else ""
        claim = f"{wait}{rest}: nothing is claimed about {them} yet."
    were, are = agreeing(rows, "It was", "They were"), agreeing(rows, "is", "are")
    how = {
        None: "",
        True: "`gradeq label` with the same `--state` and `--id` brings the labels later.",
        False: "With `--id` and `--state` such rows wait, and `gradeq label` brings their labels later.",
    }
    evidence = f"{were} served with the corrections learned so far and {are} excluded from every average."
    return note(claim, evidence, how[later])


def immature(rows: int, maturity: str, keeps: bool) -> Notice:
    return note(
        f"{some(rows, 'row', 'is', 'are')} younger than --maturity {maturity}: nothing is claimed about "
        f"{agreeing(rows, 'it', 'them')} yet.",
        "Every average is over rows that are mature; among younger ones labels of one value may be known earlier.",
        "The state keeps their labels until then." if keeps else "",
    )


def labels_held_back(labels: int, why: str) -> Notice:
    """Labels are held back: their delay seems to depend on their value. ``why``: the evidence, empty if weak."""
    held = f"{some(labels, 'label', 'is', 'are')} held back"
    if not why:
        return note(
            f"{held} until more come.",
            "They contradict the predictions, and most older rows still wait for theirs.",
            "If the delay of a label does not depend on its value, give `--maturity 0` when the state begins.",
        )
    return amber(
        f"Labels of one value seem to come earlier: {held}.",
        f"{why[:1].upper()}{why[1:]}. Learning from them would shift every prediction towards the early ones. A "
        "label is learned once nine in ten of the rows served with its own have one, or once its row is older than "
        "any row was when its label came.",
        "Begin a state with `--maturity SPAN`, the age at which every label is known (and `--missing-is 0` if "
        "those that did not come count as 0); `--maturity 0` if the delay does not depend on the value.",
    )


def not_due(learned: int, labels: int, keeps: bool, early: int = 0) -> Notice:
    """Few or no labels were due before a later row. ``keeps``: a state keeps the waiting labels.

    ``early``: labels dated before their own rows; they wait only because no row follows.
    """
    wait = labels - learned
    if early >= wait:
        claim = f"No row follows {agreeing(wait, 'the row of', 'the rows of')} {some(wait, 'label')}"
    elif learned:
        due = agreeing(learned, "was due", "were due")
        claim = f"Only {count(learned)} of {some(labels, 'label')} {due} before the last row"
    else:
        claim = f"{some(labels, 'label', 'was', 'were')} not due before the last row"
    return amber(
        f"{claim}{'.' if learned else ': nothing was learned.'}",
        "A label is learned from before the first later row whose time has reached it; "
        f"{count(wait)} {agreeing(wait, 'has', 'have')} no such row.",
        "The state keeps them for the next run." if keeps else "Use a longer file, or `--state`, which keeps them.",
    )


def not_learned(learned: int, labels: int, reason: str, remedy: str) -> Notice:
    only = f"Only {count(learned)}" if learned else "None"
    return amber(
        f"{only} of {some(labels, 'label')} {'were' if learned > 1 else 'was'} learned from.", reason, remedy
    )


def too_late(labels: int, ttl: str) -> Notice:
    were, them = agreeing(labels, "was", "were"), agreeing(labels, "it", "them")
    return note(
        f"{some(labels, 'label')} came later than --ttl {ttl} allows and {were} not learned from.",
        f"Averages over labelled rows include {them}; what was learned, and the certificate, do not.",
    )


def unknown_ids(labels: int, none_known: bool, stranger: str, waiting: str | None) -> Notice:
    """Labels with ids that the state does not know. ``none_known``: no other label came, though rows wait.

    ``stranger`` is one of these ids, ``waiting`` one of a row that waits.
    """
    claim = f"The state does not know the {agreeing(labels, 'id', 'ids')} of {some(labels, 'label')}"
    beside = "no row waits" if waiting is None else f"a row waits under {clean(waiting, 40)!r}"
    evidence = (
        f"{agreeing(labels, 'It is', 'One of them is')} {clean(stranger, 40)!r}; {beside}. Such rows were served "
        "elsewhere, or so long ago that their ids are forgotten (the last 10,000 with a label are kept)."
    )
    if not none_known:
        return note(f"{claim}.", evidence)
    remedy = "See that `--id` names the column with the ids that rows were served under."
    return amber(f"{claim}, and no other label came.", evidence, remedy)


def conflicting(labels: int) -> Notice:
    claim = f"{some(labels, 'label')} had another value than the one already learned from."
    return note(claim, "The first value stays.", "`--correct` replaces the old value by the new one.")


def rows_repeated(what: str) -> Notice:
    evidence = f"Reason: {what}. What was learned from them the first time stays."
    return note("Rows that the state had seen were taken again (--again).", evidence)


def clocks_changed(where: str) -> Notice:
    return amber(
        f"Times without a zone go back by {where}: were clocks changed?",
        "Rows were served in the order of the written times, so rows of that hour may be in the wrong order.",
        "Write times with a zone (2024-01-31T17:05:00+01:00) or in UTC.",
    )


def figures_not_known(figures: Sequence[str]) -> Notice | None:
    if not figures:
        return None
    named = " and ".join(figures)
    return amber(
        f"{named[0].upper()}{named[1:]} since the state began: not known.",
        f"The sums cannot be read: {HIDDEN}.",
        "Go back to the state saved before that label; `--min` and `--max` refuse such values.",
    )


def far_value(noun: str, many: int, value: float, where: str) -> Notice:
    """Predictions or labels far outside the range seen before. ``value``: the largest."""
    return amber(
        f"{some(many, noun, 'lies', 'lie')} far outside everything seen before: {clean(where, 80)} has {value:.6g}.",
        "It is over 100,000 times as large as 99 % of the values; what is served from now on may be far off.",
        "If it is wrong, go back to the state saved before this run; "
        "`--min` and `--max`, given from the first day, refuse such values.",
    )


class Cause(NamedTuple):
    """Why served values are out of proportion, and what to do."""

    why: str
    remedy: str


FAR_LABEL = Cause(
    "A label that far from its prediction was learned from; it may move what is served even after it was corrected.",
    "Go back to the state saved before that label, or start a new one.",
)
FAR_PREDICTION = Cause(
    "A prediction far outside all others was learned from.",
    "Go back to the state saved before that prediction, or start a new one.",
)
FAR_APART = Cause(
    "A row was learned from whose prediction and label lie that far apart; it may move what is served even after a "
    "correction.",
    "Go back to the state saved before that row, or start a new one.",
)
LATE_UNCAPPED = Cause(
    "Labels came late and steps were not capped, so corrections overshoot.", "Start a new state without `--no-cap`."
)
ABSOLUTE_WEIGHTS = Cause(
    "Weights far above 1 multiplied the step when the state was made; they are relative to their mean by now.",
    "Start a new state from the files.",
)
UNKNOWN = Cause(
    "No label or prediction seen here lies that far out: the rows do not show what moved it.",
    "Go back to a state that served usual values, or start a new one.",
)


def served_out_of_range(many: int, value: float, where: str, cause: Cause = UNKNOWN) -> Notice:
    """Served values far larger than the forecasts and labels. ``value``: the largest."""
    return red(
        f"{some(many, 'served value', 'is', 'are')} out of all proportion: "
        f"{clean(where, 80)} was served {value:.6g}.",
        f"{agreeing(many, 'It is', 'Each is')} over 1,000 times as large as its prediction and as all usual "
        f"predictions and labels. {cause.why}",
        f"Do not use these values. {cause.remedy}",
    )


def means_remember(many: int, id: str, old: float, new: float) -> Notice:
    labels, were = "A label" if many == 1 else some(many, "label"), agreeing(many, "was", "were")
    return amber(
        f"{labels} that {were} far off {were} corrected: id {clean(id, 80)!r} from {old:.6g} to {new:.6g}.",
        "Bias, loss, certificate and the final step are corrected exactly, apart from rounding. The running means of "
        "the automatic step also include the old label, and forget it over 10 to 30,000 labels, like every other.",
        "If what is served is off, go back to the state saved before that label and post the right one; with "
        "`--eta plain` a correction undoes everything learned from a label.",
    )
