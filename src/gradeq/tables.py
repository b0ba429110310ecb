"""Tables as data frames, as text and as HTML; sequences whose items are created on access."""

from __future__ import annotations

import html
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeVar, overload

from gradeq.errors import BadInput

if TYPE_CHECKING:  # numpy stays unloaded
    from gradeq.inputs.column_types import ColumnLike

LIBRARIES = ("pandas", "polars", "pyarrow")

Item = TypeVar("Item")


def some(n: int, noun: str, verb: str = "", verb_of_several: str = "") -> str:
    """A count with its noun and verb in the right number.

    >>> some(1, "row"), some(1200, "row"), some(0, "label", "was", "were")
    ('1 row', '1,200 rows', '0 labels were')
    """
    return f"{n:,} {noun} {verb}".rstrip() if n == 1 else f"{n:,} {noun}s {verb_of_several}".rstrip()


def agreeing(n: int, one: str, several: str) -> str:
    """The singular or plural form of a word, by a count.

    >>> agreeing(1, "is", "are"), agreeing(0, "is", "are")
    ('is', 'are')
    """
    return one if n == 1 else several


class LazySequence(Sequence[Item]):
    """A sequence whose items are created on access; otherwise like a tuple."""

    def __init__(self, length: int, make: Callable[[int], Item]) -> None:
        self._length, self._make = length, make

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, at: int) -> Item: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[Item, ...]: ...
    def __getitem__(self, at: int | slice) -> Item | tuple[Item, ...]:
        if isinstance(at, slice):
            return tuple(self._make(i) for i in range(self._length)[at])
        return self._make(range(self._length)[at])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, tuple | LazySequence):
            return NotImplemented
        return tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return repr(tuple(self))

    def __reduce__(self) -> tuple[object, ...]:  # a copy, or one in another process, is the tuple itself
        return tuple, (tuple(self),)


def frame_of(columns: Mapping[str, ColumnLike], kind: str | None = None) -> Any:
    """A data frame of these columns; by default of pandas, polars or pyarrow, preferring one that is imported."""
    import narwhals as nw

    if kind is not None and kind not in LIBRARIES:
        raise BadInput(f"kind={kind!r}: must be one of {', '.join(LIBRARIES)}")
    imported = [name for name in LIBRARIES if name in sys.modules and name != "pyarrow"]
    installed = [name for name in LIBRARIES if find_spec(name) is not None]
    backend: Any = kind or [*imported, *installed][0]
    return nw.from_dict(dict(columns), backend=backend).to_native()


def aligned_table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table: the first column aligned to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *rest in rows:
        cells = (f"{cell:>{width}}" for cell, width in zip(rest, widths[1:], strict=True))
        lines.append("  ".join((f"{first:<{widths[0]}}", *cells)).rstrip())
    return lines


def html_table(
    sentence: str, head: Sequence[str], rows: Sequence[Sequence[str]], rest: str = "", names: int = 0
) -> str:
    """A sentence and a table for a notebook; ``names``: the position of the column of names.

    All text is escaped: names may be anything. Without script or colour, the table takes the notebook's theme.

    >>> html_table("Two & two.", [], [])
    '<p>Two &amp; two.</p>'
    """

    def plain(text: str) -> str:
        return html.escape("".join(c if c.isprintable() else "\ufffd" for c in text))

    def cell(text: str, at: int) -> str:
        return f"<th><bdi>{plain(text)}</bdi></th>" if at == names else f"<td>{plain(text)}</td>"

    if not rows:
        return f"<p>{plain(sentence)}</p>"
    heads = "".join(f"<th>{plain(text)}</th>" for text in head)
    lines = "".join(f"<tr>{''.join(cell(text, at) for at, text in enumerate(row))}</tr>" for row in rows)
    after = f"<p>{plain(rest)}</p>" if rest else ""
    return f"<p>{plain(sentence)}</p><table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>{after}"
