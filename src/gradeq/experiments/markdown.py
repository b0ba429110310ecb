"""The little of Markdown that the pages on bounds and errata use, as HTML with an anchor for every label."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from html import escape

Words = Callable[[str], str]  # plain text to HTML
LABEL = r"(?:[A-DG]\d[ab]?′?|[A-D](?= )|\d+(?:\.\d+)?)"  # of a result or an erratum
_INLINE = re.compile(r"`([^`]+)`|\*\*(.+?)\*\*|\*(\S.*?)\*|\[([^\]]+)\]\(([^)\s]+)\)")
_LABELS = re.compile(rf"{LABEL}(?:(?:, ){LABEL})*(?= |\.|$)")


def to_html(text: str, link: Callable[[str], str], words: Words = escape) -> str:
    """The body of a page: ``link`` says where a link leads ("": nowhere), ``words`` turns plain text into HTML."""
    known: set[str] = set()
    return "\n".join(_block(block, link, words, known) for block in _blocks(text))


def _blocks(text: str) -> Iterator[list[str]]:
    """Paragraphs, tables, headings and fenced blocks, each as its lines."""
    block: list[str] = []
    fenced = False
    for line in [*text.splitlines(), ""]:
        if line.startswith("```"):
            fenced = not fenced
        alone = line.startswith("#") and not fenced
        if (not line.strip() or alone) and block and not fenced:
            yield block
            block = []
        if alone:
            yield [line]
        elif line.strip() or fenced:
            block.append(line)


def _block(lines: list[str], link: Callable[[str], str], words: Words, known: set[str]) -> str:
    def inline(text: str) -> str:
        return _inline(text, link, words)

    first = lines[0]
    if first.startswith("```"):
        code = "\n".join(lines[1:]).removesuffix("```").rstrip()
        return f"<pre>{escape(code)}</pre>"
    if first.startswith("#"):
        level, title = len(first) - len(first.lstrip("#")), first.lstrip("# ")
        names = _names(title, known) or [re.sub(r"[^\w]+", "-", title.lower()).strip("-")]
        return f'<h{level} id="{escape(names[0])}">{inline(title)}</h{level}>'
    if first.startswith("|"):
        head, _, *rows = (_cells(line) for line in lines)
        body = "".join(_row(row, inline, known) for row in rows)
        heads = "".join(f'<th scope="col">{inline(cell)}</th>' for cell in head)
        table = f"<thead><tr>{heads}</tr></thead><tbody>{body}</tbody>"
        return f'<div class="scroll"><table class="text">{table}</table></div>'
    text = " ".join(lines)
    marks = _anchors(_names(text.removeprefix("**"), known)) if text.startswith("**") else ""
    return f"<p>{marks}{inline(text)}</p>"


def _row(cells: list[str], inline: Words, known: set[str]) -> str:
    first = f"{_anchors(_names(cells[0], known))}{inline(cells[0])}"
    rest = "".join(f"<td>{inline(cell)}</td>" for cell in cells[1:])
    return f'<tr><th scope="row">{first}</th>{rest}</tr>'


def _cells(line: str) -> list[str]:
    cells = re.split(r"(?<!\\)\|", line.strip().strip("|"))
    return [cell.strip().replace(r"\|", "|") for cell in cells]


def _names(text: str, known: set[str]) -> list[str]:
    """The labels that a heading or a row begins with, each the first time it does."""
    found = _LABELS.match(text)
    names = [name for name in re.findall(LABEL, found[0] if found else "") if name not in known]
    known.update(names)
    return names


def _anchors(names: list[str]) -> str:
    return "".join(f'<a id="{escape(name)}"></a>' for name in names)


def _inline(text: str, link: Callable[[str], str], words: Words) -> str:
    parts, at = [], 0
    for found in _INLINE.finditer(text):
        parts.append(words(text[at : found.start()]))
        code, strong, slanted, label, target = found.groups()
        if code is not None:
            parts.append(f"<code>{escape(code)}</code>")
        elif label is not None:
            where = link(target)
            shown = escape(label)
            parts.append(f'<a href="{escape(where)}">{shown}</a>' if where else shown)
        else:
            tag, inner = ("strong", strong) if strong is not None else ("em", slanted)
            parts.append(f"<{tag}>{_inline(inner, link, words)}</{tag}>")
        at = found.end()
    return "".join([*parts, words(text[at:])])
