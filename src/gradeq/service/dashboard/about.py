"""What a layer is, in a few words: the line under its name, and the one beside its light."""

from __future__ import annotations

from typing import Any

from gradeq.report.numerals import count, date, target
from gradeq.report.story import EloStory, Story


def about_of(layer: Any, created: float) -> str:
    """One or two sentences: what is corrected, by what, since when."""
    own = getattr(layer, "layer", layer)
    settings = own.settings
    columns = [f"`{name}`" for name in (*settings.get("groups", ()), *settings.get("features", ()))]
    by = f" by {_listed(columns)}" if columns else ""
    what = {
        "debias": f"Predictions debiased{by}",
        "elo": "A leaderboard, and forecasts of games",
    }.get(own.kind, f"{_of_level(own)}{by}")
    each = ", one layer for each key" if layer.kind == "keyed" else ""
    shadow = " Shadow mode: raw values are served." if layer.shadow else ""
    return f"{what}{each}. Since {date(created)}.{shadow}"


def short_kind(layer: Any, story: Story | EloStory) -> str:
    """A few words for the list of layers."""
    own = getattr(layer, "layer", layer)
    shadow = ", in shadow" if layer.shadow else ""
    if isinstance(story, EloStory):
        return f"Elo, {count(story.players)} {story.noun}s"
    if layer.kind == "keyed":
        return f"{_short(own)}, by key{shadow}"
    columns = own.settings.get("groups", ())
    by = (
        f" by {columns[0]}"
        if len(columns) == 1
        else f" by {len(columns)} columns"
        if columns
        else ""
    )
    return f"{_short(own)}{by}{shadow}"


def _short(own: Any) -> str:
    return "Bias" if own.kind == "debias" else _of_level(own)


def _of_level(own: Any) -> str:
    settings = own.settings
    if own.kind in ("interval", "conformal"):
        return f"{target(settings['coverage'])} interval"
    levels = settings.get("levels") or [settings.get("level", 0.5)]
    if len(levels) == 1:
        return f"{target(levels[0])} quantile"
    return f"{count(len(levels))} quantiles"


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
