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


def experiments() -> dict[str, Experiment]:
    """Every experiment by its name, in the order of the gallery."""
    found = [import_module(f"gradeq.experiments.{module}").EXPERIMENT for module in _MODULES]
    return {experiment.name: experiment for experiment in found}


def listing() -> list[tuple[str, str]]:
    """The name of each experiment with what it is, in one line."""
    return [(experiment.name, experiment.line) for experiment in experiments().values()]


def choose(names: Sequence[str] = ()) -> list[Experiment]:
    """The experiments of these names, all of them without any; an unknown name is refused with the nearest one."""
    known = experiments()
    for name in names:
        if name not in known:
            raise BadInput(f"there is no figure {name!r}{_nearest(name, known)}; see --list")
    return [known[name] for name in dict.fromkeys(names)] if names else list(known.values())


def _nearest(name: str, known: dict[str, Experiment]) -> str:
    number = name.lower().removeprefix("figure").removeprefix("fig").strip(" .-_")
    by_number = [e.name for e in known.values() if e.figure.lower() == f"figure {number}"]
    found = by_number or [other for other in known if name.lower() in other]
    found = found or difflib.get_close_matches(name.lower(), list(known), 1, 0.3)
    return f"; the nearest is {found[0]}" if found else ""
