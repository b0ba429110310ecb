"""Links: how a margin m = z'theta turns a black-box prediction f into the served value.

Every link is increasing in m (strictly, but for those that hold what they serve inside limits), and at m = 0 serves
f itself (for ``Logit``, f clipped). ``Sigmoid`` and ``Exp`` make a prediction out of the margin alone; f is then an
offset added to it.

Limits change no bound. The label lies inside them, so the error of the value at the limit is a share, between 0 and
1, of the error without limits: a step on the same loss, never larger than the one that was taken.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from gradeq.errors import BadInput
from gradeq.numerics import bounded_exp, bounded_sinh, logit, sigmoid, within


class Link(Protocol):
    """Anything that serves f moved by the margin m."""

    def serve(self, f: float, m: float) -> float:
        """The value that the user sees."""
        ...

    def reach(self, f: float) -> float:
        """e^|offset|, the odds that the bound C1 sums; 1 for a link without an offset."""
        ...

    def tracked(self, f: float, y: float) -> float:
        """What the range of an account is about: y - f, or y itself where errors are bounded by the link."""
        ...


@dataclass(frozen=True)
class Identity:
    """served = f + m: debiasing of real predictions, quantile tracking.

    >>> Identity().serve(3.0, 0.5)
    3.5
    """

    def serve(self, f: float, m: float) -> float:
        """f + m."""
        return f + m

    def reach(self, f: float) -> float:
        """1: there is no offset."""
        return 1.0

    def tracked(self, f: float, y: float) -> float:
        """y - f."""
        return y - f


@dataclass(frozen=True)
class Shift:
    """served = f + 2 sigmoid(m) - 1: the paper's debiasing of probabilities; it may leave [0, 1].

    Paper: eq:logistic_loss_adj_pred, alg:simple-debias-logistic, with z'theta inside the sigmoid.

    >>> Shift().serve(0.3, 0.0)
    0.3
    """

    def serve(self, f: float, m: float) -> float:
        """f + 2 sigmoid(m) - 1."""
        return f + (2.0 * sigmoid(m) - 1.0)

    def reach(self, f: float) -> float:
        """1: there is no offset."""
        return 1.0

    def tracked(self, f: float, y: float) -> float:
        """y - f."""
        return y - f


@dataclass(frozen=True)
class Logit:
    """served = sigmoid(logit f + m): stays inside (0, 1), and only this link has a harm cap.

    f is clipped to [clip, 1 - clip] first.

    >>> Logit().serve(0.25, 0.0)
    0.25
    """

    clip: float = 1e-6

    def __post_init__(self) -> None:
        if not 0.0 < self.clip < 0.5:
            raise BadInput(f"Logit(clip={self.clip}): clip must lie strictly between 0 and 0.5")

    def serve(self, f: float, m: float) -> float:
        """sigmoid(logit f + m); while m is 0, f clipped and no digit of it rounded."""
        p = min(1.0 - self.clip, max(self.clip, f))
        return sigmoid(logit(p) + m) if m != 0.0 else p

    def reach(self, f: float) -> float:
        """The larger of the odds of f and of 1 - f, f clipped."""
        p = min(1.0 - self.clip, max(self.clip, f))
        return max(p / (1.0 - p), (1.0 - p) / p)

    def tracked(self, f: float, y: float) -> float:
        """The label."""
        return y


@dataclass(frozen=True)
class HeldIdentity:
    """served = f + m, held inside [low, high].

    >>> HeldIdentity(0.0, 9.0).serve(3.0, -5.0)
    0.0
    """

    low: float
    high: float

    def serve(self, f: float, m: float) -> float:
        """f + m, or the limit beyond which it lies."""
        return within(f + m, self.low, self.high)

    def reach(self, f: float) -> float:
        """1: there is no offset."""
        return 1.0

    def tracked(self, f: float, y: float) -> float:
        """y - f."""
        return y - f


@dataclass(frozen=True)
class HeldShift:
    """served = f + 2 sigmoid(m) - 1, held inside [low, high].

    >>> HeldShift(0.0, 1.0).serve(0.9, 5.0)
    1.0
    """

    low: float
    high: float

    def serve(self, f: float, m: float) -> float:
        """f + 2 sigmoid(m) - 1, or the limit beyond which it lies."""
        return within(f + (2.0 * sigmoid(m) - 1.0), self.low, self.high)

    def reach(self, f: float) -> float:
        """1: there is no offset."""
        return 1.0

    def tracked(self, f: float, y: float) -> float:
        """y - f."""
        return y - f


@dataclass(frozen=True)
class HeldLogit:
    """served = sigmoid(logit f + m), held inside [low, high]; f is clipped to [clip, 1 - clip] first.

    >>> HeldLogit(1e-6, 0.1, 0.9).serve(0.5, 5.0)
    0.9
    """

    clip: float
    low: float
    high: float

    def serve(self, f: float, m: float) -> float:
        """sigmoid(logit f + m), or the limit beyond which it lies."""
        p = min(1.0 - self.clip, max(self.clip, f))
        s = sigmoid(logit(p) + m) if m != 0.0 else p
        return within(s, self.low, self.high)

    def reach(self, f: float) -> float:
        """The larger of the odds of f and of 1 - f, f clipped."""
        p = min(1.0 - self.clip, max(self.clip, f))
        return max(p / (1.0 - p), (1.0 - p) / p)

    def tracked(self, f: float, y: float) -> float:
        """The label."""
        return y


@dataclass(frozen=True)
class Sigmoid:
    """served = low + (high - low) sigmoid(f + m): generalised logistic regression, Elo (f = 0).

    >>> Sigmoid().serve(0.0, 0.0)
    0.5
    """

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise BadInput(f"Sigmoid(low={self.low}, high={self.high}): needs finite low < high")

    def serve(self, f: float, m: float) -> float:
        """The generalised sigmoid of f + m."""
        return self.low + (self.high - self.low) * sigmoid(f + m)

    def reach(self, f: float) -> float:
        """e^|f|."""
        return bounded_exp(abs(f))

    def tracked(self, f: float, y: float) -> float:
        """The label."""
        return y


@dataclass(frozen=True)
class Exp:
    """served = exp(f + m): Poisson regression with log-rate offset f.

    >>> Exp().serve(0.0, 0.0)
    1.0
    """

    def serve(self, f: float, m: float) -> float:
        """exp(f + m)."""
        return bounded_exp(f + m)

    def reach(self, f: float) -> float:
        """e^|f|."""
        return bounded_exp(abs(f))

    def tracked(self, f: float, y: float) -> float:
        """The label."""
        return y


@dataclass(frozen=True)
class Multiplicative:
    """served = f exp(m): corrects positive predictions by a factor, so that they stay positive.

    >>> Multiplicative().serve(20.0, 0.0)
    20.0
    """

    def serve(self, f: float, m: float) -> float:
        """f exp(m)."""
        return f * bounded_exp(m)

    def reach(self, f: float) -> float:
        """1: there is no offset."""
        return 1.0

    def tracked(self, f: float, y: float) -> float:
        """y - f."""
        return y - f


@dataclass(frozen=True)
class Sinh:
    """served = f + scale sinh(m): quantile tracking without a unit; eta means the same for cents and for millions.

    ``scale`` is any positive number known before the label (a running mean of |y - f|); m then tracks
    asinh((y - f) / scale), so a jump by a factor 500 costs 6.9 / eta rounds instead of 500 / eta.

    >>> Sinh().serve(3.0, 0.0, 2.0)
    3.0
    """

    def serve(self, f: float, m: float, scale: float) -> float:
        """f + scale sinh(m)."""
        return f + scale * bounded_sinh(m)

    def margin(self, x: float, f: float, scale: float) -> float:
        """asinh((x - f) / scale): the m at which x would be served."""
        return math.asinh((x - f) / scale)
