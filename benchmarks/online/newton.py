"""Online regression of the label on the prediction, all labels so far, renewed at every row.

Probabilities: online Platt scaling, Gupta and Ramdas, "Online Platt scaling with calibeating" (2023), by the online
Newton step with their constants, without calibeating:

    served = sigmoid(a logit(p) + b),    A <- A + g g',    (a, b) <- (a, b) - A^-1 g / gamma

g is the slope of the log loss. It begins at (1, 0) with A = I / gamma^2, gamma = 0.1, and (a, b) is kept in the disc
of radius 100 by the projection in the norm of A.

Numbers: recursive least squares, the same idea for the squared error: label - prediction on 1 and the prediction.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.online.platt import logit

GAMMA, RADIUS = 0.1, 100.0
LITTLE = 0.01  # of the identity, so that the first squares can be solved for


def online_platt(p: Any, y: Any) -> Any:
    """The probabilities that are served."""
    a, b, found = 1.0, 0.0, []
    aa, ab, bb = GAMMA**-2, 0.0, GAMMA**-2
    for x, label in zip(logit(p).tolist(), y.tolist(), strict=True):
        served = 0.5 * (1.0 + math.tanh(0.5 * (a * x + b)))
        found.append(served)
        error = served - label
        ga, gb = error * x, error
        aa, ab, bb = aa + ga * ga, ab + ga * gb, bb + gb * gb
        size = GAMMA * (aa * bb - ab * ab)
        a, b = a - (bb * ga - ab * gb) / size, b - (aa * gb - ab * ga) / size
        if a * a + b * b > RADIUS * RADIUS:
            a, b = projected(np.array([[aa, ab], [ab, bb]]), np.array([a, b]))
    return np.array(found)


def projected(norm: Any, point: Any) -> tuple[float, float]:
    """The point of the disc that is closest in this norm: (A + k I)^-1 A point, k such that it lies on the edge."""
    eigen, axes = np.linalg.eigh(norm)
    pull = eigen * (axes.T @ point)
    low, high = 0.0, float(np.linalg.norm(pull)) / RADIUS
    for _ in range(200):
        middle = 0.5 * (low + high)
        outside = np.linalg.norm(pull / (eigen + middle)) > RADIUS
        low, high = (middle, high) if outside else (low, middle)
    a, b = axes @ (pull / (eigen + high))
    return float(a), float(b)


def least_squares(f: Any, y: Any) -> Any:
    """The numbers that are served: prediction plus what its regression on all earlier rows says of the residual."""
    x = np.column_stack([np.ones(len(f)), f])
    squares = np.cumsum(x[:, :, None] * x[:, None, :], axis=0)
    products = np.cumsum(x * (y - f)[:, None], axis=0)
    weights = np.linalg.solve(LITTLE * np.eye(2) + squares[:-1], products[:-1, :, None])[..., 0]
    return f + np.concatenate([[0.0], np.sum(x[1:] * weights, axis=1)])
