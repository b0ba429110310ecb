"""A layer as one matplotlib figure: errors before and after with their bounds, and a run over time."""

from __future__ import annotations

import math
from io import BytesIO
from typing import Any

from gradeq.errors import missing_extra
from gradeq.report.markup import clean
from gradeq.report.of_layer import story_of
from gradeq.report.story import Story
from gradeq.report.words import headline, text

BEFORE, AFTER, INK = "#848992", "#0b5cad", "#454b54"
MOST = 20  # groups drawn


def drawing() -> Any:
    """The type of our figures: one that a notebook shows although pyplot never heard of it."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise missing_extra("report", "layer.plot()") from None
    return type("Drawing", (Figure,), {"_repr_png_": in_png})


def in_png(figure: Any) -> bytes:
    """The picture of a figure."""
    picture = BytesIO()
    figure.savefig(picture, format="png")
    return picture.getvalue()


def figure_of(layer: Any, run: Any = None) -> Any:
    """A ``matplotlib.figure.Figure``; ``savefig`` writes it, a notebook shows it."""
    figure_type = drawing()
    if layer.kind == "elo":
        return _board(figure_type, layer.board())
    story = story_of(layer, run)
    rolled = story.rolling
    bars = _bars(story)
    height = 1.9 + 0.34 * len(bars)
    figure = figure_type(figsize=(9.0 if rolled else 6.4, max(height, 3.2)), layout="constrained")
    axes = figure.subplots(1, 2 if rolled else 1, squeeze=False)[0]
    _errors(axes[0], story, bars)
    if rolled is not None:
        for one in rolled.tracked[:1]:
            axes[1].plot(rolled.x, one.before, color=BEFORE, linewidth=1.2, label="before")
            axes[1].plot(rolled.x, one.after, color=AFTER, linewidth=1.4, label="after")
            axes[1].axhline(one.target, color=INK, linewidth=0.8)
        axes[1].set_title(f"Means over the last {rolled.window:,} labels", loc="left", fontsize=9)
        axes[1].set_xlabel("row", fontsize=9)
        axes[1].legend(frameon=False, fontsize=8)
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
        each.tick_params(labelsize=8)
    said = text(headline(story)).replace(". ", ".\n").replace("$", r"\$")
    figure.suptitle(said, x=0.01, ha="left", fontsize=10)
    return figure


def _board(figure_type: Any, board: Any) -> Any:
    """The leaderboard: Elo with its interval, the first 20 players."""
    rows = board.rows[:MOST]
    figure = figure_type(figsize=(6.4, 1.6 + 0.26 * len(rows)), layout="constrained")
    axes = figure.subplots()
    for place, row in enumerate(reversed(rows)):
        if row.elo_low is not None:
            axes.plot([row.elo_low, row.elo_high], [place, place], color=AFTER, linewidth=1.4)
        axes.plot([row.elo], [place], color=AFTER, marker="o", markersize=4)
    names = [clean(row.player, 32).replace("$", r"\$") for row in reversed(rows)]
    axes.set_yticks(range(len(rows)), names)
    axes.set_title("Elo with 95 % interval", loc="left", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)
    said = "\n".join(line for line in board.lines if line).replace("$", r"\$")
    figure.suptitle(said, x=0.01, ha="left", fontsize=10)
    return figure


def _bars(story: Story) -> list[tuple[str, float, float, float | None]]:
    """Name, error before, error after and bound of each bar: groups, levels, or all rows."""
    verdict = story.verdict
    if story.groups:
        return [
            (clean(f"{g.by}={g.name}", 32), g.before - (g.target or 0.0),
             g.after - (g.target or 0.0), None if g.vacuous else g.bound)
            for g in sorted(story.groups, key=lambda g: -g.rows)[:MOST]
        ]  # fmt: skip
    if verdict.coverage:
        return [(c.name, c.before - c.target, c.after - c.target, None) for c in verdict.coverage]
    if verdict.bias is None:
        return []
    held = verdict.certificate
    # With several parameters the bound is on the largest of their averages, not on this bias.
    own = math.isclose(held.value, abs(verdict.bias.after), rel_tol=1e-9, abs_tol=1e-12)
    bound = held.bound if own and not held.vacuous else None
    return [("all rows", verdict.bias.before, verdict.bias.after, bound)]


def _errors(axes: Any, story: Story, bars: list[tuple[str, float, float, float | None]]) -> None:
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
