"""The data of a layer's page: a snapshot of the layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from gradeq.certificates.certificate import joint_bound
from gradeq.certificates.figures import GroupLateness, group_lateness
from gradeq.equilibrium import Equilibrium
from gradeq.inputs.arguments import column_name
from gradeq.layers.elo import Elo
from gradeq.report.layer_story import elo_story, state_story
from gradeq.report.numerals import count, date, gap, target
from gradeq.report.sentences import FEW
from gradeq.report.state_facts import coverages_of, labels_while_paused, labels_withdrawn
from gradeq.report.story import EloStory, Notice, Spark, Story
from gradeq.service.dashboard.trends import (
    Delays,
    RecentLabels,
    RecentMeans,
    RollingCurves,
    WaitingOverTime,
    layer_warnings,
)
from gradeq.service.runtime import ArrivedLabel
from gradeq.service.store.journal_store import Rejection
from gradeq.tables import some
from gradeq.theory.scalar import fifo_step_limit

if TYPE_CHECKING:
    from gradeq.certificates.certificate import Coverage
    from gradeq.layers.layer import Layer
    from gradeq.report.story import Group


def describe_layer(layer: Layer, created: float) -> str:
    inner = getattr(layer, "layer", layer)
    columns = [f"`{name}`" for name in (*inner.settings.get("groups", ()), *inner.settings.get("features", ()))]
    if len(columns) > 2:
        columns = [", ".join(columns[:-1]), columns[-1]]
    by = f" by {' and '.join(columns)}" if columns else ""
    what = "A leaderboard, and forecasts of games" if layer.kind == "elo" else f"{_level_words(inner)}{by}"
    what = f"Predictions debiased{by}" if inner.kind == "debias" else what
    each = ", one layer for each key" if layer.kind == "keyed" else ""
    shadow = " Shadow mode: raw values are served." if layer.shadow else ""
    return f"{what}{each}. Since {date(created)}.{shadow}"


def short_kind(layer: Layer, story: Story | EloStory) -> str:
    if isinstance(story, EloStory):
        return f"Elo, {count(story.players)} {story.noun}s"
    inner = getattr(layer, "layer", layer)
    columns = inner.settings.get("groups", ())
    by = f" by {columns[0]}" if len(columns) == 1 else f" by {len(columns)} columns" if columns else ""
    what = "Bias" if inner.kind == "debias" else _level_words(inner)
    return f"{what}{', by key' if layer.kind == 'keyed' else by}{', in shadow' if layer.shadow else ''}"


def _level_words(layer: Layer) -> str:
    settings = layer.settings
    if layer.kind in ("interval", "conformal"):
        return f"{target(settings['coverage'])} interval"
    levels = settings.get("levels") or [settings.get("level", 0.5)]
    return f"{target(levels[0])} quantile" if len(levels) == 1 else f"{count(len(levels))} quantiles"


StatusLevel = Literal["green", "amber", "red"]

STATUS_WORDS: dict[StatusLevel, str] = {"green": "healthy", "amber": "worth a look", "red": "learning stopped"}
SHORT_CLAIMS = {"Step capped": "Step capped", "Labels stopped": "Labels stopped", "The oldest": "Labels overdue"}
GROUPS = 200  # groups on a page, by number of labels
SPARKS = 40  # groups with a sparkline


@dataclass(frozen=True)
class Status:
    """Green: all checks pass. Amber: a warning, or learning is paused. Red: learning stopped."""

    level: StatusLevel
    reason: str  # usually empty while green; the page then describes the layer


def status_of(
    facts: ServiceFacts, frozen: bool, notices: Sequence[Notice], checks: Sequence[Check], story: Story | EloStory
) -> Status:
    reasons = [check.name for check in checks if not check.good]  # a failed check also stops learning
    stops = {"Learning stopped": facts.stopped, "Store not writable": facts.unwritable, "Diverged": facts.diverged}
    reasons += [reason for reason, why in stops.items() if why]
    if reasons:
        return Status("red", reasons[0])
    if frozen:
        return Status("amber", "Learning paused")
    warnings = [notice.claim for notice in notices if notice.level != "note"]
    if warnings:
        shortened = warnings[0].split(" by ")[0].rstrip(".").replace("got worse", "worse")
        return Status("amber", SHORT_CLAIMS.get(" ".join(warnings[0].split()[:2]), shortened))
    labels = story.games if isinstance(story, EloStory) else story.labelled
    return Status("green", "" if labels >= FEW else f"{some(labels, 'label')} learned from")


@dataclass(frozen=True)
class Check:
    """One check: whether it passed, the comparison, and its time (seconds since 1970; None: continuous)."""

    name: str
    good: bool
    text: str
    at: float | None = None
    often: str = ""


@dataclass(frozen=True)
class ServiceFacts:
    """Facts about a layer that are outside its state."""

    name: str
    created: float
    now: float
    recent: Sequence[ArrivedLabel] = ()
    opened: Sequence[float] = ()  # serving times of open predictions, oldest first
    whole: bool = True  # whether ``opened`` is complete
    refused: Sequence[Rejection] = ()
    checks: Sequence[Check] = ()
    stopped: str = ""  # why learning was stopped
    diverged: str = ""  # why learning stopped automatically
    unwritable: str = ""  # why the store cannot write
    last_label: float | None = None
    ttl: float | None = None
    behind: tuple[int, int] | None = None  # unread entries of other servers, now and at most; None: a single server


@dataclass(frozen=True)
class GroupFlight:
    """Late labels of a group: open, peak, current step, and the step at which it would diverge."""

    open: int
    peak: int
    step: float | None
    diverges: float | None


@dataclass(frozen=True)
class InFlight:
    """Predictions without a label yet; ``overdue`` ones are older than twice the 99 % delay."""

    open: int
    oldest: float | None
    overdue: int
    expired: int
    waiting: WaitingOverTime | None
    delays: Delays | None


@dataclass(frozen=True)
class Overview:
    """The data of a layer's page."""

    name: str
    kind: str
    about: str
    brief: str
    created: float
    now: float
    light: Status
    story: Story | EloStory
    labels: int
    served: int
    last: RecentMeans | None
    moving: RollingCurves | None
    spark: Spark | None
    flight: InFlight
    method: str
    asked: float
    step: float
    learning: str
    notices: tuple[Notice, ...]
    sparks: tuple[Spark | None, ...]
    groups: tuple[GroupFlight | None, ...]
    checks: tuple[Check, ...]
    refused: tuple[Rejection, ...]
    frozen: bool
    paused: int  # labels that arrived while frozen
    taken_back: int  # labels that were undone
    shadow: bool
    last_label: float | None
    behind: tuple[int, int] | None  # unread entries of other servers, now and at most


def overview_of(layer: Layer, facts: ServiceFacts) -> Overview:
    """The current overview of a layer. Charts are computed after its lock is released."""
    with layer.lock:
        equilibrium: Equilibrium = layer.equilibrium()
        coverages = coverages_of(layer, equilibrium) if layer.kind != "elo" else []
        story = story_of(layer, equilibrium, coverages)
        traffic, step, frozen = layer.traffic, layer.step, layer.frozen
        paused, withdrawn = labels_while_paused(layer), labels_withdrawn(layer, equilibrium)
        groups = story.groups if isinstance(story, Story) else ()
        names = [f"{column_name(g.by)}={g.name}" for g in groups]
        flights = group_flights(layer, groups, names)
    total, learned = equilibrium.rows, equilibrium.learning
    recent = RecentLabels(facts.recent, getattr(layer, "layer", layer).kind, [c.target for c in coverages])
    flight = in_flight_of(facts, int(traffic["served"] - traffic["labelled"]), recent)
    notices = layer_warnings(layer, equilibrium, story, coverages, flight, facts)
    checks = (_certificate(equilibrium), *facts.checks)
    return Overview(
        name=facts.name,
        kind=layer.kind,
        about=describe_layer(layer, facts.created),
        brief=short_kind(layer, story),
        created=facts.created,
        now=facts.now,
        light=status_of(facts, frozen, notices, checks, story),
        story=story,
        labels=total,
        served=int(traffic["served"]),
        last=recent.last(),
        moving=recent.rolling_curves(total),
        spark=recent.spark(total),
        flight=flight,
        method=learned.method if learned else "plain",
        asked=step,
        step=learned.step if learned else step,
        learning=str(learned or ""),
        notices=notices,
        sparks=tuple(recent.spark(total, name) for name in names[:SPARKS]),
        groups=flights,
        checks=checks,
        refused=tuple(facts.refused),
        frozen=frozen,
        paused=paused,
        taken_back=withdrawn,
        shadow=bool(layer.shadow),
        last_label=facts.last_label,
        behind=facts.behind,
    )


def story_of(layer: Layer, equilibrium: Equilibrium, coverages: list[Coverage]) -> Story | EloStory:
    """The story of a layer; the groups of each column are sorted by number of labels."""
    if isinstance(layer, Elo):
        return elo_story(layer)
    story = state_story(layer, equilibrium, GROUPS)
    columns = {by: k for k, by in enumerate(dict.fromkeys(group.by for group in story.groups))}
    groups = sorted(story.groups, key=lambda group: (columns[group.by], -group.rows))
    story = replace(story, groups=tuple(groups))
    if not coverages or not equilibrium.rows:
        return story
    bound, vacuous = joint_bound(coverages)  # the verdict is about coverage
    farthest = max(abs(c.after - c.target) for c in coverages)
    certificate = replace(story.verdict.certificate, value=farthest, bound=bound, vacuous=bool(vacuous))
    return replace(story, verdict=replace(story.verdict, certificate=certificate))


def in_flight_of(facts: ServiceFacts, unlabelled: int, recent: RecentLabels) -> InFlight:
    """Counts of open predictions. Signed tickets are counted once their label arrives."""
    delays = recent.delays()
    ages = [facts.now - at for at in facts.opened]
    overdue = sum(age > 2.0 * delays.most for age in ages) if delays else 0
    expired = sum(age > facts.ttl for age in ages) if facts.ttl else 0
    return InFlight(
        open=max((len(ages) if facts.whole else unlabelled) - expired, 0),
        oldest=max((age for age in ages if not facts.ttl or age <= facts.ttl), default=None),
        overdue=max(overdue - expired, 0),
        expired=expired,
        waiting=recent.waiting(facts.opened, facts.now),
        delays=delays,
    )


def group_flights(layer: Layer, groups: Sequence[Group], names: Sequence[str]) -> tuple[GroupFlight | None, ...]:
    cells: dict[str, GroupLateness] = group_lateness(layer, names) if groups else {}
    settings = layer.settings
    # The limit is known for squared error, one group per row and a fixed step.
    plain = layer.kind == "debias" and settings.get("link") == "identity"
    plain = plain and settings.get("eta") != "auto" and not settings.get("features")

    def flight(group: Group, cell: GroupLateness) -> GroupFlight:
        limit = fifo_step_limit(cell.peak - 1) if plain and cell.step is not None else None
        return GroupFlight(max(cell.served - group.rows, 0), cell.peak, cell.step, limit)

    pairs = zip(groups, names, strict=True)
    return tuple(flight(group, cells[name]) if name in cells else None for group, name in pairs)


def _certificate(equilibrium: Equilibrium) -> Check:
    parameters = len(equilibrium.coordinates)
    where = "" if parameters <= 1 else f" for all {parameters:,} parameters"
    text = "averages from the labels equal those from the state"
    text = text if equilibrium.exact else "sum of applied steps equals the move of θ"
    text = f"{text}{where}, difference {gap(equilibrium.gap)}" if equilibrium.rows else "no label to learn from"
    good = equilibrium.balance != "broken"
    return Check("Ledger balances" if good else "Ledger does not balance", good, text, None, "every write")
