"""Pages from the layers of a desk. What costs time is kept for a while, however many look at it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from threading import Lock
from typing import NamedTuple

from gradeq.report.markup import Markup, el, join
from gradeq.report.parts import notice_icon
from gradeq.report.series import Sheet
from gradeq.service.dashboard.first import LAYER, Progress, first_page
from gradeq.service.dashboard.overview import Check, Known, Overview, Refused, overview_of
from gradeq.service.dashboard.shell import Screen, bar
from gradeq.service.dashboard.side import Brief, all_layers, brief_of, side
from gradeq.service.dashboard.view import layer_page
from gradeq.service.desk import Desk
from gradeq.service.failures import LayerStopped, NoSuchLayer
from gradeq.service.live import Live
from gradeq.service.tally import Audited

Audits = Mapping[tuple[str, str], tuple[float, Audited]]  # when and what, by tenant and name
SOON = 0.9  # seconds that the page of a layer is good for
OLD = 10.0  # seconds that anything is good for, though nothing was written
SHARE = 20.0  # what took a second to make is kept for so many


class Kept(NamedTuple):
    """An overview, when it was made, what it took, and where the journal stood."""

    view: Overview
    at: float
    took: float
    seq: int


class Viewer(NamedTuple):
    """Who looks: the tenant, whether buttons are for them, and the address they called."""

    tenant: str
    admin: bool
    host: str


class Screens:
    """The pages of a server; called from threads beside the event loop."""

    def __init__(self, desk: Desk, audits: Audits, clock: Callable[[], float] = time.time) -> None:
        self.desk, self.audits, self.clock = desk, audits, clock
        self._kept: dict[tuple[str, str], Kept] = {}
        self._making = Lock()

    def overview(self, tenant: str, name: str, within: float = SOON) -> Overview:
        """A layer as it was at most ``within`` seconds ago (longer, where it takes long to work out)."""
        live = self.desk.live(tenant, name)
        with self._making:
            kept = self._kept.get((tenant, name))
            now, seq = time.monotonic(), live.head.seq
            if kept is not None and kept.view.created == live.row.created:
                age = now - kept.at
                if age < max(within, SHARE * kept.took) or (kept.seq == seq and age < within * OLD):
                    return kept.view
            audited = self.audits.get((tenant, name))
            view = overview_of(live.layer, known_of(self.desk, live, audited, self.clock()))
            self._kept[tenant, name] = Kept(view, time.monotonic(), time.monotonic() - now, seq)
            return view

    def layer(self, viewer: Viewer, name: str) -> Screen:
        """The page of one layer."""
        try:
            view = self.overview(viewer.tenant, name)
        except LayerStopped as error:
            return self._screen(viewer, name, _damaged(name, str(error)), Sheet(), name)
        sheet = Sheet()
        return self._screen(viewer, name, layer_page(view, sheet, viewer.admin), sheet, name)

    def home(self, viewer: Viewer) -> Screen:
        """All layers; before there are any, how to make one."""
        briefs = self._briefs(viewer.tenant)
        young = len(briefs) <= 1 and all(one.name == LAYER and one.labels <= 1 for one in briefs)
        if not young:
            return self._screen(viewer, "Layers", all_layers(briefs), Sheet(), None)
        done = Progress()
        if briefs:
            view = self.overview(viewer.tenant, LAYER)
            done = Progress(1, view.served, view.labels)
        main = first_page(viewer.host, done)
        return Screen("Start", self._bar(viewer), Markup(""), main, Sheet(), self.clock())

    def another(self, viewer: Viewer) -> Screen:
        """How to make one more layer."""
        return self._screen(viewer, "New layer", first_page(viewer.host, None), Sheet(), None)

    def _screen(
        self, viewer: Viewer, title: str, main: Markup, sheet: Sheet, current: str | None
    ) -> Screen:
        listed = side(self._briefs(viewer.tenant), current)
        return Screen(title, self._bar(viewer), listed, main, sheet, self.clock())

    def _bar(self, viewer: Viewer) -> Markup:
        health = self.desk.health
        if self.desk.store.read_only:
            return bar("reads only", good=True, host=viewer.host)
        store = "store healthy" if health.writable else "store cannot write"
        return bar(store, good=health.writable, host=viewer.host)

    def _briefs(self, tenant: str) -> list[Brief]:
        names = self.desk.names(tenant)
        within = max(2.0, 0.2 * len(names))  # some hundred layers are not worked out every second
        found = []
        for name in names:
            try:
                found.append(brief_of(self.overview(tenant, name, within)))
            except LayerStopped:
                found.append(Brief.stopped(name))
            except NoSuchLayer:
                continue
            except (
                Exception
            ):  # its own page says what went wrong; the others are to be seen all the same
                found.append(Brief.stopped(name))
        return found


def known_of(desk: Desk, live: Live, audited: tuple[float, Audited] | None, now: float) -> Known:
    """What a desk knows of a layer; copies, since the desk goes on."""
    health = desk.health
    why = "" if health.writable or desk.store.read_only else health.why or "a commit failed"
    good = not live.stale and not why
    told = f"{live.head.entries:,} entries; answered only when on disk" if good else why
    return Known(
        live.row.name, live.row.created, now,
        recent=[heard for heard in list(live.recent) if heard.posting.sign >= 0.0],
        opened=[entry.at for entry, _ in list(live.opened.values())],
        whole=live.whole,
        refused=[Refused(*one) for one in list(live.rejections)],
        checks=[Check("Journal on disk", good, told, None, "every write"), *_audit(audited)],
        stopped=live.head.stopped,
        diverged=live.diverged,
        unwritable=why,
        last_label=live.last_label,
        signed=live.signed,
        ttl=live.ttl,
        behind=(live.behind, live.most_behind) if desk.store.shared else None,
    )  # fmt: skip


def _audit(audited: tuple[float, Audited] | None) -> list[Check]:
    """What the last audit found; none before there was one."""
    if audited is None:
        return []
    at, found = audited
    if found.faults:
        return [Check("Journal and ledger differ", False, found.faults[0], at)]
    name = "Full audit" if found.replayed else "Journal matches ledger"
    again = f"all {found.read:,} rows of the journal done again"
    done = again if found.replayed else f"sums and hashes of {found.entries:,} entries equal"
    return [Check(name, True, done, at)]


def _damaged(name: str, why: str) -> Markup:
    return join(
        el("div", el("h1", name), class_="title"),
        el(
            "div", el("div", notice_icon("red"), class_="icon"),
            el("div", el("b", "This layer cannot be read."), f" {why}"), class_="notice red",
        ),
    )  # fmt: skip
