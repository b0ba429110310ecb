"""Recent labels over time, and a layer's warnings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from gradeq.equilibrium import Equilibrium
from gradeq.report.notices import figures_not_known, judged_before_limits
from gradeq.report.numerals import count, number, plain
from gradeq.report.rolling import Floats, numbers, rolling, thin, window
from gradeq.report.sentences import FEW, ordered
from gradeq.report.state_facts import worse_in_state
from gradeq.report.story import Axis, BeforeAfter, EloStory, Notice, Spark, Story, Values
from gradeq.service.problems import with_setting_names
from gradeq.service.runtime import ArrivedLabel
from gradeq.tables import some

if TYPE_CHECKING:
    from gradeq.certificates.certificate import Coverage
    from gradeq.layers.layer import Layer
    from gradeq.service.dashboard.overview import InFlight, ServiceFacts


RECENT = 1_000  # labels in the recent figures
SPARK_POINTS = 60
UNITS = {86400.0: "days", 3600.0: "hours", 60.0: "minutes", 1.0: "seconds", 1e-3: "milliseconds"}


@dataclass(frozen=True)
class RollingCurves:
    """Rolling means of bias or coverage, and of loss, over ``window`` labels; x is a time or a count."""

    axis: Axis
    window: int
    begin: float
    x: tuple[float, ...]
    before: Values
    after: Values
    loss_before: Values
    loss_after: Values
    more: tuple[tuple[str, Values], ...] = ()  # the served curves of further levels, by name


@dataclass(frozen=True)
class RecentMeans:
    """Means over the recent labels."""

    labels: int
    error: BeforeAfter
    loss: BeforeAfter


@dataclass(frozen=True)
class Delays:
    """Delays of recent labels in seconds, with a histogram; ``edges`` are in units of ``unit`` seconds."""

    median: float
    most: float  # the 99 % quantile
    unit: float
    edges: tuple[float, ...]
    counts: tuple[int, ...]


@dataclass(frozen=True)
class WaitingOverTime:
    """The number of labels in flight over time."""

    x: tuple[float, ...]
    open: Values
    peak: int


class RecentLabels:
    """Recent labels of positive weight as columns, oldest first.

    Labels received while frozen count only for delays. ``errors`` (by level) and ``losses`` are pairs of columns,
    before and after, as in the certificate. An error is a bias; for a level or an interval it is 1 if the label was
    covered, else 0.
    """

    def __init__(self, labels: Iterable[ArrivedLabel], kind: str, targets: Sequence[float]) -> None:
        arrived = [one for one in labels if one.posting.weight > 0.0 and one.posting.sign >= 0.0]
        learned = [one for one in arrived if one.posting.sign > 0.0]
        self.targets = list(targets)
        self.at = np.array([one.at for one in learned], dtype=np.float64)
        self.arrivals = np.array([one.at for one in arrived], dtype=np.float64)
        self.late = np.array([one.waited for one in arrived], dtype=np.float64)
        self.names = [one.posting.row.names for one in learned]
        self.weight = np.array([one.posting.weight for one in learned], dtype=np.float64)
        if not learned:
            self.losses = (np.empty(0), np.empty(0))
            self.errors = [self.losses] * max(len(self.targets), 1)
            return
        after, before = np.split(np.array([one.posting.errors for one in learned], dtype=np.float64), 2, axis=1)
        losses = np.split(np.array([one.posting.losses for one in learned], dtype=np.float64), 2, axis=1)
        self.losses = (losses[1].mean(axis=1), losses[0].mean(axis=1))
        if kind == "debias":  # squared errors, twice the loss
            self.losses = (before[:, 0] ** 2, after[:, 0] ** 2)
        if kind == "interval":
            shares = [targets[0] + side[:, -1] - side[:, 0] for side in (before, after)]
            self.errors = [(shares[0], shares[1])]
        else:
            self.errors = [(before[:, k] + t, after[:, k] + t) for k, t in enumerate(self.targets or [0.0])]

    def __len__(self) -> int:
        return len(self.at)

    def last(self, labels: int = RECENT) -> RecentMeans | None:
        if not len(self):
            return None
        part = slice(-labels, None)
        w = self.weight[part]
        means = [float(np.average(column[part], weights=w)) for column in (*self.errors[0], *self.losses)]
        return RecentMeans(len(w), BeforeAfter(*means[:2]), BeforeAfter(*means[2:]))

    def rolling_curves(self, total: int) -> RollingCurves | None:
        """Rolling means, or None with too few labels; ``total``: labels since the start."""
        width = window(len(self))
        if len(self) < max(2 * width, 8):
            return None
        weight = rolling(self.weight, width)
        ends = thin(len(weight))

        def mean(column: Floats) -> Values:
            return numbers((rolling(column * self.weight, width) / weight)[ends])

        # Use times if the labels span more than two hours and all points differ; otherwise count labels.
        axis: Axis = "date"
        x, begin = self.at[width - 1 + ends], float(self.at[0])
        if x[-1] - x[0] <= 2 * 3600.0 or (np.diff(x) <= 0.0).any():
            axis, begin = "row", float(total - len(self) + 1)
            x = (begin + width - 1.0 + ends).astype(np.float64)
        (before, after), (loss_before, loss_after) = self.errors[0], self.losses
        levels = zip(self.targets[1:], self.errors[1:], strict=True)
        curves = mean(before), mean(after), mean(loss_before), mean(loss_after)
        more = tuple((f"{target:g}", mean(served)) for target, (_, served) in levels)
        return RollingCurves(axis, width, begin, tuple(x.tolist()), *curves, more)

    def spark(self, total: int, name: str | None = None) -> Spark | None:
        rows = np.arange(len(self))
        if name is not None:
            rows = np.array([i for i, names in enumerate(self.names) if name in names], dtype=int)
        if len(rows) < 12:
            return None
        width = max(len(rows) // 20, min(60, len(rows) // 3))
        before, after = (rolling(column[rows], width) for column in self.errors[0])
        ends = thin(len(after), SPARK_POINTS)
        x = (total - len(self) + 1 + rows[width - 1 + ends]).astype(float).tolist()
        return Spark(tuple(x), numbers(before[ends]), numbers(after[ends]))

    def delays(self) -> Delays | None:
        """The delays of these labels; None if no delay is known."""
        late = self.late[np.isfinite(self.late)]
        if len(late) < 2 or late.max() <= 0.0:
            return None
        median, most = (float(np.quantile(late, share)) for share in (0.5, 0.99))
        unit = duration_unit(most)
        top = max(most * 1.25, 1e-9) / unit
        # About 14 bars of a round width; the last one includes all longer delays.
        power = 10.0 ** math.floor(math.log10(top / 14.0))
        width = next((m * power for m in (1.0, 2.0, 5.0) if m * power >= top / 14.0), 10.0 * power)
        edges = width * np.arange(math.ceil(top / width) + 1)
        counts = np.histogram(np.clip(late / unit, 0.0, edges[-1]), edges)[0]
        return Delays(median, most, unit, tuple(edges.tolist()), tuple(counts.tolist()))

    def waiting(self, opened: Sequence[float], now: float) -> WaitingOverTime | None:
        """Labels in flight since the first of these arrived; ``opened``: serving times of open predictions."""
        known = np.isfinite(self.late)
        if not known.any() or len(self.arrivals) < 8:
            return None
        arrivals = np.sort(self.arrivals[known])
        served = np.sort(np.concatenate([(self.arrivals - self.late)[known], np.asarray(opened, float)]))
        x = np.linspace(arrivals[0], max(now, arrivals[-1]), 240)
        open_then = np.searchsorted(served, x, "right") - np.searchsorted(arrivals, x, "right")
        if not open_then.any() or x[-1] <= x[0]:
            return None
        at_events = np.searchsorted(served, arrivals, "right") - np.arange(len(arrivals))
        peak = int(max(at_events.max(initial=0), open_then.max()))
        return WaitingOverTime(tuple(x.tolist()), tuple(open_then.astype(float).tolist()), peak)


def duration_unit(seconds: float) -> float:
    return next((u for u in (86400.0, 3600.0, 60.0, 1.0) if seconds >= 2.0 * u), 1e-3)


def duration_words(seconds: float) -> str:
    """A duration in a readable unit: 9.7 hours."""
    if seconds < 1.0:
        return f"{number(1000.0 * seconds, 0)} ms"
    unit = duration_unit(seconds)
    value = seconds / unit
    return f"{number(value, 1 if value < 10 else 0)} {UNITS[unit]}"


def layer_warnings(
    layer: Layer,
    equilibrium: Equilibrium,
    story: Story | EloStory,
    coverages: list[Coverage],
    flight: InFlight,
    facts: ServiceFacts,
) -> tuple[Notice, ...]:
    warnings: list[Notice | None] = [stopped_notice(layer, facts)]
    if isinstance(story, Story):
        warnings += [with_setting_names(notice) for notice in worse_in_story(layer, equilibrium, story)]
        warnings.append(judged_before_limits(coverages if equilibrium.rows else []))
    warnings += [capped_notice(layer, equilibrium), late_notice(equilibrium, flight)]
    return ordered(warnings)


def worse_in_story(layer: Layer, equilibrium: Equilibrium, story: Story) -> list[Notice]:
    """Warnings about worse figures; for groups only notes, since among many groups some always get worse."""
    whole = story.groups_total == len(story.groups) and not story.levels
    judged = tuple(group for group in story.groups if group.rows >= FEW) if whole else ()
    worse = worse_in_state(layer, equilibrium, judged)
    unknown = figures_not_known(equilibrium.hidden)
    worse = [replace(notice, level="note") if "group" in notice.claim else notice for notice in worse]
    return [unknown, *worse] if unknown else worse


def stopped_notice(layer: Layer, facts: ServiceFacts) -> Notice | None:
    served, recorded = "Predictions are served from the last good state", "stored and counted, but not learned"
    if facts.stopped:
        claim = f"Learning stopped: {facts.stopped.rstrip('.')}."
        remedy = "Run `gradeq audit STORE`, which explains what is wrong and how to continue."
        return Notice("red", claim, f"{served}; labels are rejected.", remedy)
    if facts.unwritable:
        evidence = f"{facts.unwritable.rstrip('.')}. {served}, not stored; labels are rejected."
        remedy = "Nothing that was acknowledged is lost; learning resumes once the store can write."
        return Notice("red", "The store cannot write.", evidence, remedy)
    if facts.diverged:
        remedy = (
            'Set a smaller step (`{"do": "set_step", "eta": ...}`), or create the layer with its `late_cap` '
            "if labels come late; then “Resume learning” continues."
        )
        return Notice("red", f"Learning stopped: {facts.diverged}.", f"{served}; labels are {recorded}.", remedy)
    paused = Notice("amber", "Learning is paused.", f"Labels are {recorded}.", "“Resume learning” continues.")
    return paused if layer.frozen else None


def capped_notice(layer: Layer, equilibrium: Equilibrium) -> Notice | None:
    learned = equilibrium.learning
    if learned is None or learned.method == "auto" or not learned.step < learned.eta * (1.0 - 1e-9):
        return None
    step, eta = plain(float(f"{learned.step:.2g}")), plain(float(f"{learned.eta:.4g}"))
    late = some(int(layer.traffic["peak_lateness"]), "label")
    each = " a group" if getattr(layer, "settings", {}).get("groups") else ""
    evidence = [f"Up to {late}{each} are in flight at once; larger steps overshoot when such labels arrive together."]
    if layer.internals.lateness.featured:
        evidence.append("With features the cap is divided by the largest squared size of a row.")
    covers = hasattr(getattr(layer, "layer", layer), "coverage")
    evidence.append(f"{'Coverage reaches its target' if covers else 'Bias falls'} more slowly, but safely.")
    auto = '`"eta": "auto"` chooses steps that suit labels this late.'
    remedy = auto if layer.internals.supports_auto else 'A smaller `"eta"` needs no cap.'
    return Notice("amber", f"Step capped at {step}; the layer's step is {eta}.", " ".join(evidence), remedy)


def late_notice(equilibrium: Equilibrium, flight: InFlight) -> Notice | None:
    learned, delays = equilibrium.learning, flight.delays
    if learned is not None and learned.learned and learned.stopped:
        claim = f"Labels stopped: none came for the last {some(learned.silent, 'prediction')}."
        evidence = f"Before, at most {count(learned.silence)} were served between two labels."
        return Notice("amber", claim, evidence, "Check the process that sends the labels.")
    if delays is None or flight.oldest is None or flight.oldest <= 2.0 * delays.most:
        return None
    oldest, most = duration_words(flight.oldest), duration_words(delays.most)
    evidence = f"{some(max(flight.overdue, 1), 'prediction')} waited more than twice as long."
    remedy = 'If these labels never come, the figures do not cover their rows; `"ttl"` drops them after a time.'
    return Notice("amber", f"The oldest label is {oldest} late; 99 % came within {most}.", evidence, remedy)
