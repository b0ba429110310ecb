"""What a state knows of its labels: coverage, groups, and what got worse since it began."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from gradeq.coverage import Coverage, joint
from gradeq.coverage import share as share_of_rows
from gradeq.equilibrium import Coordinate, Equilibrium, column_of
from gradeq.informative import rate_error
from gradeq.ledger import facts as fact
from gradeq.naming import column_name, split_name
from gradeq.report import story as told
from gradeq.report.harm import Measured, ever_weighted, harm
from gradeq.report.late_notices import labels_held_back
from gradeq.report.of_keys import keyed_coverage
from gradeq.report.words import not_counted

PARTS = "what is proven is about each parameter, not about the coverage of all rows"


def coverages_of(layer: Any, reached: Equilibrium) -> list[Coverage]:
    """Coverages by level, or of the interval; none for a Debiaser."""
    if layer.kind == "keyed":
        return keyed_coverage(layer, reached) if layer._terms.levels else []
    found = getattr(layer, "coverage", None)
    if found is None:
        return []
    return found if isinstance(found, list) else [found]


def in_short(layer: Any, reached: Equilibrium) -> str:
    """A state in one sentence: bias or coverage and the loss over all its labels, the certificate and the bound."""
    covered = coverages_of(layer, reached) if reached.rows else []
    said = [
        f"coverage {c.before:.3g} -> {c.after:.3g}, target {c.target:g}{within(c)}" for c in covered
    ]
    verdict = stated(reached, covered).verdict("; ".join(said))
    book = layer._book
    held = len(book.held_back) if book.early is not None else 0
    immature = len(book.waiting) if book.maturity else 0
    beside = not_counted(heard_only(layer), taken_back(layer, reached), immature, held)
    if beside:
        verdict = verdict if reached.rows else "no label to learn from: nothing to certify"
        verdict += f"; {beside}"
    return (
        f"in shadow, raw values are served; would be: {verdict}"
        if layer.shadow and reached.rows
        else verdict
    )


def within(c: Coverage) -> str:
    """The coverage of what was served, where limits made it another than that which is judged."""
    if c.clipped is None or c.clipped == c.after:
        return ""
    return f" (judged before the limits; as served, inside them, {c.clipped:.3g})"


def held_back(layer: Any) -> told.Notice | None:
    """Labels are held back because their delay seems to depend on their value."""
    early = layer._book.early
    if early is None or early.since is None:
        return None
    labels = len(layer._book.held_back)
    return labels_held_back(labels, early.why) if labels or early.why else None


def heard_only(layer: Any) -> int:
    """Labels that came while learning was frozen: they are in no average."""
    return int(layer._state.facts[fact.SKIPPED])


def taken_back(layer: Any, reached: Equilibrium) -> int:
    """Labels that were learned from and withdrawn since, with none in their place."""
    return max(0, int(layer.in_flight["labelled"]) - heard_only(layer) - reached.rows)


def stated(reached: Equilibrium, covered: list[Coverage]) -> Equilibrium:
    """The same with the bound that the sentence says: where coverages stand beside it, the one on them."""
    if not covered:
        return reached
    value, vacuous = coverage_bound(covered)
    none = reached.bound is None or not math.isfinite(reached.bound)
    source = reached.bound_from if none or value == reached.bound else ""
    source = PARTS if value is None and not none else source
    needed = coverage_needed(covered, reached.rows) if vacuous else None
    return replace(reached, bound=value, vacuous=vacuous, bound_from=source, needed=needed)


def coverage_bound(covered: list[Coverage]) -> tuple[float | None, bool | None]:
    """The bound that stands beside coverages is on them, not on one of their parts; whether it is vacuous."""
    bounds = [c.bound for c in covered if c.bound is not None]
    if len(bounds) < len(covered):
        return None, None
    return max(bounds), any(c.vacuous for c in covered)


def coverage_needed(covered: list[Coverage], rows: int) -> int | None:
    """About how many labels in all until the bounds on these coverages say something: they fall as 1/n."""
    ratios = [
        c.bound / float(rate_error(c.before - c.target)) for c in covered if c.vacuous and c.bound
    ]
    most = max(ratios, default=0.0)
    return math.ceil(rows * most) if rows and math.isfinite(rows * most) else None


def harm_since(
    layer: Any, reached: Equilibrium, among: tuple[told.Group, ...] | None = None
) -> list[told.Notice]:
    """What got worse over all labels of a state, in the words of a run; of games nothing is compared so.

    ``among``: the groups, where they are known already.
    """
    if layer.kind == "elo":
        return []
    loss = loss_of(reached)
    groups = [
        Measured(
            f"{column_name(g.by)}={g.name}", g.rows, told.Pair(g.before, g.after), g.loss, g.target
        )
        for g in (groups_of(layer, reached) if among is None else among)
    ]
    found = harm(layer, loss, reached.rows, groups, ever_weighted(layer, reached))
    held = [notice for notice in [held_back(layer)] if notice is not None]
    if not layer.shadow:
        return [*held, *found]
    return held + [
        replace(n, evidence=f"In shadow: none of it was served. {n.evidence}") for n in found
    ]


def groups_of(layer: Any, reached: Equilibrium, most: int | None = None) -> tuple[told.Group, ...]:
    """Groups with labels: bias, or the coverage of an interval or of the first level.

    ``most``: no more than these, the ones with most labels.
    """
    target = target_of(layer)
    several = layer.kind == "interval" or isinstance(getattr(layer, "coverage", None), list)
    cells: dict[str, list[Coordinate]] = {}
    for cell in _with_most_rows(reached.coordinates, most, layer):
        name = cell.name.rpartition(" @ ")[0] if several else cell.name
        cells.setdefault(name, []).append(cell)
    found = []
    for name, parts in cells.items():
        by, value = split_name(name)
        if not value or not parts[0].rows:
            continue
        ends = parts if layer.kind == "interval" else parts[:1]
        shown = [share(target, ends, when) for when in ("bias_before", "bias_after")]
        loss = [sum(known(getattr(c, f"loss_{w}")) for c in parts) / len(parts) for w in WHEN]
        bound, vacuous = joint(ends, target if layer.kind == "interval" else None)
        found.append(
            told.Group(
                by, value, parts[0].rows, math.nan, shown[0], shown[1], told.Pair(*loss),
                bound, bool(vacuous), target,
            )
        )  # fmt: skip
    columns = list(dict.fromkeys(group.by for group in found))  # bins of the prediction are one too
    return tuple(sorted(found, key=lambda group: columns.index(group.by)))  # each column's together


def covered_since(layer: Any, reached: Equilibrium) -> dict[str, Any]:
    """The coverage over all labels of a layer, of several levels a list; nothing where no coverage is asked for."""
    shares = [
        {"target": c.target, "before": c.before, "after": c.after}
        | ({} if c.clipped is None else {"inside_limits": c.clipped})
        if reached.rows
        else {"target": c.target, "before": None, "after": None}
        for c in coverages_of(layer, reached)
    ]
    return {"coverage": shares if len(shares) > 1 else shares[0]} if shares else {}


def groups_since(layer: Any, reached: Equilibrium) -> list[dict[str, Any]]:
    """The groups of a layer over all its labels, largest remaining error first; none of games."""
    found = [] if layer.kind == "elo" else list(groups_of(layer, reached))
    found.sort(key=lambda g: -abs(g.after - (g.target or 0.0)))
    return [
        {
            "name": f"{column_name(g.by)}={g.name}",
            "rows": g.rows,
            "bias" if g.target is None else "coverage": {"before": g.before, "after": g.after},
            "loss": {"before": g.loss.before, "after": g.loss.after},
            "bound": g.bound,
            "vacuous": None if g.bound is None else g.vacuous,
        }
        for g in found
    ]


def ends_of(layer: Any) -> int:
    """How many coordinates each group has: one, or one for each level."""
    return len(getattr(layer, "levels", ())) or 1


def _with_most_rows(
    coordinates: Sequence[Coordinate], most: int | None, layer: Any
) -> Sequence[Coordinate]:
    """The coordinates of the groups with most labels, in their own order; those of a group stand together."""
    each = ends_of(layer)
    if most is None or len(coordinates) <= most * each:
        return coordinates
    rows = column_of(coordinates, "rows")[::each]
    kept = sorted(heapq.nlargest(most, range(len(rows)), key=rows.__getitem__))
    return [coordinates[each * g + k] for g in kept for k in range(each)]


WHEN = ("before", "after")


def share(target: float | None, ends: list[Coordinate], when: str) -> float:
    """A bias; of a level its coverage; of an interval what its two ends leave between them."""
    errors = [known(getattr(c, when)) for c in ends]
    off = errors[-1] - errors[0] if len(errors) > 1 else errors[0]
    return off if target is None else share_of_rows(target, off)


def loss_of(reached: Equilibrium) -> told.Loss:
    """The loss before and after."""
    return told.Loss(
        reached.loss_name,
        known(reached.loss_before),
        known(reached.loss_after),
        reached.negligible,
    )


def known(value: float | None) -> float:
    """A figure; nan, which is shown as a dash, where rounding has destroyed it."""
    return math.nan if value is None else value


def target_of(layer: Any) -> float | None:
    """The coverage asked for: of an interval, or at the first level; None of a Debiaser."""
    found = getattr(layer, "coverage", None)
    first = found[0] if isinstance(found, list) else found
    return None if first is None else float(first.target)
