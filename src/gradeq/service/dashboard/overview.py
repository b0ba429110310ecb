"""A layer at one moment, as data: everything that its page shows, and nothing that the page would have to compute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from gradeq.equilibrium import Equilibrium
from gradeq.learning import Cell, cells_of
from gradeq.naming import column_name
from gradeq.report.numerals import gap
from gradeq.report.of_elo import elo_story
from gradeq.report.of_layer import made_of, told_of
from gradeq.report.of_state import coverages_of, heard_only, stated, taken_back
from gradeq.report.story import EloStory, Notice, Pair, Spark, Story
from gradeq.service.dashboard.about import about_of, short_kind
from gradeq.service.dashboard.lights import Light, light_of
from gradeq.service.dashboard.recent import Delays, Moving, Recent, Stretch, Waiting
from gradeq.service.dashboard.warnings import warnings_of
from gradeq.service.live import Heard
from gradeq.theory.steps import fifo_step_limit

GROUPS = 200
"""Groups on a page: those with most labels."""

_SPARKS = 40


@dataclass(frozen=True)
class Check:
    """One check of the ledger: whether it holds, what was compared, and when (seconds since 1970; None: always)."""

    name: str
    good: bool
    text: str
    at: float | None = None
    often: str = ""


@dataclass(frozen=True)
class Refused:
    """An event that was refused: its id as JSON, the status it was answered with, and why."""

    at: float
    id: str
    status: str
    detail: str


@dataclass(frozen=True)
class Known:
    """What the service knows of a layer beside the layer: its name, its last labels, its open tickets, its store."""

    name: str
    created: float
    now: float
    recent: Sequence[Heard] = ()
    opened: Sequence[float] = ()  # when the predictions were served that still wait, oldest first
    whole: bool = True  # whether these are all that wait
    refused: Sequence[Refused] = ()
    checks: Sequence[Check] = ()
    stopped: str = ""  # why learning was stopped
    diverged: str = ""  # why it stopped by itself: what left its proven range
    unwritable: str = ""  # why the store cannot write
    last_label: float | None = None
    signed: bool = False
    ttl: float | None = None
    behind: tuple[int, int] | None = None  # of other servers, now and at most; None: there are none


@dataclass(frozen=True)
class GroupFlight:
    """How the labels of a group come: those waited for, the peak, the step now, and the step it would diverge at."""

    open: int
    peak: int
    step: float | None
    diverges: float | None


@dataclass(frozen=True)
class Flight:
    """Predictions that wait for their label; ``overdue``: those for longer than twice the 99 % delay."""

    open: int
    oldest: float | None
    overdue: int
    expired: int
    waiting: Waiting | None
    delays: Delays | None


@dataclass(frozen=True)
class Overview:
    """Everything that the page of a layer shows."""

    name: str
    kind: str
    about: str
    brief: str
    created: float
    now: float
    light: Light
    story: Story | EloStory
    labels: int
    served: int
    last: Stretch | None
    moving: Moving | None
    spark: Spark | None
    flight: Flight
    method: str
    asked: float
    step: float
    learning: str
    notices: tuple[Notice, ...]
    sparks: tuple[Spark | None, ...]
    groups: tuple[GroupFlight | None, ...]
    checks: tuple[Check, ...]
    refused: tuple[Refused, ...]
    frozen: bool
    paused: int  # labels that came while it was
    taken_back: int  # labels that were undone
    shadow: bool
    last_label: float | None
    behind: (
        tuple[int, int] | None
    )  # entries that other servers had written when this one looked, now and at most


def overview_of(layer: Any, known: Known) -> Overview:
    """A layer now. The layer is locked while it is read, and no longer: charts are worked out afterwards."""
    with layer._lock:
        reached: Equilibrium = layer.equilibrium()
        story = most_labels_first(told_in(layer, reached))
        targets = [c.target for c in coverages_of(layer, reached)] if layer.kind != "elo" else []
        flown, step, frozen = layer.in_flight, layer.step, layer.frozen
        paused, undone = heard_only(layer), taken_back(layer, reached)
        groups = story.groups if isinstance(story, Story) else ()
        names = [f"{column_name(g.by)}={g.name}" for g in groups]
        flights = flights_of(layer, groups, names)
    total, learned = reached.rows, reached.learning
    recent = Recent(known.recent, getattr(layer, "layer", layer).kind, targets)
    flight = flight_of(known, int(flown["served"] - flown["labelled"]), recent)
    notices = warnings_of(layer, reached, story, flight, known)
    checks = (_certificate(reached), *known.checks)
    return Overview(
        name=known.name,
        kind=layer.kind,
        about=about_of(layer, known.created),
        brief=short_kind(layer, story),
        created=known.created,
        now=known.now,
        light=light_of(known, frozen, notices, checks, story),
        story=story,
        labels=total,
        served=int(flown["served"]),
        last=recent.last(),
        moving=recent.moving(total),
        spark=recent.spark(total),
        flight=flight,
        method=learned.method if learned else "plain",
        asked=step,
        step=learned.step if learned else step,
        learning=str(learned or ""),
        notices=notices,
        sparks=tuple(recent.spark(total, name) for name in names[:_SPARKS]),
        groups=flights,
        checks=checks,
        refused=tuple(known.refused),
        frozen=frozen,
        paused=paused,
        taken_back=undone,
        shadow=bool(layer.shadow),
        last_label=known.last_label,
        behind=known.behind,
    )


def told_in(layer: Any, reached: Equilibrium) -> Story | EloStory:
    """The story of a layer of any kind."""
    if layer.kind == "elo":
        return elo_story(layer, made_of(layer))
    story = told_of(layer, reached, GROUPS)
    covered = coverages_of(layer, reached) if reached.rows else []
    if not covered:
        return story
    said = stated(reached, covered)  # as in the verdict: the bound on what is covered
    farthest = max(abs(c.after - c.target) for c in covered)
    held = replace(
        story.verdict.certificate, value=farthest, bound=said.bound, vacuous=bool(said.vacuous)
    )
    return replace(story, verdict=replace(story.verdict, certificate=held))


def most_labels_first(story: Story | EloStory) -> Story | EloStory:
    """The groups of each column in the order of their labels."""
    if isinstance(story, EloStory):
        return story
    columns = {by: k for k, by in enumerate(dict.fromkeys(group.by for group in story.groups))}
    order = sorted(story.groups, key=lambda group: (columns[group.by], -group.rows))
    return replace(story, groups=tuple(order))


def flight_of(known: Known, unlabelled: int, recent: Recent) -> Flight:
    """What waits for a label; a signed ticket is counted when its label comes, so none of them waits here."""
    opened, delays = list(known.opened), recent.delays()
    ages = [known.now - at for at in opened]
    overdue = sum(age > 2.0 * delays.most for age in ages) if delays else 0
    expired = sum(age > known.ttl for age in ages) if known.ttl else 0
    oldest = max((age for age in ages if not known.ttl or age <= known.ttl), default=None)
    waiting = len(opened) if known.whole else unlabelled
    return Flight(
        max(waiting - expired, 0), oldest, overdue - expired if overdue > expired else 0, expired,
        recent.waiting(opened, known.now), delays,
    )  # fmt: skip


def flights_of(
    layer: Any, groups: Sequence[Any], names: Sequence[str]
) -> tuple[GroupFlight | None, ...]:
    """How the labels of each group come; None where they are not counted by group."""
    cells: dict[str, Cell] = cells_of(layer, names) if groups else {}
    settings = layer.settings
    # The recursion whose limit is known: squared error, one group a row, a step that the user chose.
    plain = layer.kind == "debias" and settings.get("link") == "identity"
    plain = plain and settings.get("eta") != "auto" and not settings.get("features")
    found: list[GroupFlight | None] = []
    for group, name in zip(groups, names, strict=True):
        cell = cells.get(name)
        if cell is None:
            found.append(None)
            continue
        limit = fifo_step_limit(cell.peak - 1) if plain and cell.step is not None else None
        found.append(GroupFlight(max(cell.served - group.rows, 0), cell.peak, cell.step, limit))
    return tuple(found)


def _certificate(reached: Equilibrium) -> Check:
    """Whether sums and state agree, in words."""
    count = len(reached.coordinates)
    where = "" if count <= 1 else f" for all {count:,} parameters"
    good = reached.balance != "broken"
    if not reached.rows:
        text = "no label to learn from"
    elif reached.exact:
        text = f"averages from the labels equal those from the state{where}"
    else:
        text = f"sum of applied steps equals the move of θ{where}"
    text += f", difference {gap(reached.gap)}" if reached.rows else ""
    return Check(
        "Ledger balances" if good else "Ledger does not balance", good, text, None, "every write"
    )


def error_now(view: Overview) -> Pair | None:
    """The bias, or the coverage of one level, since the start; None of several levels and of games."""
    if isinstance(view.story, EloStory):
        return None
    verdict = view.story.verdict
    if verdict.bias is not None:
        return verdict.bias
    if len(verdict.coverage) == 1:
        return Pair(verdict.coverage[0].before, verdict.coverage[0].after)
    return None
