"""Labels of a pass in short, and labels whose delay depends on their value, found from the labels themselves.

Churn is known when it happens, "stayed" after 30 days: all labels of the first weeks say churn, and a layer that
learned from them would serve certainty. So late labels are looked at before they are learned (``kernels.early``).
They are doubtful while most of the older rows have no label and one of two things holds:

- the labels of probabilities contradict the predictions grossly,
- labels rise or fall with their own delay among rows of the same prediction.

Doubtful labels are held back until one of three things happens:

- nearly all rows that were served with theirs have a label, or by the delays so far will get none any more,
- labels and predictions agree,
- labels of all values turn out to be equally late.

Doubt is enough to hold labels back; a warning needs more."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from gradeq.errors import StateError
from gradeq.kernels import early as of
from gradeq.kernels.flight import COUNT, EPOCH, LATENESS, LATEST, LENGTH, NO_LABELS, PEAK, RECENT
from gradeq.ledger.batch import Batch, Order
from gradeq.ledger.state import FACTS_KNOWN, LEFT, State
from gradeq.rules.rule import Rule, read

if TYPE_CHECKING:
    from gradeq.engine.lateness import Lateness


class LabelStats(NamedTuple):
    """Summary statistics of the labels of one pass (``kernels.flight``)."""

    low: float
    high: float
    capped: float
    heaviest: float
    late: float
    waited: float
    longest: float
    heaviest_step: float


def at_once(batch: Batch) -> LabelStats:
    """In short what labels are like that come right after their rows."""
    etas, weights, posts = batch.steps, batch.weights, batch.posts
    if not len(posts):
        return LabelStats(*NO_LABELS)
    if batch.plain:
        etas, weights = etas[:1], weights[:1]
    elif len(posts) < len(batch.base):
        etas, weights = etas[posts], weights[posts]
    ends, heaviest = (float(etas.min()), float(etas.max())), float(weights.max())
    return LabelStats(*ends, 0.0, heaviest, 1.0, 0.0, 0.0, float((etas * weights).max()))


def unlearned(batch: Batch, order: Order, before: float) -> dict[str, float]:
    """How long labels were waited for that are heard and not learned from."""
    if batch.at_once or not len(order.posts):
        return {}
    own, rows = order.posts, np.arange(len(order.cuts) + 1)
    turns = np.repeat(rows, np.diff(order.cuts, prepend=0, append=len(own)))
    numbers = before + (own - batch.first) + 1.0
    for k, ticket in enumerate(batch.carried):
        numbers[own == k] = ticket.number
    ago = np.maximum(0.0, before + (turns - batch.first) - numbers)
    return {"waited": float(ago.sum()), "longest": float(ago.max())}


def prompt_cells(labels: Any) -> Any:
    """The numbers of cells all of whose labels came at once: epochs of 50, 100, 150, ... labels, peak 1."""
    past = np.floor((np.sqrt(1.0 + labels / 6.25) - 1.0) / 2.0)
    past = np.where(25.0 * (past + 1.0) * (past + 2.0) <= labels, past + 1.0, past)
    past = np.where(25.0 * past * (past + 1.0) > labels, past - 1.0, past)
    made = np.empty((len(labels), LATENESS))
    made[:, PEAK] = made[:, LATEST] = 1.0
    made[:, COUNT] = labels - 25.0 * past * (past + 1.0)
    made[:, LENGTH] = EPOCH * (past + 1.0)
    made[:, RECENT] = np.where(made[:, COUNT] > 0.0, 1.0, 0.0)
    return made


def entered(
    rule: Rule, flight: Lateness, look: Callable[[object, object], None], state: State, log: list[object]
) -> None:
    """Enter labels that events left in a state: into its facts, then into its accounts; ``look`` is shown them.

    Those for the accounts alone come first: the facts of later labels are told from all that came before.
    """
    known = 0
    while state.later and known < len(log) and log[known + LEFT - 1] == FACTS_KNOWN:
        known += LEFT
    for part in (log[:known], log[known:]) if known else (log,):
        if not part:
            continue
        own = read(part)
        look(own.base, own.y)
        flight.tell(state, own)
        if state.later:
            with np.errstate(over="ignore", invalid="ignore"):  # of losses: squares of anything
                rule.account(state, own)


ALARM, ALARM_ERRORS = 2.5, 25.0  # a warning needs more than a doubt
AGREES = 4.0  # squared standard errors: labels and predictions agree after all
BLOCK = 64  # rows served one after the other
COMPLETE = 58  # labels of a block: nine in ten
SCANNED = 1000  # rows that are looked through one by one
REMEDY = (
    "their delay seems to depend on their value: make the layer with maturity= the age at which all labels of a row "
    "are known (--maturity SPAN), or with maturity=0 if it does not"
)
HELD = 9.2e18  # when a label is due that is held back: never, by itself
OLDER = 8  # sums of states that know nothing of predictions


class EarlyLabels:
    """What is known of the late labels of a layer, and whether these are held back.

    ``means``: whether predictions are of means, which labels in [0, 1] can contradict. ``since``: how many rows had
    been served when labels were held back; None while they are learned as they come. ``why``: what was seen, once it
    is worth a warning. ``known``: how many rows of a block have a late label. ``oldest``: no row with a smaller
    number has a label that is held back.
    """

    __slots__ = ("known", "means", "oldest", "since", "sums", "why")

    def __init__(self, means: bool = True) -> None:
        self.means = means
        self.sums = [0.0] * of.SIZE
        self.sums[of.OUTSIDE] = float(not means)
        self.since: int | None = None
        self.why = ""
        self.known: dict[int, int] = {}
        self.oldest = 1

    def __copy__(self) -> EarlyLabels:
        made = EarlyLabels(self.means)
        made.since, made.why, made.oldest = self.since, self.why, self.oldest
        made.sums, made.known = [*self.sums], dict(self.known)
        return made

    @property
    def settled(self) -> bool:
        return self.sums[of.SETTLED] == 1.0

    def count(self, y: float, f: float, now: int, number: int, posted: Callable[[], float]) -> None:
        """Count a late label that comes after ``now`` rows, and hold it and all others back if there is doubt.

        ``posted``: how many labels were learned before it.
        """
        sums, block = self.sums, (number - 1) // BLOCK
        if self.since is None and of.settled(sums, now):
            self.settle()
            return
        of.add_label(sums, y, f, now - number + 1.0, float(number))
        self.known[block] = self.known.get(block, 0) + 1
        doubt = self.since is None and of.doubtful(sums)
        if doubt and sums[of.NEWEST] > 2.0 * (posted() + 1.0):
            self.since = now
        self.explain()

    def counted(self, sums: list[float], numbers: NDArray[np.int64]) -> None:
        """Take over the sums after late labels of these rows; none of the labels is deferred."""
        self.sums = sums
        blocks, counts = np.unique((numbers - 1) // BLOCK, return_counts=True)
        for block, count in zip(blocks.tolist(), counts.tolist(), strict=True):
            self.known[block] = self.known.get(block, 0) + count
        if self.settled:
            self.settle()

    def settle(self) -> None:
        self.sums[of.SETTLED], self.known = 1.0, {}

    def explain(self) -> None:
        """Note what was seen, once labels are held back and it is worth a warning."""
        if self.since is None or self.why:
            return
        n, seen, slope = self.sums[of.LABELS], "", of.slope(self.sums)
        if of.gross(self.sums, ALARM, ALARM_ERRORS) and not of.equally_late(self.sums):
            mean = self.sums[of.SURPLUS] / n
            side = "above" if mean > 0 else "below"
            seen = f"the first {n:,.0f} late labels are on average {abs(mean):.2g} {side} their predictions"
        elif slope:
            grow = "larger" if slope > 0 else "smaller"
            seen = f"of {n:,.0f} late labels those that came later are {grow} than their predictions say"
        self.why = seen and f"{seen}, while most rows served before the newest of them have none"

    @property
    def warning(self) -> str | None:
        """What is said while labels are held back."""
        if not self.why:
            return None
        return f"labels are held back: {self.why}; {self.until}; {REMEDY}"

    @property
    def until(self) -> str:
        """When labels that are held back are learned."""
        both = "" if self.sums[of.OUTSIDE] else "both values have come and "
        return f"each is learned when {both}rows as old as its own have their labels, as delays so far tell"

    @property
    def agrees(self) -> bool:
        """Whether nothing need be held back any more.

        Labels and probabilities agree by now (or are none), or labels of all values turned out to be equally late.
        """
        sums = self.sums
        off = sums[of.SURPLUS] * sums[of.SURPLUS]
        fit = sums[of.OUTSIDE] == 1.0 or off < AGREES * sums[of.SPREAD] or of.equally_late(sums)
        return fit and not of.slope(sums)

    @property
    def patience(self) -> float:
        """The age, in rows, beyond which a row is not expected to get a label any more.

        The longest delay so far. Larger numbers may be later than all so far: then at least the mean delay and three
        standard deviations, within which nine in ten are whatever their distribution. Until probabilities have met
        labels of different values there is none.
        """
        sums, n = self.sums, max(self.sums[of.LABELS], 1.0)
        probable = sums[of.OUTSIDE] == 0.0
        if probable and sums[of.YY] - sums[of.Y] * sums[of.Y] / n < of.BOTH:
            return math.inf
        if probable and abs(sums[of.Y]) == sums[of.YY]:  # differences from the first label: 0 or 1
            return sums[of.LONGEST]
        mean = sums[of.D] / n
        deviation = math.sqrt(max(sums[of.DD] / n - mean * mean, 0.0))
        return max(sums[of.LONGEST], mean + 3.0 * deviation)

    def ready(self, number: int, now: int, held: Callable[[int], bool], every: Callable[[], list[int]]) -> list[int]:
        """The rows whose labels are learned now that the one of this row has come, oldest first.

        ``held``: whether the label of a row is deferred; ``every``: all rows with a deferred label.
        """
        self.oldest = min(self.oldest, number)
        if self.agrees:
            self.since, self.why = None, ""
            return every()
        block, patience = (number - 1) // BLOCK, self.patience
        mature = 0 if patience == math.inf else now - math.ceil(patience)
        rows: Iterable[int] = range(self.oldest, mature + 1)
        if mature - self.oldest > SCANNED:
            rows = (k for k in every() if k <= mature)
        found = {k for k in rows if held(k)}
        self.oldest = max(self.oldest, mature + 1)
        if self.known.get(block, 0) >= COMPLETE:
            found.update(filter(held, range(block * BLOCK + 1, (block + 1) * BLOCK + 1)))
        return sorted(found)

    def join(self, other: EarlyLabels, served: int, total: int) -> None:
        """Those of another partition, whose rows are numbered after the ``served`` ones here, ``total`` together.

        The sums are those of the partition that has more labels; if one holds labels back, both do.
        """
        mine, theirs = self.sums, [*other.sums]
        if theirs[of.LABELS]:
            theirs[of.NEWEST] += served
        self.sums = [*(theirs if theirs[of.LABELS] > mine[of.LABELS] else mine)]
        for own in (of.NEWEST, of.LONGEST):
            self.sums[own] = max(mine[own], theirs[own])
        self.sums[of.SETTLED] = min(mine[of.SETTLED], theirs[of.SETTLED])
        self.why, self.known, self.oldest = self.why or other.why, {}, 1
        if self.since is not None or other.since is not None:
            self.since = total

    def state(self) -> dict[str, Any]:
        """Everything, ready for the codec."""
        held = {} if self.since is None else {"since": self.since, "why": self.why}
        known = [[block, self.known[block]] for block in sorted(self.known)]
        return {"sums": [*self.sums], "known": known, **held}

    @classmethod
    def restored(cls, state: dict[str, Any], means: bool = True) -> EarlyLabels:
        """The sums of a saved state."""
        made, sums = cls(means), [float(own) for own in state["sums"]]
        if len(sums) == OLDER:
            made.sums[:OLDER] = sums
            made.sums[of.ORIGIN] = float(state["origin"])
            made.sums[of.NEWEST] = float(state["newest"])
            made.sums[of.OUTSIDE] = float(not state["probable"])
        else:
            made.sums = sums
        made.known = {int(block): int(count) for block, count in state["known"]}
        made.why = str(state.get("why", ""))
        made.since = None if state.get("since") is None else int(state["since"])
        if len(made.sums) != of.SIZE or not all(map(math.isfinite, made.sums)):
            raise StateError("the state is damaged: the sums of late labels make no sense")
        return made
