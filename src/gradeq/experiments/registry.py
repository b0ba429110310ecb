"""All experiments by name, and the choice among them."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from importlib import import_module

from gradeq.errors import BadInput
from gradeq.experiments.experiment import Experiment

# In the order of the gallery; each module has one EXPERIMENT.
_MODULES = (
    "mimic_groups",
    "arena_elo",
    "regret_bias",
    "absolute_examples",
    "restorative_field",
    "spirals",
    "compas_statistics",
    "arena_wins",
    "helpsteer_debias",
    "compas_debias",
    "compas_decaying",
    "mimic_series",
    "compas_multigroup",
    "compas_groups",
    "mimic_ensemble",
    "arena_lasso",
    "arena_decaying",
    "regret_examples",
    "regret_decaying",
    "spiral_bounds",
    "bounds_one",
    "bounds_many",
    "bounds_more",
    "errata",
    "elo_growth",
    "delay_limits",
    "compas_calibration",
    "compas_frontier",
    "flights_delayed",
    "covid_quantiles",
    "elec2_groups",
    "many_sites",
)

# Figures of the paper that no experiment draws.
TEXTS = {
    "Figure 8": "Two prompts of HelpSteer2 with answers and ratings: text only, nothing to draw"
}


def experiments() -> dict[str, Experiment]:
    """Every experiment by its name, in the order of the gallery."""
    found = [import_module(f"gradeq.experiments.{module}").EXPERIMENT for module in _MODULES]
    return {experiment.name: experiment for experiment in found}


def listing() -> list[tuple[str, str]]:
    """The name of each experiment with what it is, in one line; a figure that is text has a dash for a name."""
    lines = [(experiment.name, experiment.line) for experiment in experiments().values()]
    return [*lines, *(("-", f"{what} ({figure})") for figure, what in TEXTS.items())]


def choose(names: Sequence[str] = ()) -> list[Experiment]:
    """The experiments of these names, all of them without any.

    A figure's number will do for a name: 10, fig10, "figure 10". An unknown name is refused with the nearest one.
    """
    known = experiments()
    numbered = {e.figure.lower(): e for e in known.values()}
    found: dict[str, Experiment] = {}
    for name in _joined(names):
        figure = f"figure {_number(name)}"
        chosen = known.get(name) or numbered.get(figure)
        if chosen is None and figure.capitalize() in TEXTS:
            raise BadInput(
                f"{figure.capitalize()} is text, so there is nothing to draw; see --list"
            )
        if chosen is None:
            raise BadInput(f"there is no figure {name!r}{_nearest(name, known)}; see --list")
        found[chosen.name] = chosen
    return list(found.values()) if names else list(known.values())


def _joined(names: Sequence[str]) -> list[str]:
    """ "figure" and "10" as two words are one name."""
    joined: list[str] = []
    for name in names:
        if joined and joined[-1].lower().rstrip(".") in ("figure", "fig") and name.isdigit():
            joined[-1] += f" {name}"
        else:
            joined.append(name)
    return joined


def _number(name: str) -> str:
    return name.lower().removeprefix("figure").removeprefix("fig").strip(" .-_")


def _nearest(name: str, known: dict[str, Experiment]) -> str:
    found = [other for other in known if name.lower() in other]
    found = found or difflib.get_close_matches(name.lower(), list(known), 1, 0.3)
    return f"; the nearest is {found[0]}" if found else ""
