"""The page of a layer in Python: what its state knows, and with a run also how it went row by row."""

from __future__ import annotations

import platform
import time
from dataclasses import replace
from typing import Any

import numpy as np

from gradeq._version import __version__
from gradeq.coverage import Coverage
from gradeq.equilibrium import Equilibrium, column_of
from gradeq.errors import BadInput
from gradeq.learning import learning_of
from gradeq.report import late_notices as late_say
from gradeq.report import notices as say
from gradeq.report import story as told
from gradeq.report.identity import line
from gradeq.report.limits import judged_before_limits
from gradeq.report.numerals import count
from gradeq.report.of_elo import elo_story
from gradeq.report.of_keys import KEYS, many_series
from gradeq.report.of_run import drawn
from gradeq.report.of_state import (
    coverages_of,
    ends_of,
    groups_of,
    harm_since,
    held_back,
    known,
    loss_of,
)
from gradeq.report.page import html
from gradeq.report.surprises import not_known
from gradeq.report.words import FEW

_UNDRAWN = {  # nothing of theirs stands beside a raw prediction
    "risk": "a knob; layer.risk and print(layer.equilibrium()) say how far its error is from the target",
    "conformal": "a threshold of scores; layer.coverage and print(layer.equilibrium()) say what it reached",
}


def page_of(layer: Any, run: Any = None) -> str:
    """The page of a layer as text."""
    if layer.kind == "elo":
        return html(elo_story(layer, made_of(layer)))
    return html(story_of(layer, run))


def has_page(layer: Any) -> bool:
    """Whether a page can be made of a layer's state alone."""
    own = getattr(layer, "layer", layer)
    return not hasattr(own, "coverage") or bool(coverages_of(layer, layer.equilibrium()))


def story_of(layer: Any, run: Any = None) -> told.Story:
    """A layer's story; ``run`` adds what only its rows can show."""
    if layer.kind in _UNDRAWN:
        raise BadInput(
            f"{type(layer).__name__} has no page or figure: pages compare a raw prediction with what was served, and "
            f"this layer serves {_UNDRAWN[layer.kind]}"
        )
    reached = layer.equilibrium()
    coverage = coverages_of(layer, reached)
    if hasattr(getattr(layer, "layer", layer), "coverage") and not coverage:
        raise BadInput(
            "series with groups or features of their own have no page; layer.table() has the figures of every series"
        )
    return replace(told_of(layer, reached), **drawn(layer, run, [c.target for c in coverage]))


def told_of(layer: Any, reached: Equilibrium, most: int | None = None) -> told.Story:
    """What a state tells; ``most``: of no more groups than these, and then nothing on what became of all of them."""
    own = getattr(layer, "layer", layer)  # of many keys: the one that they share
    settings, coverage = own.settings, coverages_of(layer, reached)
    covered = [_told(own, c) for c in coverage]
    groups = groups_of(layer, reached, most) if len(coverage) < 2 else ()
    total = len(groups)
    if most is not None and len(groups) >= most:
        total = len(reached.coordinates) // ends_of(own)
    worst = None
    if groups and total == len(groups):
        off = [(g.name, g.before - (g.target or 0.0), g.after - (g.target or 0.0)) for g in groups]
        was, now = max(off, key=lambda g: abs(g[1])), max(off, key=lambda g: abs(g[2]))
        worst = told.Worst(was[0], was[1], now[0], now[2])
    loss = loss_of(reached)
    certificate = told.Certificate(
        abs(reached.largest), reached.bound, reached.gap, reached.exact, bool(reached.vacuous),
        rounding=reached.rounding,
    )  # fmt: skip
    bias = None
    if not covered:
        bias = told.Pair(known(reached.bias_before), known(reached.bias_after))
    served = int(layer.in_flight["served"])
    return told.Story(
        kind="quantile" if covered else "debias",
        made=made_of(layer),
        prediction=("prediction",),
        label="label",
        by=tuple(settings.get("groups", ())),
        outcome="binary" if settings.get("outcome") == "binary" else "real",
        rows=served,
        labelled=reached.rows,
        verdict=told.Verdict(
            loss, certificate, bias, tuple(covered), worst, shadow=bool(layer.shadow)
        ),
        method=_method(layer, reached),
        features=tuple(settings.get("features", ())),
        key=layer._book.desk.get("columns", {}).get("--key") or "key"
        if layer.kind == "keyed"
        else "",
        notices=_notices(layer, reached, coverage, groups if total == len(groups) else ()),
        groups=groups,
        groups_total=total,
        levels=_levels(coverage, reached),
        series=_series(layer, most) if layer.kind == "keyed" else None,
        data=(
            told.Fact("Rows", f"{count(served)} served, {count(reached.rows)} learned from"),
            told.Fact("Learning", str(reached.learning)),
        ),
    )


def _series(layer: Any, most: int | None) -> told.ManySeries | None:
    return many_series(layer) if most is None else many_series(layer, min(most, KEYS))


def made_of(layer: Any) -> told.Made:
    """Where the page of a layer comes from."""
    versions = f"gradeq {__version__}, Python {platform.python_version()}, numpy {np.__version__}"
    return told.Made(type(layer).__name__, time.time(), __version__, versions, repr(layer))


def _told(own: Any, c: Coverage) -> told.Coverage:
    name = "interval" if own.kind in ("interval", "conformal") else f"{c.target:g}"
    return told.Coverage(name, c.target, c.before, c.after)


def _levels(covered: list[Coverage], reached: Equilibrium) -> tuple[told.LevelRow, ...]:
    if len(covered) < 2:
        return ()
    cells = reached.coordinates if len(reached.coordinates) == len(covered) else ()
    return tuple(
        told.LevelRow(
            f"{c.target:g}", c.target, told.Pair(c.before, c.after),
            told.Pair(known(cell.loss_before), known(cell.loss_after)), c.bound, bool(c.vacuous),
        )
        for c, cell in zip(covered, cells, strict=False)
    )  # fmt: skip


def _method(layer: Any, reached: Equilibrium) -> told.Method:
    own = getattr(layer, "layer", layer)
    settings, covers = own.settings, hasattr(own, "coverage")
    link = settings.get("link") or ("sinh" if covers else "identity")
    auto = settings.get("eta") == "auto"
    if not reached.rows:
        return told.Method(link, exact=reached.exact, auto=auto)
    rows = column_of(reached.coordinates, "rows")
    first = reached.coordinates[rows.index(max(rows))]
    tail = "coverage minus level" if covers else "the bias over its rows"
    tail = (
        f"the mean of error × {first.name}" if first.name in settings.get("features", ()) else tail
    )
    tail = "the relative bias" if link == "exp" else tail
    worked = line(reached, first, layer.steps["largest"], tail)
    return told.Method(link, (worked,), reached.exact, auto)


def _notices(
    layer: Any, reached: Equilibrium, coverage: list[Coverage], groups: tuple[told.Group, ...]
) -> tuple[told.Notice, ...]:
    found: list[told.Notice | None] = [judged_before_limits(coverage)]
    if reached.rows < FEW:
        found += [held_back(layer), say.few_labels(reached.rows)]
    else:
        found += harm_since(layer, reached, groups if len(coverage) < 2 else None)
    found.append(not_known(reached.hidden))
    steps, late = layer.steps, learning_of(layer).lateness
    least = float(f"{steps['smallest']:.3g}") if steps["capped"] else None
    if least is not None:
        found.append(late_say.steps_held(None, least, int(steps["capped"]), late))
    if reached.rows and reached.vacuous and reached.bound is not None:
        several = len(reached.coordinates) > 1
        why = say.vacuous_because(reached.rows, layer.step, least, late, several)
        found.append(say.vacuous_bounds(1, 1, "group", why))
    if reached.learning is not None and reached.learning.replaced:
        found.append(late_say.replaced(reached.learning.replacements))
    waiting = 0 if reached.learning is None else reached.learning.not_due
    missing = int(layer.in_flight["served"]) - reached.rows - waiting
    if missing > 0:
        found.append(late_say.no_label(missing, waiting=min(missing, len(layer._book.opened))))
    return say.ordered(notice for notice in found if notice is not None)
