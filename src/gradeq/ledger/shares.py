"""Shares of which only the ratios count, as two partitions of one stream join them: as products."""

from __future__ import annotations

from typing import Any

import numpy as np

VANISHING = 1e-250  # a product is scaled before one of its factors is rounded to nothing
FAINTEST = 1e-150  # of the largest, what every share keeps, so that none is lost for good


def product(one: Any, other: Any, start: Any) -> Any:
    """The shares of both, once those that both began with are counted; who has only begun changes no bit."""
    if (one == start).all() or (other == start).all():
        return other if (one == start).all() else one
    factors = other / start
    found = one * factors
    if found.min() < VANISHING:
        one, factors = one / one.max(), factors / factors.max()
        found = np.maximum(one, FAINTEST) * np.maximum(factors, FAINTEST)
        found = np.maximum(found / found.max(), FAINTEST)
    return found
