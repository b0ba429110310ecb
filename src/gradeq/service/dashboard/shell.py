"""What is around every page: head line, list of layers, script and style; and a page as a tree, to change it live."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from functools import cache
from typing import Any
from xml.etree import ElementTree

from gradeq._version import __version__
from gradeq.report import assets
from gradeq.report.markup import Markup, clean, el, join
from gradeq.report.parts import brand, icon, notice_icon
from gradeq.report.series import Sheet
from gradeq.service.dashboard.view import CHECK

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Screen:
    """One page: what changes while somebody looks at it."""

    title: str
    bar: Markup
    side: Markup
    main: Markup
    sheet: Sheet
    now: float


@cache
def asset(kind: str) -> tuple[str, bytes]:
    """The file name (which holds its hash) and the content of the script ("js") or the style ("css")."""
    own = assets.text(f"static/dashboard.{kind}", __package__)
    content = (assets.script(own) if kind == "js" else assets.style(own)).encode()
    return f"dashboard-{hashlib.sha256(content).hexdigest()[:16]}.{kind}", content


def document(screen: Screen, token: str, live: str) -> bytes:
    """The page as HTML. ``token`` goes with what its buttons ask for; ``live`` is where its changes come from."""
    main = el("main", screen.main, id="main")
    if screen.side:
        main = el(
            "div", el("nav", screen.side, id="side", aria_label="Layers"), main, class_="frame"
        )
    data = Markup(f'<script type="application/json" id="data">{_embedded(screen)}</script>')
    body = join(el("header", screen.bar, id="bar"), main, data)
    return _html(screen.title, body, token, live)


def sign_in_page() -> bytes:
    """The page for those who have not given a key."""
    made = "Paste an API key. It was printed when the server first started; "
    kept = "The key is exchanged for a cookie that only this server can read; it is not kept in the page."
    field = el(
        "input", id="key", name="key", type="password", autocomplete="off", required=True,
        placeholder="gq_…", spellcheck="false",
    )  # fmt: skip
    form = el(
        "form",
        el("h1", "Sign in"),
        el("p", made, el("code", "gradeq keys create"), " makes another.", class_="lead"),
        el("label", "API key", for_="key"),
        field,
        el("p", "", id="problem", role="alert"),
        el("button", "Sign in", type="submit", class_="primary"),
        el("p", kept, class_="foot"),
        id="sign-in",
    )
    body = join(
        el("header", bar("", False), id="bar"), el("main", form, id="main", class_="narrow")
    )
    return _html("Sign in", body, "", "")


def bar(store: str, signed_in: bool = True, good: bool = True, host: str = "") -> Markup:
    """The line at the top: where this is, how the store is, light or dark."""
    sign = icon(CHECK, 16, 16, "green") if good else notice_icon("red")
    told = [el("span", sign, el("span", store), class_="store")] if store else []
    out = [el("button", "Sign out", type="button", data_act="leave")] if signed_in else []
    links = [el("a", "Layers", href="/")] if signed_in else []
    return join(
        el("a", brand(), href="/", aria_label="gradeq, all layers"),
        *links,
        el("span", clean(host, 80), class_="source"),
        el("span", *told, el("span", "", id="link", role="status"), class_="made"),
        el("button", "Light / dark", type="button", data_act="theme"),
        *out,
    )


def message(screen: Screen) -> bytes:
    """What a page that is looked at needs in order to show this one."""
    parts = {name: tree(getattr(screen, name)) for name in ("bar", "side", "main")}
    return json.dumps(
        {"title": screen.title, **parts, **_drawn(screen)},
        separators=(",", ":"),
        ensure_ascii=False,
    ).encode("utf-8", "replace")


def tree(markup: Markup) -> list[Any]:
    """Markup as nested lists [tag, attributes, children...]: the browser builds nodes from it and parses nothing."""
    text = _NOT_XML.sub("\ufffd", f"<x>{markup}</x>")
    return _nodes(ElementTree.fromstring(text))


def _nodes(parent: ElementTree.Element) -> list[Any]:
    found: list[Any] = [parent.text] if parent.text else []
    for child in parent:
        found.append([child.tag, dict(child.attrib), *_nodes(child)])
        if child.tail:
            found.append(child.tail)
    return found


def _drawn(screen: Screen) -> dict[str, Any]:
    return {"x": screen.sheet.x, "charts": screen.sheet.charts, "version": _version()}


def _version() -> str:
    """What script and style a page must have to be shown changes of this server."""
    return f"{__version__} {asset('js')[0]} {asset('css')[0]}"


def _embedded(screen: Screen) -> str:
    """The data as JSON in which no character can end or open a tag."""
    text = json.dumps({**_drawn(screen), "now": screen.now}, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _html(title: str, body: Markup, token: str, live: str) -> bytes:
    script, style = asset("js")[0], asset("css")[0]
    head = join(
        Markup('<meta charset="utf-8">'),
        Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
        Markup('<meta name="color-scheme" content="light dark">'),
        el("title", f"{clean(title)} · gradeq"),
        Markup(f'<link rel="icon" href="data:image/svg+xml,{_ICON}">'),
        Markup(f'<link rel="stylesheet" href="/static/{style}">'),
        Markup(f'<script src="/static/{script}" defer></script>'),
    )
    given = {"data_token": token or None, "data_live": live or None}
    home = " home" if not live.rpartition("/")[2].strip("?") else ""
    whole = el("body", body, class_=f"dash{home}", **given)
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n{whole}</html>\n'.encode()


_ICON = (
    "%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Cpath d='M8 2v11.5M4.5 13.5h7M2 4.5h12M3.5 "
    "4.5l-2.2 4.8a2.2 2.2 0 0 0 4.4 0zM12.5 4.5l-2.2 4.8a2.2 2.2 0 0 0 4.4 0z' fill='none' stroke='%230b5cad' "
    "stroke-width='1.4'/%3E%3C/svg%3E"
)
