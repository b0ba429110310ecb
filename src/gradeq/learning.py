"""How a layer learns at the moment: by which step, how late its labels came, how long it remembers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from gradeq.kernels.flight import LATENESS, LATEST, PEAK, capped
from gradeq.ledger import facts as fact
from gradeq.naming import column_name
from gradeq.rules.mixed import weights_of


class Learning(NamedTuple):
    """What is in force now.

    ``method``: "auto", or "plain" for a step or schedule of its own. ``eta``: the scheduled step (of auto: of the
    final layer), ``step``: the smallest that a label would be given now, held down where labels come late. ``late``
    and ``latest``: rows served between a row and its label, on average and at most. ``memory``: labels that auto
    remembers, the geometric mean of its experts' by weight; ``raw``: the weight of the raw prediction; both None
    for other steps, the memory also before labels. ``unlabelled``: the share of the rows served that have no label to
    learn from. ``silent``: rows served since a label last came; ``silence``: the most that were served from one label
    to the next. Both 0 before labels. ``learned``: labels learned from; ``not_due``: labels that are given but come
    only after the last row. ``latest_in_series``: as ``latest``, in rows of its own series; None without keys, and
    where series have groups of their own. ``replaced``: predictions without an id that another one replaced before
    their label came. ``held_back``: labels that are known and not learned, since their delay seems to depend on them.
    """

    method: str
    eta: float
    step: float
    late: float
    latest: int
    memory: float | None
    raw: float | None
    unlabelled: float
    silent: int
    silence: int
    learned: int
    not_due: int
    latest_in_series: int | None = None
    replaced: int = 0
    held_back: int = 0

    @property
    def lateness(self) -> str:
        """How late labels came at most, in the rows that the step is held down for; empty where none was late."""
        if self.latest_in_series is not None:
            return f"{counted(self.latest_in_series, 'row')} of their series" if self.latest else ""
        return counted(self.latest, "row") if self.latest else ""

    @property
    def usual(self) -> float:
        """Rows without a label that are nothing to speak of, given how late and how rare labels are."""
        return 5.0 * (self.late + 5.0) / max(1e-9, 1.0 - self.unlabelled)

    @property
    def stopped(self) -> bool:
        """Whether labels seem to have stopped: none for half as long again as ever before."""
        return self.silent > max(self.usual, 1.5 * self.silence)

    @property
    def outage(self) -> bool:
        """Whether labels once stayed away for far longer than usual."""
        return self.silence > self.usual

    def __str__(self) -> str:
        step = f"step {self.eta:.3g}"
        if self.method == "auto":
            step = "auto"
            if self.memory is not None:
                step += f" with a memory of about {counted(round(self.memory), 'label')}"
            if self.learned and self.raw is not None and self.raw >= 0.005:
                step += f" ({100 * self.raw:.0f} % raw prediction)"
            step += f"; final step {self.eta:.3g}"
        if self.step < self.eta * (1.0 - 1e-9):
            step += f", at the end capped at {self.step:.2g}"
        late = "labels known before the next row" if self.learned else "no label learned from"
        if self.latest:
            mean = f"{self.late:,.0f}" if self.late >= 100.0 else f"{self.late:.3g}"
            late = f"labels {mean} rows late on average, {self.latest:,} at most"
            late = late if self.latest_in_series is None else f"labels up to {self.lateness} late"
        late += f", {self.gaps}" if self.gaps else ""
        late += (
            f"; {counted(self.not_due, 'label')} not due by the last row" if self.not_due else ""
        )
        rest = f"; {self.replacements}" if self.replaced else ""
        return f"{step}; {late}; {100 * self.unlabelled:.3g} % of rows without a label to learn from{rest}"

    @property
    def replacements(self) -> str:
        """How many predictions were replaced; empty if none was."""
        were = "prediction was" if self.replaced == 1 else "predictions were"
        return f"{self.replaced:,} {were} replaced before a label came" if self.replaced else ""

    @property
    def gaps(self) -> str:
        """That labels stayed away, once or now; empty if they did not."""
        once = f"none came for {self.silence:,} rows at one time" if self.outage else ""
        now = f"none has come for the last {self.silent:,} rows" if self.stopped else ""
        now = f"{counted(self.held_back, 'label')} held back" if self.held_back else now
        return ", ".join(part for part in (once, now) if part)


def counted(n: int, noun: str) -> str:
    """1 label, 2,103 labels."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def learning_of(layer: Any) -> Learning:
    """How a layer learns now."""
    rule, state = getattr(layer._rule, "inner", layer._rule), layer._state
    facts = state.facts
    served, posted, waiting = facts[fact.SERVED], facts[fact.POSTED], len(layer._book.waiting)
    held_back = len(layer._book.held_back) if layer._book.early is not None else 0
    heard_at, longest = state.silence
    memories = getattr(rule, "memories", None)
    memory, raw = (None, None) if memories is None else remembered(state, memories)
    eta = float(rule.schedule.step(int(served) + 1))
    return Learning(
        "plain" if memories is None else "auto",
        eta,
        in_force(layer, eta),
        facts[fact.DELAY_SUM] / posted if posted else 0.0,
        int(facts[fact.DELAY_MOST]),
        memory,
        raw,
        max(0.0, 1.0 - (posted + waiting) / served) if served else 0.0,
        int(max(0.0, served - heard_at)) if heard_at else 0,
        int(longest),
        int(posted - facts[fact.SKIPPED]),
        waiting - held_back,
        latest_in_series(layer),
        sum(layer._book.replaced.values()),
        held_back,
    )


def latest_in_series(layer: Any) -> int | None:
    """The most rows of its own series served between a row and its label; None where they are not counted."""
    if layer.kind != "keyed" or not (layer._names.own.scalar or layer._flight.per == "key"):
        return None
    return int(max(layer._state.late[LATEST::LATENESS], default=1.0)) - 1


def in_force(layer: Any, eta: float) -> float:
    """The step of a label of the group (or key) whose labels come latest; a bound from below with several columns."""
    state, flight = layer._state, layer._flight
    peaks = state.late[::LATENESS]
    peak = max(peaks, default=1.0)
    if flight.limit is None or peak < 2.0:
        return eta
    columns = getattr(layer._names, "groups", ()) if flight.per == "parameter" else ()
    if len(columns) > 1:
        own = list(zip(layer._names.names, peaks, strict=True))
        peak = sum(
            max(p for name, p in own if f"{column_name(column)}=" in name) for column in columns
        )
    size = max(state.norms, default=1.0) if flight.featured else 1.0
    return min(eta, float(flight.limit / (peak * size))) if size > 0.0 else eta


class Cell(NamedTuple):
    """How late the labels of a group come, in rows of the group: those served, the peak that holds its steps down,
    and the step of a label now (None where it depends on the other groups of a row)."""

    served: int
    peak: int
    step: float | None


def cells_of(layer: Any, names: Iterable[str]) -> dict[str, Cell]:
    """The groups of these names; none where lateness is not counted by group."""
    flight, state, index = layer._flight, layer._state, getattr(layer._names, "index", {})
    if flight.per != "parameter":
        return {}
    rule = getattr(layer._rule, "inner", layer._rule)
    eta = float(rule.schedule.step(int(state.facts[fact.SERVED]) + 1))
    single = len(getattr(layer._names, "groups", ())) == 1
    found = {}
    for name in names:
        if name not in index:
            continue
        at = index[name]
        peak = state.late[at * LATENESS + PEAK] if len(state.late) else 1.0
        limit = math.inf if flight.limit is None else flight.limit
        step = capped(eta, limit, 1.0, peak, peak, 1.0) if single else None
        found[name] = Cell(int(state.rows[at]), int(peak), step)
    return found


def remembered(state: Any, memories: tuple[float, ...]) -> tuple[float | None, float]:
    """The memory of experts by their weights, no longer than what was heard; the weight of the raw one (memory 0)."""
    weights, heard = weights_of(state), state.heard[0]
    pairs = list(zip(weights, memories, strict=True))
    own = [(w, min(memory, max(1.0, heard))) for w, memory in pairs if memory and heard]
    total = sum(w for w, _ in own)
    memory = math.exp(sum(w * math.log(m) for w, m in own) / total) if total else None
    return memory, sum(w for w, m in pairs if not m)
