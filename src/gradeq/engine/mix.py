"""The automatic step: raw and several rates mixed by their loss, then one constant-step layer that certifies.

Each expert is a head of its own on the same rows. Experts do not depend on the weights, nor the weights on the
final head, so a batch is three passes one after the other. The certificate is the final head's alone (results B5,
7.5): the weights only choose what is served next.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from gradeq.kernels import mixing
from gradeq.losses import Loss

if TYPE_CHECKING:
    from gradeq.engine.batch import Batch, Floats


class Judge(Protocol):
    """How a served value is judged against its label, one or many."""

    def one(self, served: Any, y: float) -> float:
        """The loss of one served value."""
        ...

    def many(self, served: Floats, labels: Floats) -> Floats:
        """The losses of many; 0 where there is no label."""
        ...


class PointJudge:
    """Judges single served values by a loss."""

    def __init__(self, loss: Loss) -> None:
        self.loss = loss

    def one(self, served: Any, y: float) -> float:
        """The loss of one served value."""
        return self.loss.value(served, y)

    def many(self, served: Floats, labels: Floats) -> Floats:
        """The losses of many; 0 where there is no label."""
        import numpy as np

        from gradeq.kernels.call import run_loop

        losses = np.empty(len(served))
        run_loop(mixing.judged, (self.loss,), (served, labels, losses), len(served))
        return losses


class Mix:
    """Experts, their weights by posted loss, and the final head on their mix.

    A memo is (memo of each expert, weights at serving, learning rate, Q, the mix, memo of the final head).
    """

    __slots__ = ("adaptive", "deltas", "experts", "final", "judge", "raw", "totals")

    def __init__(
        self, experts: list[Any], final: Any, judge: Judge, *, adaptive: bool, raw: bool
    ) -> None:
        self.experts, self.final, self.judge = experts, final, judge
        self.adaptive, self.raw = adaptive, raw
        self.totals: Any = array("d")  # cumulative loss of each expert, raw first, unit by unit
        self.deltas: Any = array("d")  # AdaHedge's Delta of each unit
        self.grow_units(1)

    @property
    def count(self) -> int:
        """How many experts, the raw prediction included."""
        return len(self.experts) + int(self.raw)

    def grow(self, count: int) -> None:
        """Room for ``count`` parameters in each head."""
        for head in (*self.experts, self.final):
            head.grow(count)

    def grow_units(self, count: int) -> None:
        """Room for the weights of ``count`` units."""
        more = count - len(self.deltas)
        self.totals.extend([0.0] * (more * self.count))
        self.deltas.extend([0.0] * more)

    @property
    def size(self) -> float | None:
        """What the steps of all heads are divided by (see ``Margin.size``)."""
        size: float | None = self.final.size
        return size

    @size.setter
    def size(self, size: float | None) -> None:
        for head in (*self.experts, self.final):
            head.size = size

    def weights(self, unit: int = 0) -> list[float]:
        """The weights that the next prediction would be mixed with."""
        out = [0.0] * self.count
        rate = mixing.learning_rate(self.adaptive, self.deltas[unit], self.count)
        mixing.weigh(self.totals, unit * self.count, self.count, rate, out, 0)
        return out

    def state(self) -> dict[str, Any]:
        """All that learning has changed, ready for the codec."""
        return {
            "experts": [expert.state() for expert in self.experts],
            "final": self.final.state(),
            "totals": self.totals,
            "deltas": self.deltas,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take up a saved state."""
        for expert, own in zip(self.experts, state["experts"], strict=True):
            expert.restore(own)
        self.final.restore(state["final"])
        self.totals, self.deltas = state["totals"], state["deltas"]

    def serve(
        self, unit: int, index: Sequence[int], value: Sequence[float], f: Any, t: int, crowd: float
    ) -> tuple[Any, Any]:
        """Serve the mix, moved by the final head."""
        served, memos = [f] if self.raw else [], []
        for expert in self.experts:
            s, memo = expert.serve(unit, index, value, f, t, crowd)
            served.append(s)
            memos.append(memo)
        rate = mixing.learning_rate(self.adaptive, self.deltas[unit], self.count)
        weights = self.weights(unit)
        mixed = blend_any(weights, served)
        out, last = self.final.serve(unit, index, value, mixed, t, crowd)
        return out, (memos, weights, rate, crowd, mixed, last, served)

    def post(
        self,
        unit: int,
        index: Sequence[int],
        value: Sequence[float],
        f: Any,
        memo: Any,
        w: float,
        y: float,
    ) -> None:
        """Every expert learns from the label, then the weights, then the final head."""
        memos, weights, rate, crowd, mixed, last, served = memo
        self.final.post(unit, index, value, mixed, last, w, y)
        for expert, own in zip(self.experts, memos, strict=True):
            expert.post(unit, index, value, f, own, w, y)
        losses = [self.judge.one(s, y) for s in served]
        mixing.settle(
            self.adaptive,
            self.count,
            weights,
            0,
            rate,
            crowd,
            losses,
            0,
            self.totals,
            self.deltas,
            unit,
        )

    def amend(
        self,
        unit: int,
        index: Sequence[int],
        value: Sequence[float],
        f: Any,
        memo: Any,
        w: float,
        old: float,
        new: float,
    ) -> None:
        """Replace a label in every head; the weights keep what they learned from the old one, corrected in sum."""
        memos, _, _, _, mixed, last, served = memo
        self.final.amend(unit, index, value, mixed, last, w, old, new)
        for expert, own in zip(self.experts, memos, strict=True):
            expert.amend(unit, index, value, f, own, w, old, new)
        for k, s in enumerate(served):
            at = unit * self.count + k
            self.totals[at] = self.totals[at] + (self.judge.one(s, new) - self.judge.one(s, old))

    def run(self, batch: Batch) -> tuple[Floats, list[Any]]:
        """Three passes: the experts, their weights and mix, the final head."""
        from gradeq.engine.mixing_passes import run_mix

        return run_mix(self, batch)


def blend_any(weights: list[float], served: list[Any]) -> Any:
    """The weighted mean of numbers, or of lists of numbers entry by entry."""
    if not isinstance(served[0], (list, tuple)):
        return mixing.blend(weights, 0, served, 0, len(served))
    width = len(served[0])
    return [
        mixing.blend(weights, 0, [s[level] for s in served], 0, len(served))
        for level in range(width)
    ]
