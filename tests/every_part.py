"""One or more of every loss, link, penalty, schedule and geometry, for laws that hold for all of them."""

import numpy as np

from gradeq.geometries import (
    Affine,
    Ball,
    Box,
    EntropicSimplex,
    Euclidean,
    Isotonic,
    NonNegative,
    Shrink,
    Simplex,
    SoftThreshold,
)
from gradeq.links import (
    ClippedIdentity,
    ClippedLogit,
    ClippedShift,
    Exp,
    Identity,
    Logit,
    Multiplicative,
    Shift,
    Sigmoid,
)
from gradeq.losses import Absolute, Expectile, Huber, Linear, Logistic, Poisson, Quantile, Squared
from gradeq.penalties import Lasso, Ridge
from gradeq.schedules import Called, Constant, Listed, Piecewise, Power

LOSSES = [
    Squared(),
    Absolute(),
    Quantile(0.8),
    Logistic(0.0, 1.0),
    Logistic(-1.0, 2.0),
    Poisson(),
    Huber(0.4),
    Expectile(0.7),
    Linear(),
]
# Links inside limits, each beside the same link without.
HELD_AND_FREE = [
    (ClippedIdentity(0.2, 0.8), Identity()),
    (ClippedShift(0.2, 0.8), Shift()),
    (ClippedLogit(1e-6, 0.2, 0.8), Logit()),
]
CLIPPED = [held for held, _ in HELD_AND_FREE]
# New ones at the end: tests take the first by place.
LINKS = [Identity(), Shift(), Logit(), Sigmoid(), Exp(), Multiplicative()]
PENALTIES = [Lasso(0.05), Ridge(0.2)]
EUCLIDEAN = [
    Euclidean(),
    Box(-0.5, 0.25),
    NonNegative(),
    Ball(0.4),
    Affine([[1.0, 1.0, 1.0], [1.0, -1.0, 0.0]], [0.5, 0.1]),
    Simplex(),
    Isotonic(),
]
PROXIMAL = [SoftThreshold(0.3), Shrink(0.5)]
ENTROPIC = [EntropicSimplex(0.05), EntropicSimplex(0.0)]
GEOMETRIES = [*EUCLIDEAN, *PROXIMAL, *ENTROPIC]
LAZY = [geometry for geometry in GEOMETRIES if geometry.lazy_is_sound]
SCHEDULES = [
    Constant(0.1),
    Power(0.3, 0.5),
    Piecewise((0.3, 0.05), (20,)),
    Listed(tuple(0.2 / (1 + k % 3) for k in range(400))),
    Called(lambda t: 0.3 / (1.0 + t) ** 0.25),
]


def columns(n: int, d: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Dense rows, labels in [0, 1] (some at the ends) and offsets inside (0, 1): fit for every part."""
    rng = np.random.default_rng(seed)
    labels = np.round(rng.random(n), 1)
    return rng.normal(size=(n, d)) * 0.7, labels, rng.uniform(0.1, 0.9, n)
