"""The figures of a certificate: means of an account, whether a bound is informative, and how a layer learns now.

A label that was corrected is taken out of the sums again, and what rounding did to them while it was in them stays.
The ranges remember the largest residual ever seen, so its size is known. Without corrections a sum of losses has no
such trouble: it holds its largest term.

A bound is informative when it is below the raw error: the |mean error| of the raw prediction or, where that is below
one standard error, that standard error; for coverage and win rates the distance of the raw rate from its target, at
least 0.05. Of a model that was always right it is 1e-9 of the largest value: a bound below that is rounding. This one
rule serves layers, groups, keys, levels and players."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from gradeq.inputs.arguments import column_name
from gradeq.kernels import account as col
from gradeq.kernels.flight import LARGEST, LATENESS, LATEST, PEAK, capped
from gradeq.ledger import facts as fact
from gradeq.numerics import over
from gradeq.rules.mixed import weights_of
from gradeq.tables import agreeing, some

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gradeq.certificates.contracts import LayerLike, LayerParts
    from gradeq.certificates.reading import Reading
    from gradeq.ledger.state import State


Floats: TypeAlias = "NDArray[np.float64]"
Account: TypeAlias = "Sequence[float] | Floats"  # the sums of one parameter; its columns are in kernels.account

ROUNDED = 2.0**-53  # relative rounding error of one addition
DIGITS = 1e-3  # relative error allowed in a figure
NOTHING = 1e-9  # absolute error allowed in a mean near zero
LEAST_RATE = 0.05  # smallest raw error of a coverage or win rate
NEGLIGIBLE = 1e-9  # relative to the largest value
MANY_PARAMETERS = 50  # with more parameters, the labels needed are estimated from the usual rate 1/n
HIDDEN = "a label that was corrected was so large that rounding hides the rest"
NO_GUARANTEE = "no guarantee"  # the short form for tables


@dataclass(frozen=True)
class ResidualUnit:
    """The unit of residuals under the sinh link: its current scale, and its discounted sum of residuals."""

    scale: float
    residual_sum: float


def rounding_loss(
    account: Account, facts: Sequence[float], single: bool, unit: ResidualUnit | None = None
) -> tuple[float, float]:
    """How far rounding can move two sums of an account: its gradients and its losses.

    Every posting counts as the largest one. ``single``: errors are residuals, and losses are their squares. Otherwise
    the account belongs to a level: errors lie between -1 and 1, and losses are proportional to residuals.
    """
    corrected = facts[fact.CORRECTED]
    largest = max(abs(account[col.LOW]), abs(account[col.HIGH])) if account[col.LOW] <= account[col.HIGH] else 0.0
    if unit is not None:  # estimate the largest residual from the current scale or their sum
        largest = max(unit.scale * math.sinh(min(largest, 700.0)), unit.residual_sum)
    postings = account[col.ROWS] + 2.0 * corrected
    weight = facts[fact.HEAVIEST] * max(1.0, facts[fact.LARGEST])
    rounds = ROUNDED * postings * weight * (1.0 + corrected)
    return (rounds * largest, rounds * largest * largest) if single else (rounds, rounds * largest)


@dataclass(frozen=True)
class MeanFigures:
    """Bias and mean loss before and after; None where rounding has destroyed them."""

    bias_before: float | None
    bias_after: float | None
    loss_before: float | None
    loss_after: float | None


def mean_figures(
    accounts: Sequence[Account], facts: Sequence[float], single: bool, scale: float, unit: ResidualUnit | None = None
) -> MeanFigures:
    """Bias and mean loss over the rows of the accounts (one for each level); mean losses are multiplied by ``scale``.

    A figure is reported if rounding changes it by at most a thousandth. For a bias, a thousandth of the typical error
    is also accepted. A loss that is mere rounding beside the other one is 0.
    """
    bias, loss, rounding = True, True, 0.0
    for account in accounts if facts[fact.CORRECTED] else ():
        weight = account[col.WEIGHT]
        if not weight > 0.0:
            continue
        lost, lost_loss = rounding_loss(account, facts, single, unit)
        rounding += lost_loss
        losses = min(account[col.LOSS_BEFORE], account[col.LOSS_AFTER])
        exact = lost_loss <= max(DIGITS * losses, NOTHING * weight)
        errors = min(abs(account[col.BEFORE]), abs(account[col.GRADIENT]))
        if exact and single:
            errors = max(errors, math.sqrt(weight * max(0.0, losses)))
        bias = bias and (not single or lost <= max(DIGITS * errors, NOTHING * weight))
        loss = loss and exact
    first, weight = accounts[0], accounts[0][col.WEIGHT]
    rows = len(accounts) * weight
    totals = [sum(account[column] for account in accounts) for column in (col.LOSS_BEFORE, col.LOSS_AFTER)]
    least = min(rounding / DIGITS, NOTHING * max(totals))
    before, after = (scale * over(total if total > least else 0.0, rows) if loss else None for total in totals)
    step = facts[fact.STEP_HIGH] if facts[fact.STEP_LOW] >= facts[fact.STEP_HIGH] else None
    bias_before = over(first[col.BEFORE], weight) if bias and math.isfinite(first[col.BEFORE]) else None
    return MeanFigures(bias_before, mean_gradient(first, weight, step) if bias else None, before, after)


def mean_gradient(account: Account, weight: float, step: float | None) -> float:
    """The mean gradient of an account, or of each account if its sums are columns.

    If the sum of gradients overflowed, the mean is computed from the sum of step times gradient.
    """
    total = account[col.GRADIENT]
    if np.all(np.isfinite(total)):
        return over(total, weight)
    if not step:
        return total * math.nan
    moved = account[col.MOVED] / weight / step
    return np.where(np.isfinite(total), total / weight, moved) if np.ndim(total) else moved  # type: ignore[return-value]


def agreement_in_words(balanced: str, exact: bool, gap: str) -> str:
    """How well the two sides of a certificate agree, in words. With varying steps it rests on the stored sums.

    >>> agreement_in_words("even", True, "1e-17"), agreement_in_words("even", False, "0")
    ('exact (gap 1e-17)', 'exact (gap 0, by the stored sums)')
    >>> agreement_in_words("broken", True, "0.3")
    'broken (gap 0.3)'
    """
    kind = {"even": "exact", "rounded": "exact, up to the rounding of a large label"}
    by = "" if exact else ", by the stored sums"
    return f"{kind.get(balanced, balanced)} (gap {gap}{by})"


def is_vacuous(bound: float | None, raw: float) -> bool | None:
    """Whether a bound is at least as large as the raw error; None without a bound.

    >>> is_vacuous(0.01, 0.2), is_vacuous(264.0, 1.6), is_vacuous(None, 1.6)
    (False, True, None)
    """
    return None if bound is None else bound != 0.0 and not bound < raw


def rate_error(deviation: float | Floats) -> Floats:
    """The raw error of a coverage or win rate, from its deviation from the target."""
    return np.maximum(np.abs(deviation), LEAST_RATE)


def raw_errors(reading: Reading, accounts: Account | Sequence[Account]) -> Floats:
    """The raw error of each account (rows of a table, or flat): |mean error|, or its standard error if larger."""
    table = np.asarray(accounts, dtype=float).reshape(-1, col.COLUMNS)
    weight = np.where(table[:, col.WEIGHT] > 0.0, table[:, col.WEIGHT], math.inf)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = table[:, col.BEFORE] / weight
        if reading.terms.levels or reading.of_players:
            return rate_error(mean)
        squares = reading.terms.loss_scale * table[:, col.LOSS_BEFORE] / weight
        error = np.sqrt(np.maximum(squares - mean * mean, 0.0) / np.maximum(table[:, col.ROWS], 1.0))
    # If the squares overflowed, the standard error is unknown.
    errors: Floats = np.fmax(np.abs(mean), np.where(np.isfinite(error), error, 0.0))
    task, totals = reading.terms.task, reading.totals
    if errors.all() or task not in ("mean", "poisson") or any(t[col.BEFORE] or t[col.LOSS_BEFORE] for t in totals):
        return errors
    # The model was always right. The range of its residuals is then their rounding error, which gives the size of its
    # values. With link exp, errors are relative and the size is 1.
    values = 1.0 if task == "poisson" else 1.0 / col.ROUND * max(max(-t[col.LOW], t[col.HIGH], 0.0) for t in totals)
    return np.maximum(errors, NEGLIGIBLE * values)


def raw_error_of_all(reading: Reading) -> float:
    """The raw error to compare with the bound on the largest coordinate."""
    whole = reading.totals[0][col.WEIGHT]
    if not whole:
        return 0.0
    every = np.asarray(reading.state.sums, dtype=float).reshape(-1, col.COLUMNS)
    shares = raw_errors(reading, every) * (every[:, col.WEIGHT] / whole)
    most = float(shares.max(initial=0.0))
    return most if reading.of_players else max(most, float(np.max(raw_errors(reading, reading.totals))))


def no_guarantee(needed: int | None, noun: str = "label", of: str = "") -> str:
    """The text that replaces a vacuous bound. ``needed``: labels until it is informative, None if never.

    ``of`` names the bounded quantity where there are two bounds.

    >>> no_guarantee(12_345)
    'no worst-case guarantee yet; it needs about 13,000 labels'
    >>> no_guarantee(None)
    'no worst-case guarantee: more labels would not bring one'
    """
    none = f"no worst-case guarantee{of and ' on '}{of}"
    if needed is None:
        return f"{none}: more {noun}s would not bring one"
    if needed > 10**9:
        return f"{none} yet; it needs more than a billion {noun}s"
    unit = 10 ** max(0, len(str(needed)) - 2)
    return f"{none} yet; it needs about {-(-needed // unit) * unit:,} {noun}s"


@dataclass(frozen=True)
class Learning:
    """What is in force now.

    ``method``: "auto", or "plain" for a step or schedule of its own. ``eta``: the scheduled step (of auto: of the
    final layer), ``step``: the smallest that a label would be given now, held down where labels come late. ``late``
    and ``latest``: rows served between a row and its label, on average and at most. ``memory``: labels that auto
    remembers, the geometric mean of its experts' by weight; ``raw``: the weight of the raw prediction; both None for
    other steps, the memory also before labels. ``unlabelled``: the share of the rows served that have no label to
    learn from. ``silent``: rows served since a label last came; ``silence``: the most that were served from one
    label to the next. Both 0 before labels. ``learned``: labels learned from; ``not_due``: labels that are given but
    come only after the last row. ``latest_in_series``: as ``latest``, in rows of its own series; None without keys,
    and where series have groups of their own. ``replaced``: predictions without an id that another one replaced
    before their label came. ``held_back``: labels that are known and not learned, since their delay seems to depend
    on them.
    """

    method: str
    eta: float
    step: float
    late: float
    latest: int
    memory: float | None
    raw: float | None
    unlabelled: float
    silent: int
    silence: int
    learned: int
    not_due: int
    latest_in_series: int | None = None
    replaced: int = 0
    held_back: int = 0

    @property
    def lateness(self) -> str:
        """The largest lateness of a label, in words; empty if none was late."""
        if self.latest_in_series is not None:
            return f"{some(self.latest_in_series, 'row')} of their series" if self.latest else ""
        return some(self.latest, "row") if self.latest else ""

    @property
    def usual(self) -> float:
        """A run of rows without a label that is normal, given how late and how rare labels are."""
        return 5.0 * (self.late + 5.0) / max(1e-9, 1.0 - self.unlabelled)

    @property
    def stopped(self) -> bool:
        """Whether labels seem to have stopped: none for 1.5 times the longest gap so far."""
        return self.silent > max(self.usual, 1.5 * self.silence)

    @property
    def outage(self) -> bool:
        """Whether labels were once missing for far longer than usual."""
        return self.silence > self.usual

    def __str__(self) -> str:
        step = f"step {self.eta:.3g}"
        if self.method == "auto":
            step = "auto"
            if self.memory is not None:
                step += f" with a memory of about {some(round(self.memory), 'label')}"
            if self.learned and self.raw is not None and self.raw >= 0.005:
                step += f" ({100 * self.raw:.0f} % raw prediction)"
            step += f"; final step {self.eta:.3g}"
        if self.step < self.eta * (1.0 - 1e-9):
            step += f", at the end capped at {self.step:.2g}"
        late = "labels known before the next row" if self.learned else "no label learned from"
        if self.latest:
            mean = f"{self.late:,.0f}" if self.late >= 100.0 else f"{self.late:.3g}"
            late = f"labels {mean} rows late on average, {self.latest:,} at most"
            late = late if self.latest_in_series is None else f"labels up to {self.lateness} late"
        late += f", {self.gaps}" if self.gaps else ""
        late += f"; {some(self.not_due, 'label', 'waits', 'wait')} for a later row" if self.not_due else ""
        rest = f"; {self.replacements}" if self.replaced else ""
        share = f"{100 * self.unlabelled:.3g} % of rows have no label to learn from" if self.unlabelled else ""
        return f"{step}; {late}; {share or 'every row had a label'}{rest}"

    @property
    def replacements(self) -> str:
        were = agreeing(self.replaced, "was", "were")
        return f"{some(self.replaced, 'prediction')} {were} replaced before a label came" if self.replaced else ""

    @property
    def gaps(self) -> str:
        """Gaps in the labels, past or present, in words; may be empty."""
        once = f"none came for {some(self.silence, 'row')} at one time" if self.outage else ""
        now = f"none has come for the last {some(self.silent, 'row')}" if self.stopped else ""
        now = f"{some(self.held_back, 'label')} held back" if self.held_back else now
        return ", ".join(part for part in (once, now) if part)


def learning_of(layer: LayerLike) -> Learning:
    parts, state, facts = layer.internals, layer.internals.state, layer.internals.state.facts
    rule = getattr(parts.rule, "inner", parts.rule)
    served, posted, waiting = facts[fact.SERVED], facts[fact.POSTED], len(parts.tickets.waiting)
    held_back = len(parts.tickets.held_back) if parts.tickets.early is not None else 0
    last_label, longest = state.silence
    memory = raw = in_series = None
    if (memories := getattr(rule, "memories", None)) is not None:
        weights, labels = weights_of(state), state.heard[0]
        pairs = list(zip(weights, memories, strict=True))
        raw = sum(w for w, m in pairs if not m)
        experts = [(w, min(m, max(1.0, labels))) for w, m in pairs if m and labels]
        total = sum(w for w, _ in experts)
        memory = math.exp(sum(w * math.log(m) for w, m in experts) / total) if total else None
    if layer.kind == "keyed" and (parts.names.roster.scalar or parts.lateness.per == "key"):
        in_series = int(max(state.late[LATEST::LATENESS], default=1.0)) - 1
    eta = float(rule.schedule.step(int(served) + 1))
    auto = memories is not None or (layer.kind == "elo" and layer.settings["eta"] == "auto")
    return Learning(
        method="auto" if auto else "plain",
        eta=eta,
        step=step_in_force(layer, eta),
        late=facts[fact.DELAY_SUM] / posted if posted else 0.0,
        latest=int(facts[fact.DELAY_MOST]),
        memory=memory,
        raw=raw,
        unlabelled=max(0.0, 1.0 - (posted + waiting) / served) if served else 0.0,
        silent=int(max(0.0, served - last_label)) if last_label else 0,
        silence=int(longest),
        learned=int(posted - facts[fact.SKIPPED]),
        not_due=waiting - held_back,
        latest_in_series=in_series,
        replaced=sum(parts.tickets.replaced.values()),
        held_back=held_back,
    )


def step_in_force(layer: LayerLike, eta: float) -> float:
    """The step of a label of the group (or key) whose labels come latest; a bound from below with several columns."""
    state, flight = layer.internals.state, layer.internals.lateness
    peaks = state.late[::LATENESS]
    peak = max(peaks, default=1.0)
    if flight.limit is None or peak < 2.0:
        return eta
    columns = getattr(layer.internals.names, "groups", ()) if flight.per == "parameter" else ()
    if len(columns) > 1:
        by_name = list(zip(layer.internals.names.names, peaks, strict=True))
        peak = sum(max(p for name, p in by_name if f"{column_name(column)}=" in name) for column in columns)
    size = max(state.norms, default=1.0) if flight.featured else 1.0
    return min(eta, float(flight.limit / (peak * size))) if size > 0.0 else eta


def capped_by_weight_alone(layer: LayerLike) -> bool:
    """Whether only weights caused the cap: no row of mean weight would have been capped."""
    state, flight = layer.internals.state, layer.internals.lateness
    facts = state.facts
    if flight.limit is None or not facts[fact.HEAVIEST] > 1.0:
        return False
    cells = 1
    if flight.per == "parameter":
        cells = 3 if layer.kind == "elo" else max(1, len(getattr(layer.internals.names, "groups", ())))
    latest = max(facts[fact.LATEST], flight.in_flight, *state.late[::LATENESS])
    size = max(1.0, *state.norms) if flight.featured else 1.0
    return bool(flight.limit / (cells * latest * size) >= facts[fact.STEP_HIGH])


MANY_WEIGHTS = 20  # positive weights: fewer say nothing about what is usual
AFTER = 10  # rows that were served after a weight before it is called large
SLOWER = 25.0  # the mean of weights over that of all others


class LargeWeight(NamedTuple):
    """One weight that outweighs all others of its layer or key, so that later rows are learned slowly.

    ``row``: its number in the order of serving, 0 where it is not known, as with keys; ``key``: whose it is, None of
    a whole layer. ``usual``: the mean of the other weights. ``slowest``: how many times smaller the relative weight
    of a usual row was once 20 weights were known, ``slower``: how many times it is now.
    """

    weight: float
    row: int
    key: str | None
    usual: float
    slowest: float
    slower: float

    @property
    def rows(self) -> float:
        """About how many rows it takes until a usual row has half its weight again."""
        return self.weight / self.usual

    @property
    def named(self) -> str:
        row = f" of row {self.row:,}" if self.row else ""
        of = "" if self.key is None else f" of key {self.key!r}"
        return f"{self.weight:.6g}{row}{of}"


def no_weight_dominates(state: State, key: int) -> bool:
    """Whether the largest weight of a key is at most half of the sum: a quick test before ``large_weight``."""
    if not state.largest_weight:
        return True
    most = state.largest_weight[key * LARGEST]
    return bool(2.0 * most <= state.weighed[key] * state.mean_weight[key])


def large_weight(internals: LayerParts, key: int | None = None) -> LargeWeight | None:
    """The weight that slows a layer (or one key) most; None if none does."""
    state = internals.state
    if not len(state.weighed) or not len(state.largest_weight):
        return None
    if key is not None and state.weighed[key] < MANY_WEIGHTS + AFTER:
        return None
    rows = slice(None) if key is None else slice(key, key + 1)
    count, mean = state.view("weighed")[rows], state.view("mean_weight")[rows]
    weight, row, place = state.view("largest_weight").reshape(-1, LARGEST)[rows].T
    with np.errstate(all="ignore"):
        # What rounding leaves of the others: one part in 1e15 of their sum with the largest.
        usual = np.maximum(count * mean - weight, 1e-15 * weight) / (count - 1.0)
        enough = np.maximum(place, MANY_WEIGHTS)
        slowest = 1.0 + (weight / usual - 1.0) / enough
    large = (count >= enough + AFTER) & (slowest >= SLOWER)
    if not large.any():
        return None
    k = int(np.argmax(np.where(large, mean / usual, 0.0)))
    names = internals.names.book.names if internals.kind == "keyed" else None
    named = None if names is None else str(names[k if key is None else key])
    figures = (float(column[k]) for column in (usual, slowest, mean / usual))
    return LargeWeight(float(weight[k]), int(row[k]), named, *figures)


class GroupLateness(NamedTuple):
    """How late the labels of a group come, in rows of the group: those served, the peak that holds its steps down,
    and the step of a label now (None where it depends on the other groups of a row)."""

    served: int
    peak: int
    step: float | None


def group_lateness(layer: LayerLike, names: Iterable[str]) -> dict[str, GroupLateness]:
    """The groups of these names; none where lateness is not counted by group."""
    flight, state = layer.internals.lateness, layer.internals.state
    index = getattr(layer.internals.names, "index", {})
    if flight.per != "parameter":
        return {}
    rule = getattr(layer.internals.rule, "inner", layer.internals.rule)
    eta = float(rule.schedule.step(int(state.facts[fact.SERVED]) + 1))
    single = len(getattr(layer.internals.names, "groups", ())) == 1
    groups = {}
    for name in filter(index.__contains__, names):
        at = index[name]
        peak = state.late[at * LATENESS + PEAK] if len(state.late) else 1.0
        limit = math.inf if flight.limit is None else flight.limit
        step = capped(eta, limit, 1.0, peak, peak, 1.0) if single else None
        groups[name] = GroupLateness(int(state.rows[at]), int(peak), step)
    return groups
