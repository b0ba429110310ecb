"""Pages of the dashboard: top bar, script, style and cache."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from string import Template
from threading import Lock
from typing import NamedTuple
from xml.etree import ElementTree

from gradeq._version import __version__
from gradeq.report import page
from gradeq.report.charts import ChartSheet
from gradeq.report.components import BRAND, NOTICE_ICONS, Markup, clean, el, icon, join
from gradeq.service.audit import AuditResult
from gradeq.service.dashboard.layer_page import CHECK, layer_page
from gradeq.service.dashboard.overview import Check, Overview, ServiceFacts, Status, overview_of
from gradeq.service.dashboard.sidebar import LAYER, LayerSummary, layer_list, onboarding_page, sidebar, summarize
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

    def __init__(self, desk: Desk, audits: Audits, clock: Callable[[], float] = time.time) -> None:
        self.desk, self.audits, self.clock = desk, audits, clock
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
            view = overview_of(runtime.layer, service_facts(self.desk, runtime, audited, self.clock()))
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
        return DashboardPage("Start", self._bar(viewer), Markup(""), main, ChartSheet(), self.clock())

    def _screen(
        self, viewer: Viewer, title: str, main: Markup, current: str | None = None, sheet: ChartSheet | None = None
    ) -> DashboardPage:
        listed = sidebar(self.summaries(viewer.tenant), current)
        return DashboardPage(title, self._bar(viewer), listed, main, sheet or ChartSheet(), self.clock())

    def _bar(self, viewer: Viewer) -> Markup:
        writable = self.desk.health.writable
        if self.desk.store.read_only:
            return top_bar("reads only", host=viewer.host)
        return top_bar("store healthy" if writable else "store cannot write", good=writable, host=viewer.host)

    def summaries(self, tenant: str) -> list[LayerSummary]:
        names = self.desk.names(tenant)
        within = max(2.0, 0.2 * len(names))  # hundreds of layers are not computed every second
        summaries = []
        for name in names:
            try:
                summaries.append(summarize(self.overview(tenant, name, within)))
            except NoSuchLayer:
                continue
            except Exception:  # its own page explains what went wrong; the others are listed anyway
                summaries.append(LayerSummary(name, Status("red", "Cannot be read")))
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
