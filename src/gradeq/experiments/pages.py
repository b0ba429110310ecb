"""The pages on bounds and errata beside the gallery, and links to them from any text that names a label."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from html import escape
from pathlib import Path

from gradeq.experiments.html_page import html_page
from gradeq.experiments.markdown import LABEL, to_html

TITLES = {"bounds": "The bounds and their labels", "errata": "Errata of the paper"}
_RESULTS = re.compile(rf"\b(results? )({LABEL}(?:(?:, | and | to ){LABEL})*)")
_FIGURE = re.compile(r"\bFigure \d+\b")
_MINUS = re.compile(r"(?<![\w.])-(?=\d)")


@cache
def source_of(name: str) -> str:
    """The text of a page of the documentation: in the package as installed, or in a checkout."""
    here = Path(__file__)
    for folder in (here.parent / "documents", here.parents[3] / "docs"):
        if (folder / f"{name}.md").is_file():
            return (folder / f"{name}.md").read_text(encoding="utf-8")
    raise FileNotFoundError(f"{name}.md is missing from this installation of gradeq")


@cache
def anchors(name: str) -> frozenset[str]:
    """Every label that a page explains, and its headings."""
    return frozenset(re.findall(r'\bid="([^"]+)"', to_html(source_of(name), _nowhere)))


def page(name: str) -> str:
    """The page as HTML, linked with the other one."""
    body = to_html(source_of(name), _beside, linked)
    return html_page(TITLES[name], f'<p><a href="index.html">All figures</a></p>\n{body}')


def linked(text: str, figures: Mapping[str, str] | None = None) -> str:
    """Plain text as HTML: labels of results, severities and figures on the page lead to where they are explained."""
    found = _RESULTS.sub(_results, escape(_MINUS.sub("−", text)))
    found = re.sub(r"\bseverity A\b", '<a href="errata.html#severity-a">severity A</a>', found)
    shown = figures or {}

    def figure(match: re.Match[str]) -> str:
        name = shown.get(match[0], "")
        return f'<a href="#{escape(name)}">{match[0]}</a>' if name else match[0]

    return _FIGURE.sub(figure, found)


def labelled(text: str, which: str) -> str:
    """Text that begins with a label of a page, such as "3.1 quantile", with the label as a link; else as it is."""
    found = re.match(rf"{LABEL}(?= )", text)
    if not which or not found or found[0] not in anchors(which):
        return escape(text)
    return f'<a href="{which}.html#{found[0]}">{found[0]}</a>{escape(text[found.end() :])}'


def _results(match: re.Match[str]) -> str:
    def one(label: re.Match[str]) -> str:
        known = label[0] in anchors("bounds")
        return f'<a href="bounds.html#{label[0]}">{label[0]}</a>' if known else label[0]

    return match[1] + re.sub(LABEL, one, match[2])


def _beside(target: str) -> str:
    """Where a link of a page leads beside the gallery: pages that are not there lead nowhere."""
    name, _, anchor = target.removesuffix(".md").partition("#")
    if "://" in target or target.startswith("#"):
        return target
    return (
        f"{name.removesuffix('.md')}.html{'#' + anchor if anchor else ''}" if name in TITLES else ""
    )


def _nowhere(target: str) -> str:
    return ""
