"""Facts read from a state: coverage, certificate, groups, series, and what got worse."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np

from gradeq.certificates.certificate import Coverage, add_shares, interval_coverage, joint_bound
from gradeq.certificates.figures import large_weight, rate_error
from gradeq.equilibrium import Coordinate, Equilibrium, column_of
from gradeq.inputs.arguments import column_name, split_name
from gradeq.ledger import facts as fact
from gradeq.report import notices as say
from gradeq.report.components import clean
from gradeq.report.numerals import count, decimals, number
from gradeq.report.rolling import StreamHistogram
from gradeq.report.sentences import FEW, error_change, loss_change, not_counted, typical_error
from gradeq.report.story import (
    BeforeAfter,
    Certificate,
    Group,
    LossFigures,
    ManySeries,
    Notice,
    Spark,
    WideSeries,
    Worst,
)
from gradeq.tables import some
from gradeq.theory.harm import JUDGED

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gradeq.certificates.contracts import KeyedLayer, LayerLike, SeriesTable

    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

ENOUGH = 30  # labels a series needs to be ranked, unless fewer than ten series have them
WORST = 10  # length of each list: farthest off, largest loss
TOO_FEW_COMPARED = f"Too few series have {ENOUGH} labels, so those with fewer are compared too."
BEFORE_AFTER = ("before", "after")
Shares = dict[str, float | None]


@dataclass(frozen=True)
class SeriesEntry:
    """One series: its bias, or its coverage if there is a ``target``, and its loss.

    With several levels the error is that of the ``level`` farthest off, and ``name`` says which.
    """

    name: str
    rows: int
    error: BeforeAfter
    loss: BeforeAfter
    target: float | None
    level: int | None


@dataclass(frozen=True)
class RankedSeries:
    """Series that are compared: those with enough labels, or all with a label if too few have enough.

    ``worst``: farthest off first; ``widest``: widest intervals first, or without ``widths`` largest losses.
    """

    table: SeriesTable
    judged: Integers
    worst: list[int]
    widest: list[int]
    widths: Floats | None = None
    decimals: int | None = None  # coverages are rounded to so many: long sums err beyond

    @property
    def fewest(self) -> int:
        """Labels that each compared series has at least."""
        return int(self.table.rows[self.judged].min(initial=np.iinfo(np.int64).max))

    @property
    def spread(self) -> dict[str, float]:
        """How the sizes of errors spread; empty if no series is compared."""
        sizes = np.abs(self.table.error[self.judged])
        if not len(sizes):
            return {}
        middle, far = np.quantile(sizes, (0.5, 0.9)).tolist()
        return {"mean": float(sizes.mean()), "median": middle, "farthest_tenth": far}

    def entry(self, j: int) -> SeriesEntry:
        table = self.table
        level = int(table.farthest[j]) if len(table.levels) > 1 and table.target is None else None
        target = table.target if table.target is not None or not table.levels else table.levels[level or 0]
        off = [(target or 0.0) + float(column[j]) for column in (table.error_before, table.error)]
        if target is not None and self.decimals is not None:
            off = [float(np.round(value, self.decimals) + 0.0) for value in off]
        name = str(table.keys[j]) if level is None else f"{table.keys[j]} at {target:g}"
        loss = BeforeAfter(float(np.mean(table.loss_before[j])), float(table.loss[j]))
        return SeriesEntry(name, int(table.rows[j]), BeforeAfter(*off), loss, target, level)


def rank_series(
    table: SeriesTable, limit: int = WORST, widths: Floats | None = None, decimals: int | None = None
) -> RankedSeries:
    """Up to ``limit`` series, farthest off first, and ten, widest first (without widths: largest loss first)."""
    judged = np.flatnonzero(table.rows >= ENOUGH)
    if len(judged) < min(WORST, len(table.rows)):
        judged = np.flatnonzero(table.rows > 0)
    if widths is not None and not np.isfinite(widths[judged]).any():  # no series has a width before its first label
        widths = None
    sizes = np.nan_to_num((table.loss if widths is None else widths)[judged])
    worst, widest = smallest_positions(-np.abs(table.error[judged]), limit), smallest_positions(-sizes, WORST)
    return RankedSeries(table, judged, judged[worst].tolist(), judged[widest].tolist(), widths, decimals)


def label_requirement(fewest: int) -> str:
    return f"with {ENOUGH} labels or more" if fewest >= ENOUGH else "with a label"


def smallest_positions(values: Floats, limit: int) -> Integers:
    """Positions of up to ``limit`` smallest values in order: a stable argsort, cut short."""
    if len(values) <= limit:
        return np.argsort(values, kind="stable")
    among = np.flatnonzero(~(values > np.partition(values, limit - 1)[limit - 1]))
    return among[np.argsort(values[among], kind="stable")[:limit]]


def series_story(
    layer: KeyedLayer,
    ranked: RankedSeries,
    key: str = "key",
    label_means: Floats | None = None,
    spark: Callable[[int], Spark | None] = lambda _: None,
) -> ManySeries | None:
    """The series of a page; None for fewer than two. ``spark`` draws a series over time."""
    table = ranked.table
    if len(table.rows) < 2 or not len(ranked.judged):
        return None

    def group(j: int) -> Group:
        entry, cells = ranked.entry(j), []
        if layer.internals.names.roster.scalar and not table.relative:  # a row of the table is a series, not a group
            cells = list(layer.equilibrium(table.keys[j]).coordinates)
        bound, vacuous = joint_bound(cells, table.target)
        mean, error = math.nan if label_means is None else float(label_means[j]), entry.error
        drawn = None if entry.level else spark(j)
        return Group(
            key, entry.name, entry.rows, mean, error.before, error.after, entry.loss, bound, bool(vacuous),
            entry.target, drawn,
        )  # fmt: skip

    def wide(j: int) -> WideSeries:
        entry, widths = ranked.entry(j), ranked.widths
        width = None if widths is None else float(widths[j])
        return WideSeries(entry.name, entry.rows, entry.error.after, entry.loss, width)

    tally, spread = StreamHistogram(), ranked.spread
    tally.add((100.0 if table.levels else 1.0) * table.error[ranked.judged])
    return ManySeries(
        total=len(table.rows),
        judged=len(ranked.judged),
        mean=spread["mean"],
        far=spread["farthest_tenth"],
        histogram=tally.histogram(),
        worst=tuple(map(group, ranked.worst)),
        widest=tuple(map(wide, ranked.widest)),
        pooled=layer.pool,
        relative=table.relative,
        fewest=ranked.fewest,
    )


NO_JOINT_BOUND = "each parameter has a bound, but the coverage of all rows has none"


def coverages_of(layer: LayerLike, reached: Equilibrium) -> list[Coverage]:
    """Coverages by level, or of the interval; none for a Debiaser."""
    if layer.kind != "keyed":
        coverage = getattr(layer, "coverage", None)
        return coverage if isinstance(coverage, list) else [] if coverage is None else [coverage]
    taus, target = layer.terms.levels, getattr(cast("KeyedLayer", layer).layer, "target", None)
    if not taus or len(reached.coordinates) != len(taus):
        return []  # series with groups or features of their own: no coordinate covers all rows of all series
    levels = []
    for tau, cell in zip(taus, reached.coordinates, strict=True):
        before, after = (add_shares(tau, or_nan(off)) for off in (cell.bias_before, cell.bias_after))
        levels.append(Coverage(tau, before, after, cell.bound, bool(cell.vacuous)))
    return levels if target is None else [interval_coverage(levels[0], levels[-1], target)]


def state_sentence(layer: LayerLike, reached: Equilibrium) -> str:
    """A state in one sentence: bias or coverage, loss, certificate and bound over all its labels."""
    covered = coverages_of(layer, reached) if reached.rows else []
    parts = []
    for c in covered:
        clipped = c.clipped is not None and c.clipped != c.after
        limits = f" (judged before the limits; as served, inside them, {c.clipped:.3g})" if clipped else ""
        parts.append(f"coverage {c.before:.3g} -> {c.after:.3g}, target {c.target:g}{limits}")
    shown, book = with_coverage_bound(reached, covered), layer.internals.tickets
    verdict = shown.verdict("; ".join(parts)) + (f"; {reached.largest_in_words()}" if shown.bounded else "")
    waiting = len(book.held_back) if book.early is not None else 0
    immature = len(book.waiting) if book.maturity else 0
    beside = not_counted(labels_while_paused(layer), labels_withdrawn(layer, reached), immature, waiting)
    if beside:
        verdict = f"{verdict if reached.rows else 'no label to learn from: nothing to certify'}; {beside}"
    if layer.shadow and reached.rows:
        return f"in shadow raw predictions are served; adjusted ones would have given: {verdict}"
    return verdict


def held_back_notice(layer: LayerLike) -> Notice | None:
    early = layer.internals.tickets.early
    if early is None or early.since is None:
        return None
    labels = len(layer.internals.tickets.held_back)
    return say.labels_held_back(labels, early.why) if labels or early.why else None


def labels_while_paused(layer: LayerLike) -> int:
    """Labels that came while learning was frozen; they are in no average."""
    return int(layer.internals.state.facts[fact.SKIPPED])


def labels_withdrawn(layer: LayerLike, reached: Equilibrium) -> int:
    """Labels that were learned from, then withdrawn and not replaced."""
    return max(0, int(layer.traffic["labelled"]) - labels_while_paused(layer) - reached.rows)


def with_coverage_bound(reached: Equilibrium, covered: list[Coverage]) -> Equilibrium:
    """The equilibrium with the bound on coverage in place of the bound on its parameters, if there is coverage."""
    if not covered:
        return reached
    value, vacuous = joint_bound(covered)
    same = reached.bound is None or not math.isfinite(reached.bound) or value == reached.bound
    source = reached.bound_from if same else NO_JOINT_BOUND if value is None else ""
    needed = None
    if vacuous:  # bounds shrink as 1/n
        ratios = [c.bound / float(rate_error(c.before - c.target)) for c in covered if c.vacuous and c.bound]
        labels = reached.rows * max(ratios, default=0.0)
        needed = math.ceil(labels) if reached.rows and math.isfinite(labels) else None
    of = "" if same else "coverage"
    return replace(reached, bound=value, vacuous=vacuous, bound_from=source, needed=needed, bounded=of)


def certificate_of(reached: Equilibrium, covered: list[Coverage], loose: bool = False, over: str = "") -> Certificate:
    shown = with_coverage_bound(reached, covered)
    return Certificate(
        abs(reached.largest), reached.bound, reached.gap, reached.exact, bool(reached.vacuous), loose,
        reached.rounding, over, shown.bound if shown.bounded and not shown.vacuous else None,
    )  # fmt: skip


def worst_group(errors: Iterable[tuple[str, float, float]]) -> Worst | None:
    """The groups with the largest error before and after, from names with both errors."""
    off = list(errors)
    if not off:
        return None
    was, now = max(off, key=lambda g: abs(g[1])), max(off, key=lambda g: abs(g[2]))
    return Worst(was[0], was[1], now[0], now[2])


def worse_in_state(layer: LayerLike, reached: Equilibrium, among: tuple[Group, ...] | None = None) -> list[Notice]:
    """What got worse over all labels of a state. Elo has no groups to compare. ``among``: the groups, if known."""
    weight = large_weight(layer.internals)
    outweighed = [] if weight is None or weight.slower < 2.0 else [say.large_weight(weight)]
    if layer.kind == "elo":
        return outweighed
    loss = loss_of(reached)
    groups = [
        GroupFigures(
            f"{column_name(g.by)}={g.name}", g.rows, BeforeAfter(g.before, g.after),
            LossFigures("", g.loss.before, g.loss.after, loss.negligible), g.target,
        )
        for g in (groups_of(layer, reached) if among is None else among)
    ]  # fmt: skip
    heavy = layer.internals.state.facts[fact.HEAVIEST] != 1.0
    weighted = bool(heavy) or column_of(reached.coordinates, "rows") != column_of(reached.coordinates, "weight")
    worse = worse_notices(layer, loss, reached.rows, groups, weighted)
    if layer.shadow:
        worse = [replace(n, evidence=f"In shadow: none of it was served. {n.evidence}") for n in worse]
    waiting = held_back_notice(layer)
    return [*([] if waiting is None else [waiting]), *outweighed, *worse]


def groups_of(layer: LayerLike, reached: Equilibrium, most: int | None = None) -> tuple[Group, ...]:
    """Groups with labels: bias, or the coverage of an interval or of the first level.

    ``most``: at most this many, those with the most labels.
    """
    covered = getattr(layer, "coverage", None)
    first = covered[0] if isinstance(covered, list) else covered
    target, interval = None if first is None else float(first.target), layer.kind == "interval"
    coordinates, each = reached.coordinates, levels_per_group(layer)
    if most is not None and len(coordinates) > most * each:
        rows = column_of(coordinates, "rows")[::each]
        chosen = sorted(heapq.nlargest(most, range(len(rows)), key=rows.__getitem__))
        coordinates = [coordinates[each * g + k] for g in chosen for k in range(each)]
    cells: dict[str, list[Coordinate]] = {}
    for cell in coordinates:
        name = cell.name.rpartition(" @ ")[0] if interval or isinstance(covered, list) else cell.name
        cells.setdefault(name, []).append(cell)
    groups = []
    for name, parts in cells.items():
        by, value = split_name(name)
        if not value or not parts[0].rows:
            continue
        ends = parts if interval else parts[:1]
        pairs = [[or_nan(getattr(c, f"bias_{when}")) for c in ends] for when in BEFORE_AFTER]
        errors = [pair[-1] - pair[0] if len(pair) > 1 else pair[0] for pair in pairs]  # upper less lower end
        before, after = errors if target is None else [add_shares(target, off) for off in errors]
        loss = BeforeAfter(*(sum(or_nan(getattr(c, f"loss_{w}")) for c in parts) / len(parts) for w in BEFORE_AFTER))
        bound, vacuous = joint_bound(ends, target if interval else None)
        groups.append(Group(by, value, parts[0].rows, math.nan, before, after, loss, bound, bool(vacuous), target))
    columns = list(dict.fromkeys(group.by for group in groups))  # (bins of the prediction count as a column)
    return tuple(sorted(groups, key=lambda group: columns.index(group.by)))  # each column's together


def coverage_as_json(layer: LayerLike, reached: Equilibrium) -> dict[str, Shares | list[Shares]]:
    """The coverage over all labels of a layer (a list for several levels); empty for a layer without coverage."""
    shares: list[Shares] = []
    for c in coverages_of(layer, reached):
        shares.append({"target": c.target, "before": None, "after": None})
        if reached.rows:
            shares[-1] |= {"before": c.before, "after": c.after}
            shares[-1] |= {} if c.clipped is None else {"inside_limits": c.clipped}
    return {"coverage": shares if len(shares) > 1 else shares[0]} if shares else {}


def groups_as_json(layer: LayerLike, reached: Equilibrium) -> list[dict[str, object]]:
    """The groups of a layer over all its labels, largest remaining error first; none for games."""
    groups = [] if layer.kind == "elo" else list(groups_of(layer, reached))
    groups.sort(key=lambda g: -abs(g.after - (g.target or 0.0)))
    return [
        {
            "name": f"{column_name(g.by)}={g.name}",
            "rows": g.rows,
            "bias" if g.target is None else "coverage": {"before": g.before, "after": g.after},
            "loss": {"before": g.loss.before, "after": g.loss.after},
            "bound": g.bound,
            "vacuous": None if g.bound is None else g.vacuous,
        }
        for g in groups
    ]


def levels_per_group(layer: LayerLike) -> int:
    return len(getattr(layer, "levels", ())) or 1


def loss_of(reached: Equilibrium) -> LossFigures:
    return LossFigures(reached.loss_name, or_nan(reached.loss_before), or_nan(reached.loss_after), reached.negligible)


def or_nan(value: float | None) -> float:
    """The figure, or nan (shown as a dash) if rounding destroyed it."""
    return math.nan if value is None else value


@dataclass(frozen=True)
class GroupFigures:
    """A group with labels: its bias, or its coverage where it has a ``target``, and its loss."""

    name: str
    rows: int
    error: BeforeAfter
    loss: LossFigures
    target: float | None = None


def worse_notices(
    layer: LayerLike, loss: LossFigures, labels: int, groups: Sequence[GroupFigures], weighted: bool
) -> list[Notice]:
    """Warnings that the loss or groups got worse; none with too few labels to tell."""
    if labels < FEW:
        return []
    warnings: list[Notice | None] = []
    if not math.isnan(loss.before + loss.after) and loss_change(loss) == "rose":
        warnings.append(say.loss_worse(loss, gentler_advice(layer, weighted)))
    known = [g for g in groups if not math.isnan(g.error.before + g.error.after + g.loss.before + g.loss.after)]
    costlier = [g for g in known if loss_change(g.loss) == "rose"]
    biased: list[tuple[float, GroupFigures]] = []
    serious = bool(costlier)
    for g in known:
        before, after = (abs(value - (g.target or 0.0)) for value in (g.error.before, g.error.after))
        if error_change(before, after, 1.0 if g.target else typical_error(g.loss)) == "worse":
            biased.append((before - after, g))
            spread = g.target * (1.0 - g.target) if g.target else g.loss.after
            serious |= after > 2.0 * math.sqrt(spread / g.rows)
    if len(known) > 1 and (biased or costlier):
        errors = [(g.name, g.error) for _, g in sorted(biased, key=lambda pair: pair[0])]
        what = "Bias" if groups[0].target is None else "Coverage"
        parts = [f"{what}: {_worse_groups(errors)}."] if errors else []
        parts += (
            [f"{loss.name.capitalize()}: {_worse_groups([(g.name, g.loss) for g in costlier])}."] if costlier else []
        )
        parts += [] if serious else ["The remaining errors are within twice their standard errors."]
        names = {g.name for g in (*costlier, *(g for _, g in biased))}
        claim = f"{count(len(names))} of {some(len(known), 'group')} got worse."
        warnings.append(Notice("amber" if serious else "note", claim, " ".join(parts)))
    return [notice for notice in warnings if notice is not None]


def _worse_groups(pairs: Sequence[tuple[str, BeforeAfter | LossFigures]]) -> str:
    places = decimals(*(v for _, p in pairs for v in (p.before, p.after)), 0.0) + 1
    listed = [f"{clean(name, 40)} ({number(p.before, places)} to {number(p.after, places)})" for name, p in pairs[:5]]
    return ", ".join(listed) + (f" and {count(len(pairs) - 5)} more" if len(pairs) > 5 else "")


def gentler_advice(layer: LayerLike, weighted: bool) -> str:
    """Which option makes corrections smaller; empty where none does."""
    settings = getattr(layer, "layer", layer).settings
    logit = settings.get("outcome") == "binary" and settings.get("link") == "logit"
    clipped = logit and settings["clip"] > JUDGED
    if settings.get("eta") != "auto":
        if clipped:
            return f"Try a `--clip` below {settings['clip']:g}, then a smaller `--eta`."
        return "" if layer.internals.supports_auto else "Try a smaller `--eta`."
    # The limits B1 and C4 hold only for labels known before the next row, never for sinh.
    if "outcome" not in settings or weighted or layer.traffic["longest_delay"]:
        return "`--eta plain` makes smaller corrections."
    if clipped:
        return f"A `--clip` below {settings['clip']:g} costs less; so does `--eta plain`."
    loss = "log loss" if settings["outcome"] == "binary" else "squared error"
    return f"`--eta plain` makes smaller corrections, with a proven limit on the extra {loss}."
