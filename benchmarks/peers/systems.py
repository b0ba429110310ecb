"""Every system by name, where its entries are, and the module that must be there."""

from __future__ import annotations

import importlib
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import NamedTuple

from benchmarks.peers.entry import Entry

OURS, LOOP, PASS = "gradeq", "C loop", "memory pass"


class System(NamedTuple):
    """``package`` as pip names it, ``module`` as Python imports it, and the name of its table of entries."""

    package: str
    module: str
    home: str
    table: str = "DOES"


SYSTEMS = {
    OURS: System("gradeq", "gradeq", "by_gradeq"),
    LOOP: System("", "", "by_gradeq", "LOOPS"),
    PASS: System("", "", "by_gradeq", "PASS"),
    "river": System("river", "river", "by_river"),
    "scikit-learn": System("scikit-learn", "sklearn", "by_sklearn"),
    "Vowpal Wabbit": System("vowpalwabbit", "vowpalwabbit", "by_vowpal"),
    "torch loop": System("torch", "torch", "by_torch"),
    "MAPIE": System("mapie", "mapie", "by_mapie"),
    "evalica": System("evalica", "evalica", "by_evalica"),
    "evalica, fit": System("evalica", "evalica", "by_evalica", "FITS"),
    "evalica, resampled": System("evalica", "evalica", "by_evalica", "RESAMPLED"),
    "riix": System("riix", "riix", "by_riix"),
    "elote": System("elote", "elote", "by_elote"),
    "openskill": System("openskill", "openskill", "by_openskill"),
    "arena-rank": System("arena-rank", "arena_rank", "by_arena_rank"),
}


def entries(system: str) -> dict[str, Entry]:
    """How it does each task."""
    found = SYSTEMS[system]
    table: dict[str, Entry] = getattr(importlib.import_module(f"benchmarks.peers.{found.home}"), found.table)
    return table


def missing(system: str) -> str:
    """Why it cannot run here, in one line; empty if it can."""
    found = SYSTEMS[system]
    if system in (LOOP, PASS):
        from benchmarks.peers.by_gradeq import c

        return "" if c() is not None else "there is no C compiler"
    if find_spec(found.module) is None:
        return f"{found.package} is not installed (make bench-peers installs it where it can be had)"
    return ""


def versions() -> dict[str, str]:
    """What was compared, by package."""
    found = {}
    for package in sorted({system.package for system in SYSTEMS.values()} - {""}):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
