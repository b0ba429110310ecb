"""Warnings about a run: its figures, its bounds, why it missed its target, outliers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from gradeq.certificates.figures import large_weight, learning_of
from gradeq.cli.outcome import CommonLabel, RunOutcome, weighted_means
from gradeq.cli.task import BEYOND
from gradeq.engine.lateness import LABELS, SQUARED
from gradeq.files.cells import Floats, Ints
from gradeq.inputs.durations import duration
from gradeq.kernels.account import COLUMNS, HIGH, LOW
from gradeq.ledger import facts as fact
from gradeq.report import notices as say
from gradeq.report.numerals import plain
from gradeq.report.rolling import label_change
from gradeq.report.sentences import FEW, ordered, subject
from gradeq.report.state_facts import GroupFigures, coverages_of, held_back_notice, with_coverage_bound, worse_notices
from gradeq.report.story import BeforeAfter, LossFigures, Notice
from gradeq.tables import some

if TYPE_CHECKING:
    from gradeq.cli.elo_job import EloOutcome
    from gradeq.layers.layer import Layer
    from gradeq.report.state_facts import RankedSeries


FEW_LEARNED = 0.1  # of the labels: a smaller share learned from is reported
MANY_GROUPS = 1000  # groups of one column; as many series can be groups of one layer
BROKEN = 1e-6  # relative: rows and state differ by more than rounding can explain
CLEARLY_OFF = 4.0  # standard errors: more is not chance, even where labels depend on each other somewhat
NOTABLE = 0.03  # of all labels: a smaller miss is not reported
# A remaining bias is reported above 20 % of the bias before and 10 % of the typical error.
SHARE_LEFT, BIAS_LEFT = 0.2, 0.1
TIE_AT_A_LEVEL = 0.05  # of the labels: every level inside the tie has the tied value
LARGE_TIE = 0.2  # of the labels: worth saying whatever the levels
# Pooling may help several series with few labels (the median) whose coverage is off target by this much.
MIN_SERIES, SHORT_SERIES, OFF_TARGET = 5, 500, 0.03


def all_notices(outcome: RunOutcome) -> tuple[Notice, ...]:
    """All warnings of a debias or quantile run, serious ones first."""
    notices: list[Notice | None] = [held_back_notice(outcome.layer)]
    task, reached, options, totals = outcome.task, outcome.equilibrium, outcome.task.common, outcome.totals
    later = options.labels_later
    not_learned, missed = not_learned_notice(outcome), None
    if totals.counted >= FEW:
        missed = None if not_learned else missed_target(outcome)
        notices += [*label_change_notices(outcome), *worse_in_run(outcome), missed]
    elif totals.labelled or not later:
        notices.append(say.few_labels(totals.counted))
    notices += [not_learned, *label_notices(outcome)]
    notices += step_notices(outcome, options.eta is not None)
    notices += totals.watch.notices()
    if outcome.probable:
        notices.append(say.like_probabilities(outcome.outside, *totals.extremes))
    elif outcome.outside:
        notices.append(say.outside_range(outcome.outside, totals.rows, *totals.extremes, task.link))
    notices += many_groups_notices(outcome)
    if outcome.eta is None:  # an ensemble without a final tracker
        notices.append(say.coverage_not_guaranteed())
    unlabelled = totals.rows - totals.labelled - totals.immature
    if totals.labelled or not later:
        if unlabelled:
            notices.append(say.no_label(unlabelled, later, outcome.open_rows))
        if totals.immature:
            notices.append(say.immature(totals.immature, str(options.maturity), later))
    if totals.crossed:
        notices.append(say.crossing(totals.crossed, totals.rows))
    if task.command == "quantile" and totals.counted:
        notices += [limits_notice(outcome), tied_labels_notice(outcome, totals.common_label)]
    notices.append(bound_notice(outcome))
    if task.poolable and task.command == "quantile" and outcome.series is not None and missed is None:
        notices.append(pool_hint(outcome, outcome.series))
    if reached.balance == "broken" and reached.gap > BROKEN * max(1.0, abs(reached.largest)):
        notices.append(say.identity_broken(reached.gap))
    return ordered(notices)


def worse_in_run(outcome: RunOutcome) -> list[Notice]:
    """What got worse over the labels of the run, in all or in groups."""
    task, loss = outcome.task, outcome.verdict.loss
    groups = []
    for line in outcome.groups:
        if line.counted:
            error, cost = line.pair(task.errors[0]), line.pair(f"loss{task.as_served}")
            losses = LossFigures("", cost.before, cost.after, loss.negligible, not line.means.get(BEYOND, 1.0))
            aim = None if task.command == "debias" else task.target
            groups.append(GroupFigures(line.name, line.counted, error, losses, aim))
    return worse_notices(outcome.layer, loss, outcome.totals.counted, groups, task.common.weight is not None)


def label_change_notices(outcome: RunOutcome) -> list[Notice]:
    """Warns that the mean label jumped, and if the loss fell only because of it."""
    change = label_change(outcome.totals.trend.blocks)
    if change is None or outcome.task.command != "debias":
        return []
    before, after = weighted_means(change.before), weighted_means(change.after)
    binary, loss = outcome.task.outcome == "binary", outcome.verdict.loss
    mean = BeforeAfter(change.before["label"], change.after["label"])
    jump = say.LabelChange(outcome.totals.session.reading.axis, change.x, change.rows_after, mean)
    was, now = (BeforeAfter(means["bias_before"], means["bias_after"]) for means in (before, after))
    earlier = LossFigures(loss.name, before["loss_before"], before["loss_after"])
    notices = [say.labels_changed(jump, now, subject(outcome.task.prediction), binary, (was, earlier))]
    if loss.after < loss.before and earlier.after >= earlier.before:
        notices.append(say.error_from_change(jump, earlier))
    return notices


def not_learned_notice(outcome: RunOutcome | EloOutcome) -> Notice | None:
    """Hardly any label was learned from: late, undated, of weight 0, or the layer is frozen."""
    options, totals = outcome.task.common, outcome.totals
    counted, waiting, expired = totals.counted, totals.waiting, totals.expired
    labels, learned = totals.labelled, outcome.learned
    if not labels or (learned >= FEW and learned >= FEW_LEARNED * counted):
        return None
    if not counted:
        reason = f"Every labelled row has weight 0 in `{options.weight}`: such rows are served but not learned from."
        return say.not_learned(0, labels, reason, "Give the rows to learn from a weight above 0.")
    if outcome.layer.frozen:
        reason = "The layer in this state is frozen: labels are recorded but change nothing."
        return say.not_learned(0, counted, reason, "Load it in Python, call `resume()`, and save it.")
    missed = counted - learned
    at_once = options.label_time is None and options.delay is None and options.maturity is None
    if at_once or 2 * missed <= counted:
        return None
    if 2 * waiting >= missed:
        return say.not_due(learned, learned + waiting, options.state is not None, totals.dates.early)
    if 2 * expired >= missed - waiting:
        reason = f"{some(expired, 'label')} came later than --ttl {options.ttl} allows."
        return say.not_learned(learned, counted, reason, "Give `--ttl` a longer time.")
    if options.label_time is None:
        return None
    undated = missed - waiting - expired
    reason = f"{some(undated, 'label', 'has', 'have')} no time in `{options.label_time}`."
    remedy = "Fill in when labels became known, or drop `--label-time`."
    return say.not_learned(learned, counted, reason, remedy)


def label_notices(outcome: RunOutcome | EloOutcome) -> list[Notice | None]:
    """Labels that came too late, or before their rows, or are only assumed to come at once."""
    options, totals, dates = outcome.task.common, outcome.totals, outcome.totals.dates
    at_once = options.label_time is None and options.delay is None and options.maturity in (None, "0")
    no_unit = options.ttl is not None and totals.session.reading.dated and duration(options.ttl.strip()) is None
    return [
        say.read_as_seconds("--ttl", str(options.ttl)) if no_unit else None,
        say.too_late(totals.expired, str(options.ttl)) if totals.expired else None,
        say.assumed_at_once() if at_once and totals.labelled else None,
        say.dated_before(dates.early, dates.labels, dates.first) if dates.early else None,
    ]


def step_notices(outcome: RunOutcome | EloOutcome, asked: bool) -> list[Notice]:
    layer, parts = outcome.layer, outcome.layer.internals
    eta = layer.step if isinstance(outcome.eta, str) else outcome.eta
    capped, late, featured = outcome.capped, learning_of(layer).lateness, parts.lateness.featured
    notices = []
    if capped is not None:
        whose = "you asked for" if asked else "the state has" if outcome.continued else "the default is"
        before = "" if eta is None else f"{whose} {plain(eta)}"
        least, weighted = float(f"{capped.least:.3g}"), bool(outcome.equilibrium.weights)
        notices.append(
            say.steps_capped(
                least, capped.rows, late, before, weighted=weighted, heavy=capped.heavy, features=featured
            )
        )
    elif outcome.task.common.no_cap and late and eta is not None:
        notices.append(say.no_cap_with_late_labels(eta, late))
    if outcome.resized:
        weighed, sizing = parts.state.has_column("weighed"), parts.sizing
        notices.append(say.rows_too_large(outcome.resized, weighed, featured, sizing == SQUARED, sizing == LABELS))
    weight = large_weight(parts)
    if weight is not None and (weight.row > parts.state.number - outcome.totals.rows or weight.slower >= 2.0):
        notices.append(say.large_weight(weight))  # among these rows, or still felt
    return notices


def vacuous_reason(outcome: RunOutcome | EloOutcome, rows: int, overlapping: bool, player: str = "") -> str:
    """Why bounds are vacuous; as ``say.vacuous_because``."""
    capped = outcome.capped
    least = None if capped is None or capped.only_heavy else float(f"{capped.least:.3g}")
    late = learning_of(outcome.layer).lateness
    return say.vacuous_because(rows, outcome.layer.step, least, late, overlapping, player)


def many_groups_notices(outcome: RunOutcome) -> list[Notice]:
    notices, task, rows = [], outcome.task, outcome.totals.rows
    for by in task.by:
        groups = sum(line.by == by for line in outcome.groups)
        if groups > MANY_GROUPS or (groups > 100 and 3 * groups > rows):
            notices.append(say.many_groups(by, groups, rows))
    # With a state series come back in other files.
    if task.key is not None and task.common.state is None:
        series = outcome.layer.internals.names.keys
        if series > 100 and 3 * series > rows:
            notices.append(say.many_groups(task.key, series, rows, series=True))
    return notices


def bound_notice(outcome: RunOutcome) -> Notice | None:
    task, groups = outcome.task, [line for line in outcome.groups if line.counted]
    reached = outcome.equilibrium
    if not outcome.totals.counted or reached.bound is None:
        return None
    shown = with_coverage_bound(reached, coverages_of(outcome.layer, reached))
    several = len(task.by) + len(task.features) > 1
    if len(groups) <= 1:
        if not shown.vacuous or shown.bound is None:
            return None
        return say.layer_bound_vacuous(
            shown.needed, vacuous_reason(outcome, outcome.totals.counted, several), shown.bounded
        )
    vacuous = [line for line in groups if line.vacuous]
    if vacuous:
        never = bool(shown.vacuous) and shown.needed is None
        why = "" if never else vacuous_reason(outcome, min(line.counted for line in vacuous), several)
        return say.vacuous_bounds(len(vacuous), len(groups), "group", why)
    if task.command != "debias":
        return None
    loose = sum(line.bound is not None and line.bound > abs(line.means["bias_before"]) for line in groups)
    return say.loose_bounds(loose, len(groups)) if loose else None


def limits_notice(outcome: RunOutcome) -> Notice | None:
    """The limits of served values, and the coverage inside them."""
    task = outcome.task
    if task.support is None:
        return None
    return say.held_inside(task.low, task.high, outcome.verdict.coverage, outcome.verdict.loss.after)


def tied_labels_notice(outcome: RunOutcome, common: CommonLabel) -> Notice | None:
    """A large share of the labels has one value, so that levels inside it cannot be met exactly."""
    task = outcome.task
    if common.value is None or common.labels < 1:
        return None
    below, equal = common.below / common.labels, common.equal / common.labels
    inside = [level for level in task.levels if below < float(level) < below + equal]
    if equal < LARGE_TIE and not (inside and equal >= TIE_AT_A_LEVEL):
        return None
    return say.tied_labels(common.value, below, equal, inside, common.value == task.low, task.interval is not None)


def missed_target(outcome: RunOutcome) -> Notice | None:
    if outcome.eta is None or not outcome.learned:
        return None  # nothing was promised, or nothing was learned: both are said elsewhere
    verdict, labels = outcome.verdict, outcome.totals.counted
    if verdict.bias is not None:
        before, after = abs(verdict.bias.before), abs(verdict.bias.after)
        least = max(BIAS_LEFT, CLEARLY_OFF / math.sqrt(labels)) * math.sqrt(max(verdict.loss.after, 0.0))
        if not before > after > SHARE_LEFT * before or not after > least:
            return None
        return say.bias_left(verdict.bias, *likely_cause(outcome))
    c = max(verdict.coverage, key=lambda c: abs(c.after - c.target))
    off = c.after - c.target
    if not abs(off) > max(NOTABLE, CLEARLY_OFF * math.sqrt(c.target * (1.0 - c.target) / labels)):
        return None
    return say.coverage_off(c, outcome.task.common.weight is not None, *likely_cause(outcome))


def likely_cause(outcome: RunOutcome) -> tuple[str, str]:
    task, capped, layer = outcome.task, outcome.capped, outcome.layer
    learning, labels = learning_of(layer), outcome.learned
    if outcome.series is not None:
        labels = int(np.median(outcome.series.table.rows))
    faster = "Labels that come sooner, and more of them, help." if capped else ""
    if outcome.eta != "auto" and layer.internals.supports_auto:
        faster = "Try `--eta auto`, or a larger step."
    ways = ["`--pool`"] if task.poolable and not getattr(layer, "pool", False) else []
    if task.key is not None and not task.by and layer.internals.names.keys <= MANY_GROUPS:
        ways.append(f"`--by {task.key}` in place of `--key`")
    pooling = f"Try {', or '.join(ways)}: what one series teaches then helps the others." if ways else ""
    if capped is not None and 2 * (capped.rows - capped.heavy) >= outcome.learned:
        why = f"Labels come up to {learning.lateness} late, so" if learning.lateness else "For late labels"
        why += f" steps were reduced to {plain(float(f'{capped.least:.2g}'))}"
        why += " for the heaviest rows" if outcome.equilibrium.weights else ""
        why += f", and {some(labels, 'label')} {'a series ' if task.key else ''}are few for such a step."
        return why, pooling or faster
    if learning.eta * labels < say.ENOUGH:
        each = " a series (the median)" if task.key else ""
        step = plain(float(f"{learning.eta:.2g}"))
        return f"A step of {step} learns slowly from {some(labels, 'label')}{each}.", pooling or faster
    return "", faster


def pool_hint(outcome: RunOutcome, series: RankedSeries) -> Notice | None:
    count, off = len(series.table.rows), series.spread.get("mean", 0.0)
    if getattr(outcome.layer, "pool", False) or count < MIN_SERIES or off < OFF_TARGET:
        return None
    labels = float(np.median(series.table.rows))
    if labels >= SHORT_SERIES:
        return None
    return say.short_series(count, round(labels), off)


# Powers of two above the usual one. A value lies anywhere within its power, so 18 powers are
# more than 2^17 = 131,072 times, and 11 are more than 2^10 = 1,024 times.
DOUBLINGS, EXTREME = 18, 11
MIN_VALUES = 20  # values: fewer say nothing about what is usual
TICKETS_READ = 10_000  # tickets of the state that are looked at
POWERS = 2048  # of two that a float can have
POWER_OF_ONE = 1023  # the place of numbers from 1 to 2


class Outliers(NamedTuple):
    many: int
    value: float
    where: str


@dataclass
class Magnitudes:
    """Values by power of two: ``counts`` of run and state, ``of_run`` of the run alone; and the largest."""

    doublings: int = DOUBLINGS
    counts: Ints = field(default_factory=lambda: np.zeros(POWERS, np.int64))
    of_run: Ints = field(default_factory=lambda: np.zeros(POWERS, np.int64))
    largest: float = 0.0
    where: str = ""

    def add(self, values: Floats, where: Callable[[int], str], beside: Floats | None = None) -> None:
        """Add values, without nan. ``beside``: a size for each value; only values far above it can be outliers."""
        sizes = np.abs(values)
        counts = count_powers(sizes)
        self.counts += counts
        rows = None
        if beside is not None:
            rows = np.flatnonzero(sizes > 2.0 ** (self.doublings - 1) * beside)
            sizes = sizes[rows]
            counts = count_powers(sizes)
        self.of_run += counts
        largest = np.fmax.reduce(sizes, initial=0.0)
        if largest > abs(self.largest):
            at = int(np.argmax(sizes == largest))
            at = at if rows is None else int(rows[at])
            self.largest, self.where = float(values[at]), where(at)

    @property
    def usual(self) -> int:
        """The power of two that 99 % of the values do not exceed; 0 if unknown."""
        total = int(self.counts.sum())
        if total < MIN_VALUES:
            return 0
        rank = min(total - 1, -(-99 * total // 100))
        return int(np.searchsorted(np.cumsum(self.counts), rank))

    def outliers(self, power: int | None = None) -> Outliers | None:
        """The values of this run far above a power of two: the usual one unless another is given."""
        power = self.usual if power is None else power
        beyond = int(self.of_run[power + self.doublings :].sum()) if power else 0
        return Outliers(beyond, self.largest, self.where) if beyond else None


def count_powers(sizes: Floats) -> Ints:
    """Count non-negative numbers by power of two, zeros first and without nan."""
    counts = np.bincount(sizes.view(np.int64) >> 52, minlength=POWERS)
    counts[POWERS - 1] = 0
    return counts


def forecasts_of(base: object) -> tuple[float, ...]:
    return tuple(base) if isinstance(base, (tuple, list)) else (cast(float, base),)


class OutlierWatch:
    """Looks for values far outside all others: a wrong unit, a timestamp in the wrong column.

    Magnitudes are counted by power of two. An outlier is over 100,000 times as large as 99 % of all values, including
    those in the state. A served value is extreme if it is 1,000 times its forecast and every ordinary value.
    """

    def __init__(self, layer: Layer) -> None:
        self.predictions, self.labels, self.served = Magnitudes(), Magnitudes(), Magnitudes(EXTREME)
        self.layer = layer
        book = layer.internals.tickets
        closed = list(islice(reversed(book.closed.values()), TICKETS_READ))
        opened = [ticket for ticket, _, _ in islice(book.tickets(latest=True), TICKETS_READ)]
        served = [*(row.base for row in closed), *(ticket.base for ticket in opened)]
        bases = [float(f) for base in served for f in forecasts_of(base)]
        self.predictions.counts += count_powers(np.abs(np.array(bases, dtype=float)))
        # A label is compared with predictions too: on the first day there is nothing else.
        known = [*bases, *(row.y for row in closed if type(row.y) is float)]
        self.labels.counts += count_powers(np.abs(np.array(known, dtype=float)))

    def look(self, bases: Floats, y: Floats, served: Floats, where: Callable[[int], str], keyed: bool) -> None:
        """Add rows; with keys, forecasts and labels are also compared with each other."""
        sizes, width = np.abs(bases), bases.shape[1]
        forecasts = sizes[:, 0] if width == 1 else sizes.max(axis=1)
        self.predictions.add(
            bases.ravel(), lambda i: where(i // width), np.repeat(np.abs(y), width) if keyed else None
        )
        self.labels.add(y, where, forecasts if keyed else None)
        width = served.shape[1]
        self.served.add(served.ravel(), lambda i: where(i // width), np.repeat(forecasts, width))

    def cause(self) -> say.Cause:
        layer, facts, usual = self.layer, self.layer.internals.state.facts, self.labels.usual
        farthest = 0.0  # |label - prediction| so far, where the layer stores it in the label's unit
        if layer.terms.task in ("mean", "quantile") and not layer.terms.sinh:
            sums = layer.internals.state.view("sums").reshape(-1, COLUMNS)
            known = sums[:, LOW] <= sums[:, HIGH]
            farthest = float(np.abs(sums[known][:, [LOW, HIGH]]).max(initial=0.0))
        if self.labels.outliers() is not None:
            return say.FAR_LABEL
        if self.predictions.outliers() is not None:
            return say.FAR_PREDICTION
        if farthest > 2.0 ** min(1000, usual + DOUBLINGS - POWER_OF_ONE):  # of an earlier run
            return say.FAR_APART
        if facts[fact.HEAVIEST] > facts[fact.SERVED]:  # a relative weight never exceeds the rows served
            return say.ABSOLUTE_WEIGHTS
        if layer.internals.lateness.limit is None and facts[fact.LATEST] > 1.0:
            return say.LATE_UNCAPPED
        if facts[fact.STEP_HIGH] > (2.0 ** (usual - POWER_OF_ONE) if layer.internals.sizing == LABELS else 1.0):
            why = f"The step is {plain(facts[fact.STEP_HIGH])}, so one label can move the correction by that much."
            return say.Cause(why, "Start a new state with a smaller `--eta`.")
        if layer.internals.lateness.featured and facts[fact.LARGEST] > 2.0**EXTREME:
            largest = plain(float(f"{facts[fact.LARGEST]:.2g}"))
            why = f"Features reach {largest}, and multiply the correction."
            return say.Cause(why, "Scale features to about 1, and start a new state.")
        return say.UNKNOWN

    def notices(self) -> list[Notice]:
        notices = []
        usual = self.labels.usual or self.predictions.usual
        # A served probability is never extreme, however rare the outcome.
        if usual and getattr(getattr(self.layer, "layer", self.layer), "outcome", "real") != "binary":
            # Out of all proportion to every forecast and label that is not an outlier itself.
            ordinary = (self.predictions.counts + self.labels.counts)[: usual + DOUBLINGS]
            extreme = self.served.outliers(int(np.flatnonzero(ordinary)[-1]))
            if extreme is not None:
                notices.append(say.served_out_of_range(*extreme, self.cause()))
        for noun, magnitudes in (("prediction", self.predictions), ("label", self.labels)):
            outliers = magnitudes.outliers()
            if outliers is not None:
                notices.append(say.far_value(noun, *outliers))
        return notices
