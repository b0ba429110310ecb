"""The result of a run as numbers: sums, trends, the most common label, groups."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from gradeq.certificates.certificate import joint_bound
from gradeq.cli.task import BEYOND, RunTask
from gradeq.engine.columns import CappedSteps
from gradeq.files.cells import Floats, Ints
from gradeq.inputs.arguments import column_name
from gradeq.report.numerals import MONTHS
from gradeq.report.rolling import Blocks
from gradeq.report.state_facts import certificate_of, coverages_of, worst_group
from gradeq.report.story import BeforeAfter, Bin, CoverageFigures, HeatMap, HeatRow, LossFigures, Notice, Verdict

if TYPE_CHECKING:
    from gradeq.cli.job import Pass
    from gradeq.equilibrium import Coordinate, Equilibrium
    from gradeq.layers.layer import Layer
    from gradeq.report.state_facts import RankedSeries


Mean = TypeVar("Mean", float, Floats)
WEIGHT = "weight"
CANCELLED = 1e-4  # of the sizes of all terms: a smaller sum has lost digits


class ColumnSums:
    """Compensated sums of named columns; with ``weighted`` each row counts by its weight."""

    def __init__(self, names: Sequence[str], weighted: bool = False) -> None:
        self.rows = 0
        self.weighted = weighted
        self._sums = dict.fromkeys([*names, WEIGHT] if weighted else names, 0.0)
        self._rests = dict.fromkeys(self._sums, 0.0)

    def add(self, columns: Mapping[str, Floats], rows: int) -> None:
        """Add rows; weighted sums take the columns that ``weigh`` returns."""
        self.rows += rows
        for name in self._sums:
            values = columns[name]
            part = float(values.sum())
            if not abs(part) >= CANCELLED * float(np.abs(values).sum()):  # also if one of them is nan
                with suppress(OverflowError, ValueError):  # losses may be squares of huge numbers
                    part = math.fsum(values.tolist())
            total = self._sums[name]
            new = total + part
            # What rounding lost of the smaller of the two (Neumaier).
            small, large = sorted((total, part), key=abs)
            self._rests[name] += (large - new) + small
            self._sums[name] = new

    def mean(self, name: str) -> float:
        whole = self._sums[WEIGHT] + self._rests[WEIGHT] if self.weighted else self.rows
        return (self._sums[name] + self._rests[name]) / whole if whole else 0.0


def weigh(columns: Mapping[str, Floats], weights: Floats) -> dict[str, Floats]:
    return {WEIGHT: weights} | {name: weights * column for name, column in columns.items()}


class GroupSums:
    """Sums of named columns for each group code; grows with new codes."""

    def __init__(self, names: Sequence[str], weighted: bool = False) -> None:
        self.weighted = weighted
        self.names = (*names, WEIGHT) if weighted else tuple(names)
        self.rows: Ints = np.zeros(0, np.int64)
        self._sums: Floats = np.zeros((len(self.names), 0))

    def add(self, codes: Ints, columns: Mapping[str, Floats], groups: int) -> None:
        """Add rows with their codes, all below ``groups``; weighted sums take the columns that ``weigh`` returns."""
        if groups > len(self.rows):
            more = groups - len(self.rows)
            self.rows = np.concatenate([self.rows, np.zeros(more, np.int64)])
            self._sums = np.concatenate([self._sums, np.zeros((len(self.names), more))], axis=1)
        places: slice | Ints = slice(None)
        if len(self.rows) > 4 * len(codes):  # many groups: only those of these rows are touched
            here = np.zeros(len(self.rows), bool)
            here[codes] = True
            places = np.flatnonzero(here)
            order = np.empty(len(self.rows), np.int64)
            order[places] = np.arange(len(places))
            codes = order[codes]
        size = len(self.rows[places])
        self.rows[places] += np.bincount(codes, minlength=size)
        for row, name in zip(self._sums, self.names, strict=True):
            row[places] += np.bincount(codes, columns[name], size)

    def totals(self, name: str) -> Floats:
        totals: Floats = self._sums[self.names.index(name)]
        return totals

    def total(self, code: int, name: str) -> float:
        return float(self._sums[self.names.index(name), code])

    def mean(self, code: int, name: str) -> float:
        whole = float(self._sums[-1, code]) if self.weighted else int(self.rows[code])
        return float(self._sums[self.names.index(name), code]) / whole if whole else 0.0


@dataclass
class CommonLabel:
    """How often the most common label of the first piece occurs, and how many labels are below it."""

    value: float | None = None
    labels: int = 0
    below: int = 0
    equal: int = 0

    def add(self, y: Floats) -> None:
        if not len(y):
            return
        if self.value is None:
            values, counts = np.unique(y, return_counts=True)
            self.value = float(values[np.argmax(counts)])
        self.labels += len(y)
        self.below += int(np.count_nonzero(y < self.value))
        self.equal += int(np.count_nonzero(y == self.value))


TRACKED = 3  # levels whose coverage is drawn
WEIGHTED_LABEL = "weighted_label"


class Trend:
    """Sums over blocks of labelled rows, in bounded memory."""

    def __init__(self, task: RunTask) -> None:
        names = ["before", "after", "label", "label_squared", "loss_before", "loss_after"]
        # Errors are summed separately: the difference of two large sums would lose their digits.
        names += [f"{error}_{when}" for error in task.errors[:TRACKED] for when in ("before", "after")]
        if task.command == "quantile":
            names += ["upper_before", "upper_after"]
        if task.common.weight is not None:
            names += [WEIGHT, WEIGHTED_LABEL]
        self.names = tuple(names)
        self.blocks = Blocks(self.names)
        self.begin: float | None = None
        self.end: float | None = None

    def add(
        self, x: Floats, base: Floats, served: Floats, y: Floats, judged: Mapping[str, Floats], weights: Floats | None
    ) -> None:
        """Add labelled rows. Labels are also summed without weights, to detect when they change."""
        columns: dict[str, Floats] = {
            "before": base[:, 0],
            "after": served[:, 0],
            "upper_before": base[:, -1],
            "upper_after": served[:, -1],
            **judged,
        }
        if weights is not None:
            columns = weigh(columns | {WEIGHTED_LABEL: y}, weights)
        columns |= {"label": y, "label_squared": y * y}
        if len(x):
            self.begin = float(x[0]) if self.begin is None else self.begin
            self.end = float(x[-1])
            self.blocks.add({name: columns[name] for name in self.names}, x)


def weighted_means(means: Mapping[str, Mean]) -> dict[str, Mean]:
    """Means by weight from means of weighted columns, if there are weights."""
    result = dict(means)
    if WEIGHT not in result:
        return result
    weight = result.pop(WEIGHT)
    if WEIGHTED_LABEL in result:
        result["label"] = result.pop(WEIGHTED_LABEL)
    return {name: mean / weight for name, mean in result.items()}


@dataclass(frozen=True)
class GroupLine:
    """Figures of one group.

    ``counted`` rows have a label and a weight above 0: means are over these, ``weight`` is their sum. ``learned``:
    labels learned from since the layer began, which the bound is about.
    """

    name: str
    by: str
    value: str
    rows: int
    labelled: int
    means: dict[str, float]
    label_mean: float
    bound: float | None
    vacuous: bool | None
    counted: int
    weight: float | None
    learned: int
    served_bound: float | None  # None where --min and --max changed the coverage that ``bound`` is about

    def pair(self, measure: str) -> BeforeAfter:
        return BeforeAfter(self.means[f"{measure}_before"], self.means[f"{measure}_after"])


class Baseline(NamedTuple):
    learned: int = 0
    capped: int = 0
    resized: int = 0

    @classmethod
    def of(cls, layer: Layer) -> Baseline:
        steps = layer.steps
        return cls(layer.equilibrium().rows, int(steps["capped"]), int(steps["resized"]))


@dataclass(frozen=True)
class CapSummary:
    """How the late-label cap shortened steps; ``heavy``: labels capped only because of their weight."""

    rows: int
    least: float
    longest_delay: int
    heavy: int = 0

    @property
    def only_heavy(self) -> bool:
        return self.heavy == self.rows


def cap_summary(layer: Layer, before: Baseline, run: CappedSteps | None) -> CapSummary | None:
    rows = int(layer.steps["capped"]) - before.capped
    if not rows:
        return None
    least, heavy = (layer.steps["smallest"], 0) if run is None else (run.least, run.heavy)
    return CapSummary(rows, least, int(layer.traffic["longest_delay"]), heavy)


@dataclass(frozen=True)
class RunOutcome:
    task: RunTask
    layer: Layer
    equilibrium: Equilibrium
    totals: Pass
    learned: int
    eta: float | str | None
    groups: tuple[GroupLine, ...]
    capped: CapSummary | None
    resized: int
    continued: bool
    outside: int
    scope: str  # which labels the certificate is over; empty if figures are about the same rows (never with weights)
    probable: bool = False  # probabilities and 0/1 labels that were not said to be such
    notices: tuple[Notice, ...] = ()
    series: RankedSeries | None = None  # with --key

    def pair(self, measure: str) -> tuple[float, float]:
        return self.totals.sums.mean(f"{measure}_before"), self.totals.sums.mean(f"{measure}_after")

    @property
    def open_rows(self) -> int:
        """Rows of this run that wait for their label; `gradeq label` brings it."""
        if not self.task.common.labels_later:
            return 0
        unlabelled = self.totals.rows - self.totals.labelled - self.totals.immature
        return min(unlabelled, len(self.layer.internals.tickets.opened))

    @cached_property
    def verdict(self) -> Verdict:
        """Bias or coverage, loss and certificate: the figures of terminal, page and warnings."""
        task, reached = self.task, self.equilibrium
        debias, measure, target = task.command == "debias", task.errors[0], task.target
        name, rounding = "squared error" if debias else "pinball loss", debias and not self.totals.sums.mean(BEYOND)
        loss = LossFigures(name, *self.pair(f"loss{task.as_served}"), reached.negligible, rounding)
        levels = [(level, level, f"cover{k}") for k, level in enumerate(task.levels)]
        levels = levels if task.interval is None else [("interval", task.interval, "inside")]
        coverage = []
        for name, level, stem in [] if debias else levels:
            as_served = BeforeAfter(*self.pair(f"{stem}{task.as_served}")) if task.limited else None
            coverage.append(CoverageFigures(name, float(level), *self.pair(stem), as_served))
        groups = [(line.value, line.pair(measure)) for line in self.groups if line.counted]
        worst = worst_group((name, error.before - target, error.after - target) for name, error in groups)
        before = self.pair(measure.removesuffix("_clipped"))[0]  # as the bound, before limits
        loose = reached.bound is not None and reached.bound > abs(before - target)
        certificate = certificate_of(reached, coverages_of(self.layer, reached), loose, self.scope)
        bias = BeforeAfter(*self.pair("bias")) if debias else None
        return Verdict(loss, certificate, bias, tuple(coverage), worst, not reached.rows)


def group_lines(totals: Pass, equilibrium: Equilibrium) -> tuple[GroupLine, ...]:
    task = totals.task
    known: dict[str, list[Coordinate]] = {}
    for c in equilibrium.coordinates:
        known.setdefault(c.name.rpartition(" @ ")[0] if task.several else c.name, []).append(c)
    served, judged = (f"{error}_after" for error in (task.errors[0], task.errors[0].removesuffix("_clipped")))
    interval = None if task.interval is None else float(task.interval)
    lines, measures = [], task.measures
    columns = zip(task.by, totals.books, totals.seen, totals.labels, totals.by_group, strict=True)
    for by, book, all_rows, labels, group_sums in columns:
        for code, value in enumerate(book.names):
            name = f"{column_name(by)}={value}"
            cells = known.get(name, [])
            bound, vacuous = joint_bound(cells, interval)  # for an interval, result 8.4
            if task.link == "exp":  # the bound is on relative errors
                bound = vacuous = None
            means = {measure: group_sums.mean(code, measure) for measure in measures}
            lines.append(
                GroupLine(
                    name, by, value, int(all_rows.rows[code]),
                    int(labels.rows[code]) if code < len(labels.rows) else 0,
                    means, group_sums.mean(code, "label"), bound, vacuous, int(group_sums.rows[code]),
                    group_sums.total(code, WEIGHT) if group_sums.weighted else None,
                    max((c.rows for c in cells), default=0),
                    bound if means[served] == means[judged] else None,
                )
            )  # fmt: skip
    return tuple(lines)


BINS = 20


class CalibrationBins:
    """Sums by predicted probability, in bounded memory."""

    def __init__(self) -> None:
        self._sums = np.zeros((4, BINS))  # rows, sums of p, of outcomes, of their squares

    def add(self, p: Floats, y: Floats, weights: Floats | None = None) -> None:
        w = np.ones(len(p)) if weights is None else weights
        place = np.clip((p * BINS).astype(np.int64), 0, BINS - 1)
        for row, values in zip(self._sums, (w, w * p, w * y, w * y * y), strict=True):
            row += np.bincount(place, values, BINS)

    def bins(self) -> tuple[Bin, ...]:
        """Mean prediction and outcome of each bin that has rows, with 95 % intervals."""
        bins = []
        for n, p, y, square in self._sums.T.tolist():
            if n < 1:
                continue
            mean = y / n
            half = 1.96 * math.sqrt(max(square / n - mean * mean, 1e-9) / n)
            low, high = max(mean - half, 0.0), min(mean + half, 1.0)
            bins.append(Bin(p / n, mean, int(n), low, high))
        return tuple(bins)


MOST_MONTHS = 1200  # followed; a longer span of dates has no heat map
MOST_PERIODS = 24
MOST_GROUPS = 12
LEAST = 10  # labels of a cell that is drawn
SPANS = (1, 3, 12, 60, 120)  # months in a period


class MonthlySums:
    """Sums of a measure before and after, by group and month."""

    def __init__(self, names: tuple[str, ...], columns: int, weighted: bool) -> None:
        self.names = names
        self.weighted = weighted
        self.columns: list[dict[int, GroupSums]] = [{} for _ in range(columns)]

    def add(self, codes: Sequence[Ints], columns: Mapping[str, Floats], x: Floats) -> None:
        """Take rows: group codes of each column, measures (times weights), seconds since 1970."""
        names = (*self.names, WEIGHT) if self.weighted else self.names
        months = x.astype("datetime64[s]").astype("datetime64[M]").astype(np.int64)
        for month in np.unique(months).tolist():
            rows = months == month
            here = {name: columns[name][rows] for name in names}
            for sums, code in zip(self.columns, codes, strict=True):
                if month not in sums and len(sums) >= MOST_MONTHS:
                    continue
                cell = sums.setdefault(month, GroupSums(self.names, self.weighted))
                part = code[rows]
                cell.add(part, here, int(part.max(initial=-1)) + 1)

    def heat(self, lines: Sequence[GroupLine], by: Sequence[str], target: float) -> HeatMap | None:
        """A heat map of the largest groups; months are merged into at most 24 periods."""
        months = sorted({month for sums in self.columns for month in sums})
        if len(months) < 2 or len(months) >= MOST_MONTHS:
            return None
        sizes = {s: months[-1] // s - months[0] // s + 1 for s in SPANS}
        span = next((s for s, periods in sizes.items() if periods <= MOST_PERIODS), None)
        if span is None:
            return None
        first = months[0] // span
        periods = sizes[span]
        largest = sorted(lines, key=lambda line: -line.counted)[:MOST_GROUPS]
        rows = []
        for column, name in enumerate(by):
            for code, line in enumerate(line for line in lines if line.by == name):
                if line not in largest or not line.counted:
                    continue
                counts, weights, totals = np.zeros(periods, int), np.zeros(periods), np.zeros((2, periods))
                for month, sums in self.columns[column].items():
                    if code < len(sums.rows):
                        at = month // span - first
                        counts[at] += sums.rows[code]
                        weights[at] += sums.total(code, WEIGHT) if sums.weighted else sums.rows[code]
                        totals[:, at] += [sums.total(code, measure) for measure in self.names]
                before, after = (
                    tuple(
                        total / weight - target if count >= LEAST and weight > 0.0 else None
                        for count, weight, total in zip(counts.tolist(), weights.tolist(), side, strict=True)
                    )
                    for side in totals.tolist()
                )
                rows.append(HeatRow(name, line.value, tuple(counts.tolist()), before, after))
        names = tuple(period_name((first + i) * span, span) for i in range(periods))
        return HeatMap(names, tuple(rows)) if rows and periods > 1 else None


def period_name(month: int, span: int) -> str:
    year, index = 1970 + month // 12, month % 12
    if span == 1:
        return f"{MONTHS[index][:3]} {year}"
    if span == 3:
        return f"Q{index // 3 + 1} {year}"
    return str(year) if span == 12 else f"{year} to {year + span // 12 - 1}"


PLAIN_MEANS = "figures of this run's rows are plain weighted means, sum(w x) / sum(w)."


def relative_weights(task: RunTask) -> str:
    """One sentence on what uses relative weights, and what they are."""
    series, whose = ("", "") if task.key is None else (", the tables of series", " of its series")
    return (
        f"The certificate{series} and all bounds are by relative weight: each weight divided by the mean of the "
        f"positive ones served so far{whose}, its own included."
    )
