"""Links: how a margin m = z'theta turns a black-box prediction f into the served value.

Every link is increasing in m (strictly, except for the clipped ones), and at m = 0 serves f itself (for ``Logit``, f
clipped). ``Sigmoid`` and ``Exp`` predict from the margin alone; f is then an offset added to it.

Clipping changes no bound. The label lies inside the limits, so clipping multiplies the error by a factor between 0
and 1: a smaller step on the same loss.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from gradeq.inputs.arguments import take_float_between, take_range
from gradeq.numerics import bounded_exp, bounded_sinh, logit, sigmoid, within


class Link(Protocol):
    """Anything that serves f moved by the margin m."""

    def serve(self, f: float, m: float) -> float:
        """The value that the user sees."""

    def reach(self, f: float) -> float:
        """e^|offset|, the odds in the sum of bound C1; 1 for a link without an offset."""

    def tracked(self, f: float, y: float) -> float:
        """The value whose range an account records: y - f, or y itself where the link bounds errors."""


class _Moved:
    """A link without an offset; accounts record the range of y - f."""

    def reach(self, f: float) -> float:
        return 1.0

    def tracked(self, f: float, y: float) -> float:
        return y - f


class _Odds:
    """A link with the logit of f, clipped, as offset; the label lies between 0 and 1."""

    clip: float

    def reach(self, f: float) -> float:
        """The larger of the odds of f and of 1 - f, f clipped."""
        p = min(1.0 - self.clip, max(self.clip, f))
        return max(p / (1.0 - p), (1.0 - p) / p)

    def tracked(self, f: float, y: float) -> float:
        return y


class _Margin:
    """A link with f itself as offset of the margin."""

    def reach(self, f: float) -> float:
        return bounded_exp(abs(f))

    def tracked(self, f: float, y: float) -> float:
        return y


@dataclass(frozen=True)
class Identity(_Moved):
    """served = f + m: debiasing of real predictions, quantile tracking.

    >>> Identity().serve(3.0, 0.5)
    3.5
    """

    def serve(self, f: float, m: float) -> float:
        return f + m


@dataclass(frozen=True)
class Shift(_Moved):
    """served = f + 2 sigmoid(m) - 1: the paper's debiasing of probabilities; it may leave [0, 1].

    Paper: eq:logistic_loss_adj_pred, alg:simple-debias-logistic, with z'theta inside the sigmoid.

    >>> Shift().serve(0.3, 0.0)
    0.3
    """

    def serve(self, f: float, m: float) -> float:
        return f + (2.0 * sigmoid(m) - 1.0)


@dataclass(frozen=True)
class Logit(_Odds):
    """served = sigmoid(logit f + m): stays inside (0, 1), and only this link has a harm cap.

    f is clipped to [clip, 1 - clip] first.

    >>> Logit().serve(0.25, 0.0)
    0.25
    """

    clip: float = 1e-6

    def __post_init__(self) -> None:
        take_float_between(self, "clip", 0.0, 0.5)

    def serve(self, f: float, m: float) -> float:
        """sigmoid(logit f + m); exactly f clipped while m is 0."""
        p = min(1.0 - self.clip, max(self.clip, f))
        return sigmoid(logit(p) + m) if m != 0.0 else p


@dataclass(frozen=True)
class ClippedIdentity(_Moved):
    """served = f + m, clipped to [low, high]."""

    low: float
    high: float

    def serve(self, f: float, m: float) -> float:
        return within(f + m, self.low, self.high)


@dataclass(frozen=True)
class ClippedShift(_Moved):
    """served = f + 2 sigmoid(m) - 1, clipped to [low, high]."""

    low: float
    high: float

    def serve(self, f: float, m: float) -> float:
        return within(f + (2.0 * sigmoid(m) - 1.0), self.low, self.high)


@dataclass(frozen=True)
class ClippedLogit(_Odds):
    """served = sigmoid(logit f + m), clipped to [low, high]; f is clipped to [clip, 1 - clip] first."""

    clip: float
    low: float
    high: float

    def serve(self, f: float, m: float) -> float:
        p = min(1.0 - self.clip, max(self.clip, f))
        s = sigmoid(logit(p) + m) if m != 0.0 else p
        return within(s, self.low, self.high)


@dataclass(frozen=True)
class Sigmoid(_Margin):
    """served = low + (high - low) sigmoid(f + m): generalised logistic regression, Elo (f = 0).

    >>> Sigmoid().serve(0.0, 0.0)
    0.5
    """

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        take_range(self)

    def serve(self, f: float, m: float) -> float:
        return self.low + (self.high - self.low) * sigmoid(f + m)


@dataclass(frozen=True)
class Exp(_Margin):
    """served = exp(f + m): Poisson regression with log-rate offset f.

    >>> Exp().serve(0.0, 0.0)
    1.0
    """

    def serve(self, f: float, m: float) -> float:
        return bounded_exp(f + m)


@dataclass(frozen=True)
class Multiplicative(_Moved):
    """served = f exp(m): corrects positive predictions by a factor, so that they stay positive.

    >>> Multiplicative().serve(20.0, 0.0)
    20.0
    """

    def serve(self, f: float, m: float) -> float:
        return f * bounded_exp(m)


@dataclass(frozen=True)
class Sinh:
    """served = f + scale sinh(m): quantile tracking without a unit, so eta is the same for cents and for millions.

    ``scale`` is any positive number known before the label (a running mean of |y - f|); m then tracks
    asinh((y - f) / scale), so a jump by a factor 500 costs 6.9 / eta rounds instead of 500 / eta.

    >>> Sinh().serve(3.0, 0.0, 2.0)
    3.0
    """

    def serve(self, f: float, m: float, scale: float) -> float:
        return f + scale * bounded_sinh(m)

    def margin(self, x: float, f: float, scale: float) -> float:
        """asinh((x - f) / scale): the m at which x would be served."""
        return math.asinh((x - f) / scale)
