"""The story of a layer: from its state alone, and with a run also row by row."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import TYPE_CHECKING, cast

import numpy as np

from gradeq.certificates.certificate import Coverage
from gradeq.certificates.figures import capped_by_weight_alone, learning_of
from gradeq.equilibrium import MIXED, RELATIVE, Equilibrium, column_of
from gradeq.errors import BadInput
from gradeq.report import notices as say
from gradeq.report import state_facts, story
from gradeq.report.method import identity_line
from gradeq.report.numerals import count
from gradeq.report.page import html
from gradeq.report.rolling import Blocks, Floats, StreamHistogram, corrections, numbers, rolling_chart, window
from gradeq.report.sentences import FEW, ordered
from gradeq.report.state_facts import WORST, certificate_of, coverages_of, loss_of, or_nan, worst_group
from gradeq.report.story import Rolling
from gradeq.schedules import Constant
from gradeq.theory.features import step_from_k

if TYPE_CHECKING:
    from gradeq.certificates.contracts import EloLayer, KeyedLayer, LayerLike, LayerRun
    from gradeq.leaderboard.ranks import Board

PLAYER_FIELDS = [field.name for field in fields(story.Player) if field.name != "vacuous"]
KEYS = 20  # series farthest off, on the page of a layer at work
UNDRAWN = {  # they have no raw prediction to compare with
    "risk": "a knob; layer.risk and print(layer.equilibrium()) say how far its error is from the target",
    "conformal": "a threshold of scores; layer.coverage and print(layer.equilibrium()) say what it reached",
}
AVERAGED = {
    RELATIVE: "averages, certificate and bounds are by relative weight: each weight divided by the mean of the "
    "positive ones served so far (of its key), itself included",
    MIXED: f"averages, certificate and bounds are by weight, {MIXED}",
}


def page_of(layer: LayerLike, run: LayerRun | None = None) -> str:
    return html(elo_story(cast("EloLayer", layer)) if layer.kind == "elo" else story_of(layer, run))


def elo_story(layer: EloLayer, standing: Board | None = None) -> story.EloStory:
    """The story of an Elo layer from its state: the board (default: that of the layer), and what is certified."""
    board, reached = layer.board() if standing is None else standing, layer.equilibrium()
    pulled = layer.penalty is not None or layer.proximal is not None
    method = story.Method(
        "elo", auto=layer.eta == "auto", extra="A penalty also pulls ratings towards 0." if pulled else ""
    )
    if board.rows:  # the identity worked through for the first player
        first, step = board.rows[0], layer.step if reached.exact else None
        line = story.Worked(first.player, first.games, first.tracked, first.bias, step, first.bias * first.games)
        method = replace(method, worked=(line,), exact=reached.exact)
    home, after = board.home, reached.loss_after
    replaced = "" if reached.learning is None else reached.learning.replacements
    return story.EloStory(
        made=story.Provenance(type(layer).__name__, repr(layer)),
        a="first player",
        b="second player",
        games=reached.rows,
        players=len(board.rows),
        loss=None if not reached.rows or after is None else story.LossFigures("log loss", math.log(2.0), after),
        certificate=replace(certificate_of(reached, []), rounding=0.0),
        rows=tuple(
            story.Player(**{field: getattr(row, field) for field in PLAYER_FIELDS}, vacuous=bool(row.vacuous))
            for row in board.rows
        ),
        k=layer.step / step_from_k(1.0),
        eta=layer.step,
        method=method,
        ties=None,
        lines=board.lines,
        home=home and story.Advantage(home.elo, home.low, home.high, layer.step * layer.internals.names.scale**2),
        fitted=board.weight,
        residual=None if board.fit is None else board.fit.residual,
        notices=(predictions_replaced(replaced),) if replaced else (),
    )


def predictions_replaced(counted: str) -> story.Notice:
    """Predictions without ids were replaced before their label came. ``counted``: how many, in words."""
    evidence = "Without ids a layer waits for one label at a time. Nothing is claimed about these rows."
    how = "Give each prediction an `id`; call `layer.skip()` where no label will come, `layer.peek()` to look only."
    return story.Notice("amber", f"{counted}.", evidence, how)


def with_charts(summary: story.Story, layer: LayerLike, run: LayerRun, targets: list[float]) -> story.Story:
    """The story with the charts of a run, rows in the order of serving. ``targets``: those of the coverages."""
    columns, single = run.columns, getattr(layer, "layer", layer)
    assert columns is not None
    tally = StreamHistogram(0.0, 1.0) if single.settings.get("outcome") == "binary" else StreamHistogram()
    tally.add(np.asarray(run.values).ravel())
    n = len(columns.base)
    order = np.arange(n) if columns.times is None else np.argsort(columns.times, kind="stable")
    base, served = (np.asarray(values)[order].reshape(n, -1) for values in (columns.base, run.values))
    labels = np.asarray(columns.labels)[order]
    panels = summary.theta
    if layer.kind in ("debias", "quantile", "interval", "quantiles"):
        if getattr(layer, "eta", None) == "auto":
            levels = [f"{tau:g}" for tau in getattr(layer, "levels", ())]
            names = levels if len(levels) > 1 else ["(all)"]
            blocks = Blocks(names)
            blocks.add(dict(zip(names, corrections(layer, base, served).T, strict=True)))
            series = blocks.trailing(window(n))
            x, curves = series.x, [series.means[name] for name in names]
        else:
            names, x = list(run.trace.names), np.asarray(run.trace.rows, dtype=float)
            curves = list(np.asarray(run.trace.theta).T)
        lines = (story.NamedCurve(name, numbers(curve)) for name, curve in zip(names[:8], curves, strict=False))
        panels = (story.ThetaPanel("", "row", tuple(x.tolist()), tuple(lines)),)
    rolled = rolling_means(single.kind, base, served, labels, targets)
    return replace(summary, histogram=tally.histogram(), rolling=rolled, theta=panels)


def rolling_means(kind: str, base: Floats, served: Floats, labels: Floats, targets: list[float]) -> Rolling | None:
    known = ~np.isnan(labels)
    base, served, y = base[known], served[known], labels[known]
    measures = {
        "before": base[:, 0], "after": served[:, 0], "label": y,
        "upper_before": base[:, -1], "upper_after": served[:, -1],
    }  # fmt: skip
    for k, _ in enumerate(targets):
        for when, values in (("before", base), ("after", served)):
            below = y <= values[:, min(k, values.shape[1] - 1)]
            if kind == "interval" and values.shape[1] > 1:
                below = (values[:, 0] < y) & (y <= values[:, -1])
            measures[f"cover{k}_{when}"] = below.astype(float)
    blocks = Blocks(tuple(measures))
    blocks.add(measures, (np.flatnonzero(known) + 1).astype(np.float64))
    series = blocks.trailing(window(len(y)))
    if len(series.x) < 2:
        return None
    mean = series.means
    tracked = [(f"{t:g}", t, mean[f"cover{k}_before"], mean[f"cover{k}_after"]) for k, t in enumerate(targets)]
    tracked = tracked or [("", 0.0, mean["before"] - mean["label"], mean["after"] - mean["label"])]
    ends = "interval" if kind == "interval" else "levels" if served.shape[1] > 1 else ""
    return rolling_chart(series, tracked, ends)


def has_page(layer: LayerLike) -> bool:
    return not hasattr(getattr(layer, "layer", layer), "coverage") or bool(coverages_of(layer, layer.equilibrium()))


def story_of(layer: LayerLike, run: LayerRun | None = None) -> story.Story:
    """The story of a layer; ``run`` adds what only its rows can show."""
    if layer.kind in UNDRAWN:
        raise BadInput(
            f"{type(layer).__name__} has no page or figure: pages compare a raw prediction with what was served, and "
            f"this layer serves {UNDRAWN[layer.kind]}"
        )
    reached = layer.equilibrium()
    coverage = coverages_of(layer, reached)
    if hasattr(getattr(layer, "layer", layer), "coverage") and not coverage:
        raise BadInput(
            "series with groups or features of their own have no page; layer.table() has the figures of every series"
        )
    summary = state_story(layer, reached)
    if run is None:
        return summary
    if reached.weights:
        alike = story.Fact("Charts over time", "every row counts alike, whatever its weight")
        summary = replace(summary, data=(*summary.data, alike))
    return with_charts(summary, layer, run, [c.target for c in coverage])


def state_story(layer: LayerLike, reached: Equilibrium, most: int | None = None) -> story.Story:
    """The story of a state. ``most``: at most this many groups; the worst group is then unknown."""
    single = getattr(layer, "layer", layer)  # of many keys: the one that they share
    settings, coverage = single.settings, coverages_of(layer, reached)
    interval = single.kind in ("interval", "conformal")
    covered = [story.CoverageFigures("interval" if interval else f"{c.target:g}", *c[:3]) for c in coverage]
    groups = state_facts.groups_of(layer, reached, most) if len(coverage) < 2 else ()
    total = len(groups)
    if most is not None and len(groups) >= most:
        total = len(reached.coordinates) // state_facts.levels_per_group(single)
    known = groups if total == len(groups) else ()
    worst = worst_group((g.name, g.before - (g.target or 0.0), g.after - (g.target or 0.0)) for g in known)
    bias = None if covered else story.BeforeAfter(or_nan(reached.bias_before), or_nan(reached.bias_after))
    certificate = certificate_of(reached, coverage)
    verdict = story.Verdict(loss_of(reached), certificate, bias, tuple(covered), worst, shadow=bool(layer.shadow))
    series = None
    if layer.kind == "keyed":
        keyed = cast("KeyedLayer", layer)
        ranked = state_facts.rank_series(keyed.table(), WORST if most is None else min(most, KEYS))
        series = state_facts.series_story(keyed, ranked)
    served = int(layer.traffic["served"])
    return story.Story(
        kind="quantile" if covered else "debias",
        made=story.Provenance(type(layer).__name__, repr(layer)),
        prediction=("prediction",),
        label="label",
        weight=reached.weights,
        by=tuple(settings.get("groups", ())),
        outcome="binary" if settings.get("outcome") == "binary" else "real",
        rows=served,
        labelled=reached.rows,
        open=len(layer.internals.tickets.opened),
        verdict=verdict,
        method=_method(layer, reached),
        features=tuple(settings.get("features", ())),
        key=layer.internals.tickets.desk.get("columns", {}).get("--key") or "key" if layer.kind == "keyed" else "",
        notices=_notices(layer, reached, coverage, known),
        groups=groups,
        groups_total=total,
        levels=_levels(coverage, reached),
        series=series,
        data=(
            story.Fact("Rows", f"{count(served)} served, {count(reached.rows)} learned from"),
            story.Fact("Learning", str(reached.learning)),
            *([story.Fact("Weights", AVERAGED[reached.weights])] if reached.weights else []),
        ),
    )


def _levels(covered: list[Coverage], reached: Equilibrium) -> tuple[story.LevelRow, ...]:
    if len(covered) < 2 or len(reached.coordinates) != len(covered):
        return ()
    rows = []
    for c, cell in zip(covered, reached.coordinates, strict=True):
        loss = story.BeforeAfter(or_nan(cell.loss_before), or_nan(cell.loss_after))
        coverage = story.BeforeAfter(c.before, c.after)
        rows.append(story.LevelRow(f"{c.target:g}", c.target, coverage, loss, c.bound, bool(c.vacuous)))
    return tuple(rows)


def _method(layer: LayerLike, reached: Equilibrium) -> story.Method:
    single = getattr(layer, "layer", layer)
    settings, covers = single.settings, hasattr(single, "coverage")
    link = settings.get("link") or ("sinh" if covers else "identity")
    auto = settings.get("eta") == "auto"
    if not reached.rows:
        return story.Method(link, exact=reached.exact, auto=auto)
    rows = column_of(reached.coordinates, "rows")
    first = reached.coordinates[rows.index(max(rows))]
    tail = f"coverage minus level{reached.by_weight}" if covers else f"the bias over its rows{reached.by_weight}"
    tail = f"the mean of error × {first.name}" if first.name in settings.get("features", ()) else tail
    tail = "the relative bias" if link == "exp" else tail
    worked = identity_line(reached, first, layer.steps["largest"], tail)
    return story.Method(link, (worked,), reached.exact, auto)


def _notices(
    layer: LayerLike, reached: Equilibrium, coverage: list[Coverage], groups: tuple[story.Group, ...]
) -> tuple[story.Notice, ...]:
    warnings: list[story.Notice | None] = [say.judged_before_limits(coverage)]
    if reached.rows < FEW:
        warnings += [state_facts.held_back_notice(layer), say.few_labels(reached.rows)]
    else:
        warnings += state_facts.worse_in_state(layer, reached, groups if len(coverage) < 2 else None)
    warnings.append(say.figures_not_known(reached.hidden))
    steps, late = layer.steps, learning_of(layer).lateness
    # The smallest step of all is one that was capped where nothing else made steps smaller.
    capped, by_weight = int(steps["capped"]), capped_by_weight_alone(layer)
    rule = getattr(layer.internals.rule, "final", None) or layer.internals.rule
    other = reached.weights or steps["resized"] or layer.log or type(rule.schedule) is not Constant
    least = None if other else float(f"{steps['smallest']:.3g}")
    if capped:
        heavy, weighted, features = (
            capped if by_weight else 0,
            bool(reached.weights),
            layer.internals.lateness.featured,
        )
        warnings.append(say.steps_capped(least, capped, late, heavy=heavy, weighted=weighted, features=features))
    shown = state_facts.with_coverage_bound(reached, coverage)
    if reached.rows and shown.vacuous and shown.bound is not None:
        several = len(reached.coordinates) > 1
        smallest = None if by_weight or not capped else least or 0.0
        why = say.vacuous_because(reached.rows, layer.step, smallest, late, several)
        warnings.append(say.layer_bound_vacuous(shown.needed, why, shown.bounded))
    if reached.learning is not None and reached.learning.replaced:
        warnings.append(predictions_replaced(reached.learning.replacements))
    waiting = 0 if reached.learning is None else reached.learning.not_due
    missing = int(layer.traffic["served"]) - reached.rows - waiting
    if missing > 0:
        warnings.append(say.no_label(missing, waiting=min(missing, len(layer.internals.tickets.opened))))
    return ordered(warnings)
