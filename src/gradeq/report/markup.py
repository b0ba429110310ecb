"""Elements of a page, built so that no text can become markup: every string is escaped.

Only what ``el`` returns passes through unescaped, so a name can be text and nothing else.
"""

import html
import re

from gradeq.report.numerals import MONTHS

_DAY = re.compile("(?<=\\d) (?=" + "|".join(MONTHS) + ")")

LONGEST_NAME = 60
"""Names are cut to this many characters on the page, so that its size stays bounded."""


class Markup(str):
    """Text that is already markup, made by :func:`el` and :func:`join` only."""


def el(tag: str, *children: str, **attributes: str | float | bool | None) -> Markup:
    """An element; children that are not Markup are escaped, attributes always are.

    ``class_`` gives ``class``, ``data_read`` gives ``data-read``; None and False leave one out.

    >>> el("b", "<img>", class_="x")
    '<b class="x">&lt;img&gt;</b>'
    """
    given = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{"" if value is True else _quoted(value)}"'
        for name, value in attributes.items()
        if value is not None and value is not False
    )
    inside = join(*children)
    if not children and tag in {"line", "rect", "circle", "path", "polyline", "br", "input"}:
        return Markup(f"<{tag}{given}/>")
    return Markup(f"<{tag}{given}>{inside}</{tag}>")


def join(*children: str) -> Markup:
    """Several children without an element around them."""
    return Markup(
        "".join(child if isinstance(child, Markup) else _escaped(child) for child in children)
    )


def clean(text: str, longest: int = LONGEST_NAME) -> str:
    """A name fit to print: cut to size, without control characters or broken surrogates."""
    text = "".join(c if c.isprintable() else "\ufffd" for c in _whole(text[: longest + 1]))
    return text if len(text) <= longest else text[: longest - 1] + "\u2026"


def name(text: str, class_: str | None = "name") -> Markup:
    """A user's name as an isolated piece of text, whatever its writing direction."""
    return el("bdi", clean(text), class_=class_)


def tidy(text: str) -> str:
    """Our own prose with unbreakable spaces between a number and its unit or power."""
    text = text.replace(" %", "\u00a0%").replace(" \u00d7 10", "\u00a0\u00d7\u00a010")
    text = re.sub(r"(?<=\d) (points?\b)", "\u00a0\\1", text)
    return _DAY.sub("\u00a0", text)


def prose(text: str, longest: int = 600) -> Markup:
    """A sentence in which `backticks` set code."""
    text = clean(text.replace("\n", " "), longest)
    pieces = text.split("`")
    if len(pieces) % 2 == 0:
        return join(tidy(text))
    return join(
        *(el("code", piece) if i % 2 else tidy(piece) for i, piece in enumerate(pieces) if piece)
    )


def _escaped(text: str) -> str:
    return html.escape(_whole(text), quote=False)


def _quoted(value: str | float) -> str:
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".") if value == value else "0"
    return html.escape(_whole(str(value)))


def _whole(text: str) -> str:
    """The text with broken surrogates, which no file can hold, replaced."""
    return text.encode("utf-8", "replace").decode("utf-8")
