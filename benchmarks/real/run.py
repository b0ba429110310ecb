"""Measures kinds of comparisons and gives what was found as plain values, in the shape of bench-out/real.json."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from benchmarks.real import games, intervals, levels, means
from benchmarks.real.kind import Kind

KINDS: dict[str, Kind] = {own.KIND.name: own.KIND for own in (intervals, means, levels, games)}


def found(kinds: Sequence[str] = (), wanted: Sequence[str] = ()) -> dict[str, Any]:
    """Some kinds, all of them unless told; of each the streams whose names contain one of ``wanted``, or all.

    Ratios are over those of our default, also those of a single stream.
    """
    return {"kinds": [one(KINDS[name], wanted) for name in kinds or KINDS]}


def one(kind: Kind, wanted: Sequence[str] = ()) -> dict[str, Any]:
    """All that was found of one kind."""
    streams = {}
    for name, stream in kind.streams():
        if not wanted or any(part in name for part in wanted):
            print(f"{kind.name}: {name}", file=sys.stderr, flush=True)
            streams[name] = kind.of(stream)
    return {
        "name": kind.name,
        "title": kind.title,
        "explained": kind.explained,
        "ours": kind.ours,
        "measures": [measure._asdict() for measure in kind.measures],
        "rules": {name: rule.about for name, rule in kind.rules.items()},
        "streams": streams,
        "all": kind.overall(streams),
    }
