"""Results as a data frame of the library at hand, as lines, as HTML; long ones made item by item when looked at."""

from __future__ import annotations

import html
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, TypeVar

from gradeq.errors import BadInput

LIBRARIES = ("pandas", "polars", "pyarrow")

Item = TypeVar("Item")


class Lazily(Sequence[Item]):
    """A sequence whose items are made when they are looked at; otherwise like the tuple of them."""

    def __init__(self, length: int, make: Callable[[int], Item]) -> None:
        self._length, self._make = length, make

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            return tuple(self._make(i) for i in range(self._length)[at])
        return self._make(range(self._length)[at])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, tuple | Lazily):
            return NotImplemented
        return tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(
        self,
    ) -> tuple[Any, ...]:  # a copy, or one in another process, is the tuple itself
        return tuple, (tuple(self),)


def frame_of(columns: Mapping[str, Sequence[Any]], kind: str | None = None) -> Any:
    """A data frame of these columns, of this kind; else of pandas, polars or pyarrow, first one that is imported."""
    import narwhals as nw

    if kind is not None and kind not in LIBRARIES:
        raise BadInput(f"kind={kind!r}: must be one of {', '.join(LIBRARIES)}")
    loaded = [name for name in LIBRARIES if name in sys.modules]
    there = [name for name in LIBRARIES if find_spec(name) is not None]
    backend: Any = kind or [*[name for name in loaded if name != "pyarrow"], *there][0]
    return nw.from_dict(dict(columns), backend=backend).to_native()


def aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    """One line: the name to the left, numbers to the right."""
    first = f"{cells[0]:<{widths[0]}}"
    rest = (f"{cell:>{width}}" for cell, width in zip(cells[1:], widths[1:], strict=True))
    return "  ".join((first, *rest)).rstrip()


def in_html(
    said: str, head: Sequence[str], rows: Sequence[Sequence[str]], rest: str = "", names: int = 0
) -> str:
    """A sentence and a table for a notebook; ``names``: the column that holds names, which may be any text.

    All text is escaped, and there is neither script nor colour, so that the notebook's own theme applies.

    >>> in_html("Two & two.", [], [])
    '<p>Two &amp; two.</p>'
    """

    def plain(text: str) -> str:
        return html.escape("".join(c if c.isprintable() else "\ufffd" for c in text))

    def cell(text: str, at: int) -> str:
        return f"<th><bdi>{plain(text)}</bdi></th>" if at == names else f"<td>{plain(text)}</td>"

    if not rows:
        return f"<p>{plain(said)}</p>"
    heads = "".join(f"<th>{plain(text)}</th>" for text in head)
    lines = "".join(
        f"<tr>{''.join(cell(text, at) for at, text in enumerate(row))}</tr>" for row in rows
    )
    after = f"<p>{plain(rest)}</p>" if rest else ""
    return (
        f"<p>{plain(said)}</p><table><thead><tr>{heads}</tr></thead>"
        f"<tbody>{lines}</tbody></table>{after}"
    )
