"""Isotonic recalibration: Zadrozny and Elkan, "Transforming classifier scores into accurate multiclass probability
estimates" (2002). The increasing function of the prediction that is closest to the labels, by scikit-learn.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def isotonic(f: Any, y: Any) -> Callable[[Any], Any]:
    """The fit; beyond the predictions seen it is constant."""
    from sklearn.isotonic import IsotonicRegression

    return IsotonicRegression(out_of_bounds="clip").fit(f, y).predict
