"""All families of cases: which module has them, how they are recorded, and how they are compared.

A module has ``cases()``, the names by family, and ``trees(family, names)``, what they give today; the layers' also
``states(family, names)``, what is saved once and must load for ever.
"""

import importlib
import json
import time
from typing import Any

from golden import trees

LAYERS = ("debias", "quantile", "quantiles", "interval", "conformal", "ensemble", "risk", "elo")
MODULES = {
    **{family: "layers" for family in LAYERS},
    "engine": "engine",
    "commands": "commands",
    "service": "service",
    "spark": "spark_tables",
}


def module(family: str) -> Any:
    return importlib.import_module(f"golden.{MODULES[family]}")


def names(family: str) -> list[str]:
    """The cases of a family."""
    return list(module(family).cases()[family])


def record(family: str, asked: list[str], anew: bool) -> None:
    """Record the trees of cases. States are kept once; ``anew`` replaces them, for formats not yet released."""
    own, every = module(family), set(names(family))
    if hasattr(own, "states"):
        kept = {name: it for name, it in trees.kept_states(family).items() if name in every}
        kept |= dict(own.states(family, [name for name in asked if anew or name not in kept]))
        trees.write_states(family, kept)
    known = {name: tree for name, tree in trees.recorded(family).items() if name in every}
    trees.write_recorded(family, known | dict(own.trees(family, asked)))


def complaints(family: str, asked: list[str]) -> list[str]:
    """What is not as it was recorded."""
    found = module(family).trees(family, asked)
    return [said for name, tree in found if (said := trees.complaint(family, name, tree))]


def check(family: str) -> None:
    """Fail if one value of a family is not the one that was recorded, and say which."""
    every = names(family)
    said = complaints(family, every)
    gone = sorted(set(trees.recorded(family)) - set(every))
    said += [f"{family}/{name} was recorded and is no case any more" for name in gone]
    more = f"\n... and {len(said) - 5} more cases" if len(said) > 5 else ""
    assert not said, "\n" + "\n".join(said[:5]) + more


def done(do: str, family: str, asked: list[str], states: bool) -> str:
    """What is to be said of one family."""
    began = time.monotonic()
    if do == "show":
        known = trees.recorded(family)
        return json.dumps({name: known.get(name) for name in asked}, indent=1)
    if do == "compare":
        said = complaints(family, asked)
        return "\n".join(said) or f"{family}: {len(asked)} cases as they were recorded"
    record(family, asked, states)
    return f"{family}: {len(asked)} cases recorded in {time.monotonic() - began:.1f} s"
