"""The streams of ``benchmarks.quality_streams`` for comparisons with labels at once: in order, none too long."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from benchmarks.quality_streams import DESIGN, SHUFFLED, Stream, streams

WARM, ROWS = 500, 60_000


@cache
def every() -> tuple[Stream, ...]:
    """All streams, read once."""
    return tuple(streams())


def of_kinds(kinds: tuple[str, ...], fewest: int) -> Iterator[tuple[str, Stream]]:
    """Those of some kinds that have enough rows and were not shuffled; * where the defaults were chosen."""
    for stream in every():
        if stream.kind in kinds and stream.role != SHUFFLED and len(stream.y) >= fewest:
            name = f"{stream.name}{' *' if stream.role == DESIGN else ''}"
            yield name, Stream(*stream[:3], *(column[:ROWS] for column in stream[3:]))
