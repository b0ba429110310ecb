"""Labels whose delay depends on their value, found from the labels themselves.

Churn is known when it happens, "stayed" after 30 days: all labels of the first weeks say churn, and a layer that
learned from them would serve certainty. So late labels are looked at before they are learned. While more of the older
rows wait for a label than have one, do labels contradict the predictions grossly (probabilities), or rise or fall
with their own delay? If so they are held back until nearly all rows that were served with theirs have a label, until
labels and predictions agree, or until labels of all values turn out to be equally late. Doubt is enough to hold them
back; a warning needs more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from gradeq.errors import StateError

BLOCK = 64  # rows served one after the other: labels that are held back are learned together with theirs
COMPLETE = 58  # labels of a block: nine in ten
DOUBT = (
    0.8,
    9.0,
)  # labels above (or below) what the predictions say; squared standard errors of the predictions
ALARM = (2.5, 25.0)
GROSS = 1.5  # about the offset in log-odds: a factor of 4.5 in the odds
AGREES = 4.0  # squared standard errors: labels and predictions agree after all
TREND = 0.6  # the squared correlation of labels and their delays
BOTH = 3.0  # sum of squares of labels about their mean from which delays are compared (0/1: 3 of the rarer)
SLIGHT = (
    0.05,
    9.0,
)  # a squared correlation, and n times one, up to which delays do not depend on labels
FEW = 50  # labels from which a correlation is looked at
LEAST = 1e-3  # the least variance of a label that a probability may claim
FAR = 1e60  # larger labels are added up as this
REMEDY = (
    "their delay seems to depend on their value: make the layer with maturity= the age at which all labels of a row "
    "are known (--maturity SPAN), or with maturity=0 if it does not"
)
HELD = 9.2e18  # when a label is due that is held back: never, by itself
NAMES = (
    "labels", "surplus", "spread", "delay", "delay_squares", "label", "label_squares", "products",
)  # fmt: skip


class EarlyLabels:
    """Sums over the late labels of a layer, and whether these are held back.

    ``origin``: the first label; labels are added up as differences from it. ``newest``: the largest number of a row
    with a late label. ``since``: how many rows had been served when labels were held back; None while they are
    learned as they come. ``why``: what was seen, once it is worth a warning. ``known``: how many labels of a block of
    rows were learned (of blocks from before: how many rows no longer waited).
    """

    __slots__ = ("known", "means", "newest", "origin", "probable", "since", "sums", "why")

    def __init__(self, means: bool = True) -> None:
        self.means = (
            means  # whether predictions are of means, which labels in [0, 1] can contradict
        )
        self.sums = (0.0,) * len(NAMES)
        self.origin = 0.0
        self.newest = 0
        self.probable = means  # all labels and predictions lie in [0, 1]
        self.since: int | None = None
        self.why = ""
        self.known: dict[int, int] = {}

    def __copy__(self) -> EarlyLabels:
        made = EarlyLabels(self.means)
        for name in self.__slots__:
            setattr(made, name, getattr(self, name))
        made.known = dict(self.known)
        return made

    def count(self, y: float, f: float, delay: float, number: int) -> bool:
        """Add a late label; whether all so far look as if their delay depended on their value."""
        if not self.sums[0]:
            self.origin = y
        self.probable = self.probable and 0.0 <= y <= 1.0 and 0.0 <= f <= 1.0
        self.newest = max(self.newest, number)
        added = terms(y, f, delay, self.origin, clipped)
        self.sums = tuple(old + own for old, own in zip(self.sums, added, strict=True))
        self.explain()
        return bool(self.probable and suspicious(self.sums)) or bool(trending(*self.sums))

    def count_all(
        self, y: Any, f: Any, delay: Any, number: Any, looked_at: int | None = None
    ) -> Any:
        """The same for many, in the order in which they come: after each, whether they look so.

        ``looked_at``: of the first so many labels (left out: of all); the others are only counted.
        """
        if not len(y):
            return np.zeros(0, dtype=bool)
        if not self.sums[0]:
            self.origin = float(y[0])
        inside = (y >= 0.0) & (y <= 1.0) & (f >= 0.0) & (f <= 1.0)
        inside[0] &= self.probable
        inside = np.logical_and.accumulate(inside)
        added = terms(y, f, delay, self.origin, np.clip)
        sums = [
            np.cumsum(np.concatenate([[old], np.broadcast_to(own, len(y))]))[1:]
            for old, own in zip(self.sums, added, strict=True)
        ]
        self.sums = tuple(float(own[-1]) for own in sums)
        self.probable, self.newest = bool(inside[-1]), max(self.newest, int(number.max()))
        sums, inside = [own[:looked_at] for own in sums], inside[:looked_at]
        return (inside & suspicious(sums)) | trending(*sums)

    def explain(self) -> None:
        """Note what was seen, once labels are held back and it is worth a warning."""
        if self.since is None or self.why:
            return
        n, surplus = self.sums[:2]
        seen = ""
        if self.probable and suspicious(self.sums, ALARM):
            mean = surplus / n
            side = "above" if mean > 0 else "below"
            seen = f"the first {n:,.0f} late labels are on average {abs(mean):.2g} {side} their predictions"
        elif trending(*self.sums):
            grow = "larger" if moments(*self.sums)[2] > 0 else "smaller"
            seen = f"of {n:,.0f} late labels those that came later are {grow}"
        self.why = (
            seen and f"{seen}, while most rows served before the newest of them wait for theirs"
        )

    @property
    def warning(self) -> str | None:
        """What is said while labels are held back."""
        return f"labels are held back: {self.why}; {REMEDY}" if self.why else None

    @property
    def agrees(self) -> bool:
        """Whether nothing need be held back any more.

        Labels and probabilities agree by now (or are none), or labels of all values turned out to be equally late.
        """
        _, surplus, spread = self.sums[:3]
        fit = not self.probable or surplus * surplus < AGREES * spread
        return bool((fit or equally_late(*self.sums)) and not trending(*self.sums))

    def hold_back(self, served: int, waiting: Any) -> None:
        """Hold labels back from now on; ``waiting``: the numbers of rows that wait for a label."""
        self.since = served
        self.explain()
        blocks = np.bincount((np.asarray(waiting, dtype=np.int64) - 1) // BLOCK, minlength=1)
        whole, rest = divmod(served, BLOCK)
        rows = [BLOCK] * whole + ([rest] if rest else [])
        wait = [*blocks.tolist(), *[0] * (len(rows) - len(blocks))]
        self.known = {
            b: n - k for b, (n, k) in enumerate(zip(rows, wait, strict=False)) if k or n < BLOCK
        }

    def join(self, other: EarlyLabels, served: int, total: int) -> None:
        """Those of another partition, whose rows are numbered after the ``served`` ones here, ``total`` together.

        The sums are those of the partition that has more labels; if one holds labels back, both do.
        """
        if other.sums[0] > self.sums[0]:
            self.sums, self.origin, self.probable = other.sums, other.origin, other.probable
        self.newest = max(self.newest, other.newest + served if other.newest else 0)
        self.why = self.why or other.why
        self.known = {}
        if self.since is not None or other.since is not None:
            self.since = total

    def state(self) -> dict[str, Any]:
        """Everything, ready for the codec."""
        held = {} if self.since is None else {"since": self.since, "why": self.why}
        return {
            "sums": list(self.sums), "origin": self.origin, "newest": self.newest, "probable": self.probable,
            "known": [[block, count] for block, count in self.known.items()], **held,
        }  # fmt: skip

    @classmethod
    def restored(cls, state: dict[str, Any], means: bool = True) -> EarlyLabels:
        """The sums of a saved state."""
        made = cls(means)
        made.sums = tuple(float(own) for own in state["sums"])
        made.origin, made.newest = float(state["origin"]), int(state["newest"])
        made.probable, made.why = bool(state["probable"]), str(state.get("why", ""))
        made.since = None if state.get("since") is None else int(state["since"])
        made.known = {int(block): int(count) for block, count in state["known"]}
        if len(made.sums) != len(NAMES) or not all(map(math.isfinite, made.sums)):
            raise StateError("the state is damaged: the sums of late labels make no sense")
        return made


def terms(y: Any, f: Any, delay: Any, origin: float, clip: Callable[..., Any]) -> tuple[Any, ...]:
    """What late labels add to the sums; ``clip`` keeps a number, or numbers, inside limits."""
    label = clip(y - origin, -FAR, FAR)
    chance = clip(f, 0.0, 1.0)
    spread = clip(chance * (1.0 - chance), LEAST, 1.0)
    surplus = clip(y, -FAR, FAR) - clip(f, -FAR, FAR)
    return (1.0, surplus, spread, delay, delay * delay, label, label * label, delay * label)


def clipped(x: float, low: float, high: float) -> float:
    """One number inside limits."""
    return min(max(x, low), high)


def gross(sums: Any, level: tuple[float, float]) -> Any:
    """Whether labels contradict probabilities beyond chance, by a factor of 4.5 in the odds."""
    _, surplus, spread = sums[:3]
    least, sure = level
    return (
        (abs(surplus) >= least)
        & (surplus * surplus > sure * spread)
        & (abs(surplus) > GROSS * spread)
    )


def suspicious(sums: Any, level: tuple[float, float] = DOUBT) -> Any:
    """Whether labels contradict probabilities grossly, and their delays do not speak against that being the reason.

    A model that is grossly wrong looks the same until labels of both values have come; then these are equally late.
    """
    return gross(sums, level) > equally_late(*sums)


def equally_late(*sums: Any) -> Any:
    """Whether labels of different values have come, and their delays hardly depend on them."""
    n = sums[0]
    delays, labels, both = moments(*sums)
    slight, chance = SLIGHT
    product = delays * labels
    alike = (both * both <= slight * product) | (n * both * both <= chance * product)
    return (labels >= BOTH * n) & alike


def moments(
    n: Any, surplus: Any, spread: Any, d: Any, dd: Any, y: Any, yy: Any, dy: Any
) -> tuple[Any, Any, Any]:
    """n squared times the variances of delays and of labels, and their covariance."""
    return n * dd - d * d, n * yy - y * y, n * dy - d * y


def trending(*sums: Any) -> Any:
    """Whether labels rise or fall with their own delay."""
    delays, labels, both = moments(*sums)
    return (
        (sums[0] >= FEW) & (both * both > TREND * delays * labels) & (delays > 0.0) & (labels > 0.0)
    )
