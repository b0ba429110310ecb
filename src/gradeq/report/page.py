"""One self-contained HTML file for a story: no request leaves it, no name in it is markup.

The content policy allows exactly one script and one style, by their SHA-256; everything else is
forbidden, so even a mistake in escaping could run nothing.
"""

import json

from gradeq.report import assets, board, sections
from gradeq.report.markup import Markup, clean, el, join
from gradeq.report.parts import footer, header
from gradeq.report.series import Sheet
from gradeq.report.story import EloStory, Story

LARGEST = 300_000
"""A page is smaller than this many bytes, whatever the input."""


def html(story: Story | EloStory) -> str:
    """The page of a story; tables are cut to fewer rows until it is small enough."""
    text = ""
    for most in (200, 60, 30, 12, 5):
        text = _page(story, most)
        if len(text.encode()) < LARGEST:
            break
    return text


def _page(story: Story | EloStory, most: int) -> str:
    sheet = Sheet()
    if isinstance(story, EloStory):
        kind, main = "Elo report", board.build(story, sheet, most)
    else:
        kind = "Debias report" if story.kind == "debias" else "Quantile report"
        main = sections.build(story, sheet, most)
    script, style = assets.script(assets.text("report.js")), assets.style()
    policy = (
        f"default-src 'none'; script-src '{assets.digest(script)}'; style-src '{assets.digest(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    source = clean(story.made.source, 80)
    head = join(
        Markup('<meta charset="utf-8">'),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{policy}">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup('<meta name="color-scheme" content="light dark">'),
        Markup('<meta name="referrer" content="no-referrer">'),
        el("title", f"{kind}: {source}"),
        Markup(f"<style>{style}</style>"),
    )
    body = join(
        header(kind, story.made),
        el("main", main),
        footer(story.made),
        Markup(f'<script type="application/json" id="data">{_embedded(sheet)}</script>'),
        Markup(f"<script>{script}</script>"),
    )
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>{body}</body></html>\n'


def _embedded(sheet: Sheet) -> str:
    """The data as JSON in which no character can end or open a tag."""
    text = json.dumps({"x": sheet.x, "charts": sheet.charts}, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
