"""A layer as one matplotlib figure: errors before and after with their bounds, and a run over time."""

from __future__ import annotations

import math
from io import BytesIO
from typing import TYPE_CHECKING, cast

from gradeq.errors import missing_extra
from gradeq.report.components import clean
from gradeq.report.layer_story import story_of
from gradeq.report.sentences import headline, text
from gradeq.report.story import Story

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Figure

    from gradeq.certificates.contracts import EloLayer, LayerLike, LayerRun
    from gradeq.leaderboard.ranks import Standing

BEFORE, AFTER, INK = "#848992", "#0b5cad", "#454b54"
MOST = 20  # groups drawn

Bars = list[tuple[str, float, float, float | None]]
"""Name, error before, error after and bound of each bar."""


def figure_of(layer: LayerLike, run: LayerRun | None = None) -> Figure:
    """A ``matplotlib.figure.Figure``; ``savefig`` writes it, a notebook shows it."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise missing_extra("report", "layer.plot()") from None
    # A notebook shows this type although pyplot does not know it.
    figure_type: type[Figure] = type("Drawing", (Figure,), {"_repr_png_": _png})
    if layer.kind == "elo":
        board = cast("EloLayer", layer).board()
        rows: Sequence[Standing] = board.rows[:MOST]
        figure = figure_type(figsize=(6.4, 1.6 + 0.26 * len(rows)), layout="constrained")
        axes = [figure.subplots()]
        _draw_board(axes[0], rows)
        title = "\n".join(line for line in board.lines if line)
    else:
        story = story_of(layer, run)
        bars, rolling = _bars(story), story.rolling
        size = (9.0 if rolling else 6.4, max(1.9 + 0.34 * len(bars), 3.2))
        figure = figure_type(figsize=size, layout="constrained")
        axes = figure.subplots(1, 2 if rolling else 1, squeeze=False)[0]
        _draw_errors(axes[0], story, bars)
        if rolling is not None:
            for error in rolling.tracked[:1]:
                axes[1].plot(rolling.x, error.before, color=BEFORE, linewidth=1.2, label="before")
                axes[1].plot(rolling.x, error.after, color=AFTER, linewidth=1.4, label="after")
                axes[1].axhline(error.target, color=INK, linewidth=0.8)
            axes[1].set_title(f"Means over the last {rolling.window:,} labels", loc="left", fontsize=9)
            axes[1].set_xlabel("row", fontsize=9)
            axes[1].legend(frameon=False, fontsize=8)
        title = text(headline(story)).replace(". ", ".\n")
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
        each.tick_params(labelsize=8)
    figure.suptitle(title.replace("$", r"\$"), x=0.01, ha="left", fontsize=10)
    return figure


def _png(figure: Figure) -> bytes:
    picture = BytesIO()
    figure.savefig(picture, format="png")
    return picture.getvalue()


def _draw_board(axes: Axes, rows: Sequence[Standing]) -> None:
    for place, row in enumerate(reversed(rows)):
        axes.plot([row.elo_low, row.elo_high], [place, place], color=AFTER, linewidth=1.4)
        axes.plot([row.elo], [place], color=AFTER, marker="o", markersize=4)
    axes.set_yticks(range(len(rows)), [clean(row.player, 32).replace("$", r"\$") for row in reversed(rows)])
    axes.set_title("Elo with 95 % interval", loc="left", fontsize=9)


def _bars(story: Story) -> Bars:
    """One bar per group, per level, or for all rows."""
    verdict, certificate = story.verdict, story.verdict.certificate
    if story.groups:
        groups = sorted(story.groups, key=lambda g: -g.rows)[:MOST]
        targets = [g.target or 0.0 for g in groups]
        return [
            (clean(f"{g.by}={g.name}", 32), g.before - t, g.after - t, None if g.vacuous else g.bound)
            for g, t in zip(groups, targets, strict=True)
        ]
    if verdict.coverage:
        return [(c.name, c.before - c.target, c.after - c.target, None) for c in verdict.coverage]
    if verdict.bias is None:
        return []
    # With several parameters the bound is on the largest of their averages, not on this bias.
    same = math.isclose(certificate.value, abs(verdict.bias.after), rel_tol=1e-9, abs_tol=1e-12)
    bound = certificate.bound if same and not certificate.vacuous else None
    return [("all rows", verdict.bias.before, verdict.bias.after, bound)]


def _draw_errors(axes: Axes, story: Story, bars: Bars) -> None:
    places = [len(bars) - 1 - i for i in range(len(bars))]
    axes.barh([p + 0.18 for p in places], [b[1] for b in bars], 0.3, color=BEFORE, label="before")
    axes.barh([p - 0.18 for p in places], [b[2] for b in bars], 0.3, color=AFTER, label="after")
    low, high = axes.get_xlim()
    for place, (_, _, _, bound) in zip(places, bars, strict=True):
        if bound is not None:
            axes.plot([-bound, bound], [place - 0.18] * 2, color=INK, linewidth=0.8, marker="|")
    # Bounds may be far wider than errors: the axis belongs to the errors.
    reach = 1.3 * max(abs(low), abs(high))
    axes.set_xlim(-reach, reach)
    axes.axvline(0.0, color=INK, linewidth=0.8)
    axes.set_yticks(places, [b[0].replace("$", r"\$") for b in bars])
    what = "coverage − target" if story.kind == "quantile" else "bias (served − label)"
    axes.set_title(f"{what}; lines: worst-case bound", loc="left", fontsize=9)
    axes.legend(frameon=False, fontsize=8)
