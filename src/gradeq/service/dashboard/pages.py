"""Pages of the dashboard: frame, sidebar, list of layers, onboarding, and their cache."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from string import Template
from threading import Lock
from typing import NamedTuple
from xml.etree import ElementTree

from gradeq._version import __version__
from gradeq.report import charts, page
from gradeq.report.charts import ChartSheet
from gradeq.report.components import BRAND, NOTICE_ICONS, Markup, clean, el, icon, join, name, tidy
from gradeq.report.numerals import count, decimals, number, percent, points
from gradeq.report.story import EloStory, Spark
from gradeq.service.audit import AuditResult
from gradeq.service.dashboard.layer_page import CHECK, layer_page
from gradeq.service.dashboard.overview import (
    STATUS_WORDS,
    Check,
    Overview,
    ServiceFacts,
    Status,
    StatusLevel,
    overview_of,
)
from gradeq.service.desk import Desk
from gradeq.service.problems import LayerStopped, NoSuchLayer
from gradeq.service.runtime import LayerRuntime
from gradeq.tables import some

NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
Node = str | dict[str, str] | list["Node"]  # a text, attributes, or an element


@dataclass(frozen=True)
class DashboardPage:
    """One page: the parts that change while it is open."""

    title: str
    top_bar: Markup
    sidebar: Markup
    main: Markup
    sheet: ChartSheet
    now: float


@cache
def asset(kind: str) -> tuple[str, bytes]:
    """File name (with hash) and content of the script ("js") or the style ("css")."""
    content = page.bundle(kind, page.resource(f"static/dashboard.{kind}", __package__)).encode()
    return f"dashboard-{hashlib.sha256(content).hexdigest()[:16]}.{kind}", content


def document(screen: DashboardPage, token: str, updates_url: str) -> bytes:
    """The page as HTML; its buttons send ``token``, its changes come from ``updates_url``."""
    main = el("main", screen.main, id="main")
    if screen.sidebar:
        main = el("div", el("nav", screen.sidebar, id="side", aria_label="Layers"), main, class_="frame")
    text = json.dumps({**_chart_data(screen), "now": screen.now}, separators=(",", ":"))
    text = text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")  # cannot end or open a tag
    data = Markup(f'<script type="application/json" id="data">{text}</script>')
    body = join(el("header", screen.top_bar, id="bar"), main, data)
    return _html(screen.title, body, token, updates_url)


def page_update(screen: DashboardPage) -> bytes:
    parts = {"bar": screen.top_bar, "side": screen.sidebar, "main": screen.main}
    trees = {name: markup_tree(part) for name, part in parts.items()}
    message = {"title": screen.title, **trees, **_chart_data(screen)}
    return json.dumps(message, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")


def _chart_data(screen: DashboardPage) -> dict[str, object]:
    """The charts, and the version of script and style that a page must have to take them."""
    version = f"{__version__} {asset('js')[0]} {asset('css')[0]}"
    return {"x": screen.sheet.x, "charts": screen.sheet.charts, "version": version}


def markup_tree(markup: Markup) -> list[Node]:
    """Markup as nested lists [tag, attributes, children...]: the browser builds nodes and parses nothing."""

    def children(parent: ElementTree.Element) -> list[Node]:
        nodes: list[Node] = [parent.text] if parent.text else []
        for child in parent:
            nodes.append([child.tag, dict(child.attrib), *children(child)])
            if child.tail:
                nodes.append(child.tail)
        return nodes

    return children(ElementTree.fromstring(NOT_XML.sub("\ufffd", f"<x>{markup}</x>")))


def sign_in_page() -> bytes:
    main = el("main", Markup(page.resource("static/sign_in.html", __package__)), id="main", class_="narrow")
    return _html("Sign in", join(el("header", top_bar("", False), id="bar"), main), "", "")


def top_bar(store: str, signed_in: bool = True, good: bool = True, host: str = "") -> Markup:
    sign = icon(CHECK, 16, 16, "green") if good else NOTICE_ICONS["red"]
    words = [el("span", sign, el("span", store), class_="store")] if store else []
    return join(
        el("a", BRAND, href="/", aria_label="gradeq, all layers"),
        el("a", "Layers", href="/") if signed_in else join(),
        el("span", clean(host, 80), class_="source"),
        el("span", *words, el("span", "", id="link", role="status"), class_="made"),
        el("button", "Light / dark", type="button", data_act="theme"),
        el("button", "Sign out", type="button", data_act="leave") if signed_in else join(),
    )


def _html(title: str, body: Markup, token: str, updates_url: str) -> bytes:
    home = " home" if not updates_url.rpartition("/")[2].strip("?") else ""
    whole = el("body", body, class_=f"dash{home}", data_token=token or None, data_live=updates_url or None)
    template = Template(page.resource("static/page.html", __package__))
    script, style = asset("js")[0], asset("css")[0]
    return template.substitute(title=join(clean(title)), script=script, style=style, body=whole).encode()


class LayerSummary(NamedTuple):
    """A layer in one line."""

    name: str
    status: Status
    what: str = ""
    figure: str = "–"
    unit: str = ""
    before: str = ""
    loss: str = ""
    labels: int = 0
    open: int = 0
    last_label: float | None = None
    spark: Spark | None = None
    target: float = 0.0


def summarize(view: Overview) -> LayerSummary:
    story, before, now, unit, target = view.story, "", "–", "no labels", 0.0
    loss = story.loss if isinstance(story, EloStory) else story.verdict.loss if view.labels else None
    if isinstance(story, EloStory):
        now, unit = "–" if loss is None else number(loss.after, 3), "log loss"
    elif view.labels:
        bias, coverages = story.verdict.bias, story.verdict.coverage
        if bias is not None:
            places = decimals(bias.before, bias.after)
            before, now, unit = number(bias.before, places, True), number(bias.after, places, True), "bias"
        elif len(coverages) == 1:
            before, now, unit = percent(coverages[0].before), percent(coverages[0].after), "coverage"
            target = coverages[0].target
        elif coverages:
            now, unit = points(max((c.after - c.target for c in coverages), key=abs)), "points off"
    losses = ""
    if loss is not None:
        places = decimals(loss.before, loss.after)
        losses = f"{number(loss.before, places)} → {number(loss.after, places)}"
    return LayerSummary(
        view.name, view.light, view.brief, now, unit, before, losses, view.labels, view.flight.open,
        view.last_label, None if isinstance(story, EloStory) else view.spark, target,
    )  # fmt: skip


def status_icon(level: StatusLevel) -> Markup:
    """The icon of a status, and its word for screen readers."""
    if level == "green":
        return join(icon(CHECK, 18, 16, "green"), el("span", STATUS_WORDS[level], class_="hide"))
    return NOTICE_ICONS[level]


def sidebar(summaries: Sequence[LayerSummary], current: str | None) -> Markup:
    rows = []
    for one in sorted(summaries, key=lambda one: one.name):
        drawn = charts.tiny(one.spark, one.target, one.status.level == "red") if one.spark else join()
        link = el(
            "a",
            el("span", status_icon(one.status.level), class_="icon"),
            el("span", el("b", name(one.name)), el("small", one.status.reason or one.what), class_="who"),
            el("span", drawn, class_="trace"),
            el("span", el("b", tidy(one.figure)), el("small", one.unit), class_="fig"),
            href=f"/layers/{one.name}",
            aria_current="page" if one.name == current else None,
        )
        rows.append(el("li", link))
    legend = [el("span", status_icon(level), word) for level, word in STATUS_WORDS.items()]
    return join(
        el("div", el("h2", "Layers"), el("a", "New layer", href="/new", class_="button"), class_="head"),
        el("ul", *rows, class_="layers"),
        el("p", *legend, class_="legend"),
    )


def layer_list(summaries: Sequence[LayerSummary]) -> Markup:
    order = {"red": 0, "amber": 1, "green": 2}
    heads = ("Layer", "", "Labels", "Before", "Served", "Loss before → served", "In flight", "Last label")
    head = [el("th", text, scope="col", class_="left" if text in ("Layer", "") else None) for text in heads]
    rows = []
    for one in sorted(summaries, key=lambda one: (order[one.status.level], one.name)):
        link = el("a", name(one.name), href=f"/layers/{one.name}")
        since = el("time", "", data_since=f"{one.last_label:.3f}") if one.last_label else join("–")
        unit = f" {one.unit}" if one.unit in ("log loss", "points off") else ""
        cells = (
            el("th", el("span", status_icon(one.status.level), class_="icon"), link, scope="row"),
            el("td", one.status.reason or one.what, class_="left", data_head=""),
            el("td", count(one.labels), data_head="Labels"),
            el("td", tidy(one.before or "–"), class_="was", data_head="Before"),
            el("td", tidy(one.figure + unit), class_="now", data_head="Served"),
            el("td", one.loss or "–", class_="nowrap cost", data_head="Loss"),
            el("td", count(one.open), data_head="In flight"),
            el("td", since, data_head="Last label"),
        )
        rows.append(el("tr", *cells))
    amiss = sum(one.status.level != "green" for one in summaries)
    about = f"{count(amiss)} of {count(len(summaries))} need a look." if amiss else "All layers are healthy."
    return join(
        el("div", el("div", el("h1", "Layers"), el("p", about, class_="about")), class_="title"),
        el("table", el("thead", el("tr", *head)), el("tbody", *rows), class_="groups all"),
    )


LAYER = "demand"  # as in onboarding.html


def onboarding_page(address: str, steps: int | None) -> Markup:
    """The three calls; ``steps``: how many of them are done, None if there are other layers."""
    values = {
        "about": "Another layer" if steps is None else "No layers yet",
        "layer": join(f"{address.removeprefix('http://')}/v1/layers/{LAYER}"),
        "end": _progress_note(steps or 0),
    }
    if steps is None:
        values["end"] = el("p", el("a", "Back to the layers", href="/"), class_="foot")
    for k in (1, 2, 3):
        done = k <= (steps or 0)
        mark = icon(CHECK, 26, 16, "green") if done else str(k)
        values[f"mark{k}"] = el("div", mark, class_="mark done" if done else "mark")
        values[f"done{k}"] = el("span", " done", class_="hide") if done else ""
    return Markup(Template(page.resource("static/onboarding.html", __package__)).substitute(values))


def _progress_note(steps: int) -> Markup:
    title, text = (
        ("Waiting for the first call", "This page updates automatically."),
        ("The layer is there. Waiting for a prediction", "This page updates automatically."),
        ("The prediction was served. Waiting for its label", "It can come at any time."),
        ("It works", "The layer has learned from its first label."),
    )[steps]
    reference = el("a", "API reference", href="/openapi.json")
    beside = el("span", "No model at hand? ", el("code", "gradeq serve --demo"), " · ", reference)
    if steps == 3:
        beside = el("a", f"Open {LAYER}", href=f"/layers/{LAYER}", class_="button")
    return el(
        "div", el("span", "", class_="beat wait" if steps < 3 else "beat"),
        el("div", el("b", title), el("p", text)), beside, class_="waiting", role="status",
    )  # fmt: skip


Audits = Mapping[tuple[str, str], tuple[float, AuditResult]]  # when and what, by tenant and name
PAGE_SECONDS = 0.9  # how long the page of a layer is cached
IDLE_FACTOR = 10.0  # times as long while nothing is written
COST_FACTOR = 20.0  # at least so many times as long as it took to compute


class CachedOverview(NamedTuple):
    """An overview, when it was computed, how long that took, and the journal number."""

    view: Overview
    at: float
    took: float
    seq: int


class Viewer(NamedTuple):
    """Who sees a page: tenant, whether admin, address of the server."""

    tenant: str
    admin: bool
    host: str


class PageCache:
    """The pages of a server, computed in threads and cached."""

    def __init__(self, desk: Desk, audits: Audits) -> None:
        self.desk, self.audits = desk, audits
        self._cache: dict[tuple[str, str], CachedOverview] = {}
        self._lock = Lock()

    def overview(self, tenant: str, name: str, within: float = PAGE_SECONDS) -> Overview:
        """A layer as it was at most ``within`` seconds ago (longer if it is slow to compute)."""
        runtime = self.desk.runtime(tenant, name)
        with self._lock:
            cached = self._cache.get((tenant, name))
            now, seq = time.monotonic(), runtime.head.seq
            if cached is not None and cached.view.created == runtime.row.created:
                age = now - cached.at
                if age < max(within, COST_FACTOR * cached.took) or (cached.seq == seq and age < within * IDLE_FACTOR):
                    return cached.view
            audited = self.audits.get((tenant, name))
            view = overview_of(runtime.layer, service_facts(self.desk, runtime, audited, time.time()))
            self._cache[tenant, name] = CachedOverview(view, time.monotonic(), time.monotonic() - now, seq)
            return view

    def page(self, viewer: Viewer, path: str) -> DashboardPage:
        if path == "/":
            return self.home(viewer)
        if path == "/new":
            return self._screen(viewer, "New layer", onboarding_page(viewer.host, None))
        return self.layer(viewer, path.removeprefix("/layers/"))

    def layer(self, viewer: Viewer, name: str) -> DashboardPage:
        try:
            view = self.overview(viewer.tenant, name)
        except LayerStopped as error:
            why = el("div", el("b", "This layer cannot be read."), f" {error}")
            notice = el("div", el("div", NOTICE_ICONS["red"], class_="icon"), why, class_="notice red")
            return self._screen(viewer, name, join(el("div", el("h1", name), class_="title"), notice), name)
        sheet = ChartSheet()
        return self._screen(viewer, name, layer_page(view, sheet, viewer.admin), name, sheet)

    def home(self, viewer: Viewer) -> DashboardPage:
        """All layers, or onboarding until the first layer has learned."""
        summaries = self.summaries(viewer.tenant)
        if len(summaries) > 1 or any(one.name != LAYER or one.labels > 1 for one in summaries):
            return self._screen(viewer, "Layers", layer_list(summaries))
        steps = 0
        if summaries:
            view = self.overview(viewer.tenant, LAYER)
            steps = 1 + (view.served > 0) + (view.labels > 0)
        main = onboarding_page(viewer.host, steps)
        return DashboardPage("Start", self._bar(viewer), Markup(""), main, ChartSheet(), time.time())

    def _screen(
        self, viewer: Viewer, title: str, main: Markup, current: str | None = None, sheet: ChartSheet | None = None
    ) -> DashboardPage:
        listed = sidebar(self.summaries(viewer.tenant), current)
        return DashboardPage(title, self._bar(viewer), listed, main, sheet or ChartSheet(), time.time())

    def _bar(self, viewer: Viewer) -> Markup:
        writable = self.desk.health.writable
        if self.desk.store.read_only:
            return top_bar("reads only", host=viewer.host)
        return top_bar("store healthy" if writable else "store cannot write", good=writable, host=viewer.host)

    def summaries(self, tenant: str) -> list[LayerSummary]:
        names = self.desk.names(tenant)
        within = max(2.0, 0.2 * len(names))  # hundreds of layers are not computed every second
        summaries = []
        for layer in names:
            try:
                summaries.append(summarize(self.overview(tenant, layer, within)))
            except NoSuchLayer:
                continue
            except Exception:  # its own page explains what went wrong; the others are listed anyway
                summaries.append(LayerSummary(layer, Status("red", "Cannot be read")))
        return summaries


def service_facts(
    desk: Desk, runtime: LayerRuntime, audited: tuple[float, AuditResult] | None, now: float
) -> ServiceFacts:
    health = desk.health
    why = "" if health.writable or desk.store.read_only else health.why or "a commit failed"
    good = not runtime.stale and not why
    words = f"{runtime.head.entries:,} entries; answered only when on disk" if good else why
    checks = [Check("Journal on disk", good, words, None, "every write")]
    if audited is not None:
        at, audit = audited
        name, words = "Journal matches ledger", f"sums and hashes of {audit.entries:,} entries equal"
        if audit.faults:
            name, words = "Journal and ledger differ", audit.faults[0]
        elif audit.replayed:
            name, words = "Full audit", f"the whole journal ({some(audit.read, 'row')}) was replayed"
        checks.append(Check(name, not audit.faults, words, at))
    return ServiceFacts(
        name=runtime.row.name,
        created=runtime.row.created,
        now=now,
        recent=[label for label in list(runtime.recent_labels) if label.posting.sign >= 0.0],
        opened=[entry.at for entry, _ in list(runtime.open_tickets.values())],
        whole=runtime.has_all_open,
        refused=list(runtime.rejections),
        checks=checks,
        stopped=runtime.head.stopped,
        diverged=runtime.diverged,
        unwritable=why,
        last_label=runtime.last_label,
        ttl=runtime.ttl,
        behind=(runtime.lag, runtime.max_lag) if desk.store.shared else None,
    )
