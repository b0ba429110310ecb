"""Platt scaling: Platt, "Probabilistic outputs for support vector machines" (1999), on the logit of a probability.

    served = sigmoid(a logit(p) + b), by maximum likelihood with his targets (n + 1) / (n + 2) and 1 / (n + 2), which
    keep the fit finite where all labels are equal

For numbers the same idea is least squares of the label on a prediction + b (Mincer and Zarnowitz, 1969).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

LEAST = 0.01  # probabilities are kept this far from 0 and 1 before their logit is taken
STEPS, CLOSE = 50, 1e-10


def platt(p: Any, y: Any) -> Callable[[Any], Any]:
    """The fit for probabilities."""
    wins = float(np.sum(y))
    target = np.where(y > 0.5, (wins + 1.0) / (wins + 2.0), 1.0 / (len(y) - wins + 2.0))
    x = np.column_stack([logit(p), np.ones(len(p))])
    weights = np.array([1.0, 0.0])
    for _ in range(STEPS):
        served = sigmoid(x @ weights)
        slope = x.T @ (served - target)
        bend = (x * (served * (1.0 - served))[:, None]).T @ x + 1e-9 * np.eye(2)
        step = np.linalg.solve(bend, slope)
        weights = weights - step * min(1.0, 5.0 / np.abs(step).max(initial=1e-300))
        if np.abs(step).max() < CLOSE:
            break
    return lambda new: sigmoid(weights[0] * logit(new) + weights[1])


def line(f: Any, y: Any) -> Callable[[Any], Any]:
    """The fit for numbers; where predictions do not vary, their mean residual."""
    away = f - f.mean()
    spread = float(away @ away)
    slope = float(away @ y) / spread if spread > 1e-12 * max(1.0, float(f @ f)) else 1.0
    return lambda new: y.mean() + slope * (new - f.mean())


def logit(p: Any) -> Any:
    """The log-odds of probabilities, kept off 0 and 1."""
    kept = np.clip(p, LEAST, 1.0 - LEAST)
    return np.log(kept / (1.0 - kept))


def sigmoid(x: Any) -> Any:
    """The probability of log-odds, without overflow."""
    return 0.5 * (1.0 + np.tanh(0.5 * x))
