"""The warnings that matter after a run, in the words of the report."""

from __future__ import annotations

from typing import Any

from gradeq.cli.keys_words import pool_hint
from gradeq.cli.missed import missed
from gradeq.cli.options import Common, labels_later
from gradeq.cli.outcome import GroupLine, Outcome
from gradeq.cli.ties import tie_notices
from gradeq.cli.trend import weighted
from gradeq.engine.flight import LABELS, SQUARED
from gradeq.learning import learning_of
from gradeq.report import late_notices as late_say
from gradeq.report import notices as say
from gradeq.report.change import label_change
from gradeq.report.harm import Measured, harm
from gradeq.report.limits import crossing
from gradeq.report.numerals import gap as spelled
from gradeq.report.numerals import some
from gradeq.report.of_state import held_back
from gradeq.report.story import Loss, Notice, Pair
from gradeq.report.words import FEW, subject

HARDLY = 0.1  # of the labels: fewer learned from are hardly any
MANY = 1000  # groups of one column
BROKEN = 1e-6  # relative: rows and state differ by more than rounding can explain


def notices(outcome: Outcome, pass_: Any) -> tuple[Notice, ...]:
    """Every warning of a debias or quantile run, the serious ones first."""
    found: list[Notice | None] = [held_back(outcome.layer)]
    options = outcome.task.common
    hardly, off = unlearned(outcome, options, outcome.counted, pass_.waiting, pass_.expired), None
    if outcome.counted >= FEW:
        off = None if hardly else missed(outcome, loss_of(outcome))
        found += [*changed(outcome, pass_), *harmed(outcome), off]
    elif outcome.labelled or not labels_later(options):
        found.append(say.few_labels(outcome.counted))
    found.append(hardly)
    found += [gave_up(pass_.expired, options), taken_at_once(outcome, options)]
    found.append(pass_.dates.notice())
    found += stepping(outcome, options, whose_step(options.eta is not None, outcome.continued))
    found += pass_.watch.notices()
    found += [*ranges(outcome), *crowds(outcome)]
    if outcome.eta is None:  # an ensemble without a final tracker
        found.append(say.coverage_not_guaranteed())
    later = labels_later(options)
    none = outcome.rows - outcome.labelled - pass_.immature
    if none and (outcome.labelled or not later):
        open_tickets = len(outcome.layer._book.opened) if later else 0
        found.append(late_say.no_label(none, later, min(none, open_tickets)))
    if pass_.immature and (outcome.labelled or not later):
        found.append(late_say.immature(pass_.immature, str(options.maturity), later))
    found.append(crossing(pass_.crossed, outcome.rows))
    found += [*tie_notices(outcome, pass_.ties), *bounds(outcome)]
    found.append(pool_hint(outcome) if off is None else None)
    reached = outcome.equilibrium
    if reached.balance == "broken" and reached.gap > BROKEN * max(1.0, abs(reached.largest)):
        found.append(say.identity_broken(spelled(reached.gap)))
    return say.ordered(notice for notice in found if notice is not None)


def loss_of(outcome: Outcome) -> Loss:
    """The loss before and after, named: that of the values in use, inside --min and --max."""
    name = "squared error" if outcome.task.command == "debias" else "pinball loss"
    return Loss(name, *outcome.used("loss"), negligible=outcome.equilibrium.negligible)


def harmed(outcome: Outcome) -> list[Notice]:
    """What got worse over the rows of this run: the loss, and groups by name."""
    from gradeq.cli.summary import error_of

    (measure, target), loss = error_of(outcome), outcome.task.used("loss")

    def pair(line: GroupLine, name: str) -> Pair:
        return Pair(line.means[f"{name}_before"], line.means[f"{name}_after"])

    groups = [
        Measured(
            line.name, line.counted, pair(line, measure), pair(line, loss),
            None if measure == "bias" else target,
        )
        for line in outcome.groups if line.counted
    ]  # fmt: skip
    weighted = outcome.task.common.weight is not None
    return harm(outcome.layer, loss_of(outcome), outcome.counted, groups, weighted)


def changed(outcome: Outcome, pass_: Any) -> list[Notice]:
    """The labels jumped, and perhaps the lower error comes from there only."""
    change = label_change(pass_.trend.blocks)
    if change is None or outcome.task.command != "debias":
        return []
    before, after = weighted(change.before), weighted(change.after)
    axis, binary = pass_.axis, outcome.task.outcome == "binary"

    def bias(means: dict[str, float]) -> Pair:
        return Pair(means["before"] - means["label"], means["after"] - means["label"])

    loss = loss_of(outcome)
    earlier = Loss(loss.name, before["loss_before"], before["loss_after"])
    found = [
        say.labels_changed(
            axis, change.x, change.rows_after,
            Pair(change.before["label"], change.after["label"]),
            bias(after), subject(outcome.task.prediction), "", binary, (bias(before), earlier),
        )
    ]  # fmt: skip
    if loss.after < loss.before and earlier.after >= earlier.before:
        found.append(say.error_from_change(axis, change.x, change.rows_after, earlier))
    return found


def unlearned(
    outcome: Any, options: Common, counted: int, waiting: int, expired: int
) -> Notice | None:
    """Labels were there and hardly any was learned from: late, without a time, of weight 0, or frozen.

    ``counted`` labels of this run have a weight; ``waiting`` labels are not due yet,
    ``expired`` came later than --ttl allows.
    """
    labels, learned = outcome.labelled, outcome.learned
    if not labels or (learned >= FEW and learned >= HARDLY * counted):
        return None
    if not counted:
        reason = f"Every labelled row has weight 0 in `{options.weight}`: such rows are served but not learned from."
        return late_say.not_learned(
            0, labels, reason, "Give the rows to learn from a weight above 0."
        )
    if outcome.layer.frozen:
        reason = "The layer in this state is frozen: labels are recorded but change nothing."
        return late_say.not_learned(
            0, counted, reason, "Load it in Python, call `resume()`, and save it."
        )
    missed = counted - learned
    at_once = options.label_time is None and options.delay is None and options.maturity is None
    if at_once or 2 * missed <= counted:
        return None
    if 2 * waiting >= missed:
        return late_say.not_due(learned, learned + waiting, not learned, options.state is not None)
    if 2 * expired >= missed - waiting:
        reason = f"{some(expired, 'label')} came later than --ttl {options.ttl} allows."
        return late_say.not_learned(learned, counted, reason, "Give `--ttl` a longer time.")
    if options.label_time is None:
        return None
    reason = f"{some(missed - waiting - expired, 'label')} have no time in `{options.label_time}`."
    remedy = "Fill in when labels became known, or drop `--label-time`."
    return late_say.not_learned(learned, counted, reason, remedy)


def taken_at_once(outcome: Any, options: Common) -> Notice | None:
    """Nothing was said of when labels come, so each was taken as known before the next row."""
    said = options.label_time or options.delay is not None or options.maturity not in (None, "0")
    return None if said or not outcome.labelled else late_say.labels_at_once()


def gave_up(labels: int, options: Common) -> Notice | None:
    """Labels came later than --ttl allows."""
    return late_say.too_late(labels, str(options.ttl)) if labels else None


def stepping(outcome: Any, options: Common, whose: str) -> list[Notice]:
    """Steps were held down for late labels, or should have been; rows were too large for them."""
    eta = outcome.layer.step if outcome.eta == "auto" else outcome.eta
    held, late = outcome.capped, learning_of(outcome.layer).lateness
    found = []
    if held is not None:
        found.append(late_say.steps_held(eta, float(f"{held.least:.3g}"), held.rows, late, whose))
    elif options.no_cap and late and eta is not None:
        found.append(late_say.no_cap_with_late_labels(eta, late))
    if outcome.resized:
        layer = outcome.layer
        own = (layer._state.born("weighed"), layer._flight.featured)
        kinds = (layer._sizing == SQUARED, layer._sizing == LABELS)
        found.append(say.rows_too_large(outcome.resized, *own, *kinds))
    return found


def whose_step(given: bool, continued: bool) -> str:
    """Where the step that was held down comes from."""
    return "you asked for" if given else "the state has" if continued else "the default is"


def because(outcome: Outcome, rows: int) -> str:
    """Why a bound over these rows is vacuous."""
    held, several = outcome.capped, len(outcome.task.by) + len(outcome.task.features) > 1
    late = learning_of(outcome.layer).lateness
    least = None if held is None else float(f"{held.least:.3g}")
    return say.vacuous_because(rows, outcome.layer.step, least, late, several)


def ranges(outcome: Outcome) -> list[Notice]:
    """Served values that are not probabilities, or probabilities that were not said to be such."""
    if outcome.probable:
        return [say.looks_like_probabilities(outcome.outside, *outcome.extremes)]
    if not outcome.outside:
        return []
    low, high = outcome.extremes
    return [say.outside_range(outcome.outside, outcome.rows, low, high, outcome.task.link)]


def crowds(outcome: Outcome) -> list[Notice]:
    """A column of groups or series with far more values than such a column has."""
    found, task = [], outcome.task
    for by in task.by:
        count = sum(line.by == by for line in outcome.groups)
        if count > MANY or scattered(count, outcome.rows):
            found.append(say.many_groups(by, count, outcome.rows))
    series = 0 if task.key is None else outcome.layer._names.keys
    # With a state series come back in other files.
    if task.common.state is None and scattered(series, outcome.rows):
        found.append(say.many_series(task.key or "", series, outcome.rows))
    return found


def scattered(values: int, rows: int) -> bool:
    """Whether there are many values and hardly a row for each."""
    return values > 100 and values * 3 > rows


def bounds(outcome: Outcome) -> list[Notice]:
    """Where the advance bound says little or nothing."""
    task, groups = outcome.task, [line for line in outcome.groups if line.counted]
    if not outcome.counted or outcome.equilibrium.bound is None:
        return []
    vacuous = [line for line in groups if line.vacuous]
    if len(groups) > 1 and vacuous:
        why = because(outcome, min(line.counted for line in vacuous))
        return [say.vacuous_bounds(len(vacuous), len(groups), "group", why)]
    if len(groups) <= 1:
        if not outcome.equilibrium.vacuous:
            return []
        return [say.vacuous_bounds(1, 1, "group", because(outcome, outcome.counted))]
    if task.command == "debias":
        loose = [
            line for line in groups
            if line.bound is not None and line.bound > abs(line.means["bias_before"])
        ]  # fmt: skip
        if loose:
            return [say.loose_bounds(len(loose), len(groups))]
    return []
