"""Values that somebody may give for an argument, most of them wrong, and what every maker takes that is right."""

import math
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd

import gradeq as gq
from gradeq import geometries
from laws.kinds import missed


class Silent:
    """An object that cannot even say what it is."""

    def __repr__(self):
        raise RuntimeError("no")


VALUES = [
    None, "x", "", "1", "auto", b"x", bytearray(b"1"), [], {}, (), set(), [1.0, 2.0], [None], ["a"], {"a": 1},
    [[1.0], [2.0, 3.0]], math.nan, math.inf, -math.inf, -1, -0.5, 0, 0.0, True, False, 10**400, -(10**400), 10**5000,
    5e-324, 1e300, np.array([]), np.zeros(1), np.zeros(3), np.zeros((2, 2)), np.array(0.3), np.array("1"),
    np.array(None, dtype=object), np.array(["x"]), np.array([1, None], dtype=object), Decimal("0.3"), Decimal("NaN"),
    Decimal("sNaN"), Decimal("Infinity"), Fraction(1, 3), Fraction(10**400, 1), 1j, object(), Silent(), type, len, gq,
    np.float64(0.3), np.float32("nan"), np.longdouble(0.3), np.int64(1), np.uint8(200), np.bool_(True), np.str_("x"),
    np.complex128(1), pd.NA, pd.NaT, pd.Series([1.0, 2.0]), pd.Series([0.3]), pd.DataFrame({"a": [1.0]}),
    pd.Timestamp("2024-01-01"), date(2024, 1, 1), datetime(2024, 1, 1), np.datetime64("2024-01-01"),
    np.datetime64("NaT"), np.timedelta64(5, "D"), timedelta(1), range(3), (x for x in ()), gq.Squared(),
    gq.Power(0.1, 0.5), gq.Ridge(0.1), gq.Debiaser, gq.Debiaser(0.1), lambda: 0,
]  # fmt: skip

# What makes each, and what each is made from besides the argument that is looked at.
MAKERS = {
    gq.Called: {"function": lambda t: 0.1},
    gq.Constant: {"eta": 0.1},
    gq.Power: {"eta": 0.1, "alpha": 0.5},
    gq.Piecewise: {"steps": (0.1, 0.2), "ends": (3,)},
    gq.Listed: {"steps": (0.1,) * 9},
    gq.Lasso: {"strength": 0.1},
    gq.Ridge: {"strength": 0.1},
    gq.Expectile: {"tilt": 0.3},
    gq.Huber: {"width": 1.0},
    gq.LogLoss: {},
    gq.Logistic: {},
    gq.Quantile: {"level": 0.5},
    gq.Logit: {},
    gq.Sigmoid: {},
    geometries.Affine: {"A": [[1.0, 1.0]], "b": [1.0]},
    geometries.Ball: {"radius": 1.0},
    geometries.Box: {"low": -2.0, "high": 5.0},
    geometries.EntropicSimplex: {},
    geometries.Shrink: {"strength": 0.1},
    geometries.SoftThreshold: {"strength": 0.1},
    gq.Conformal: {"score": "absolute", "coverage": 0.8},
    gq.Debiaser: {"eta": 0.1},
    gq.Elo: {"eta": 0.1},
    gq.IntervalTracker: {"coverage": 0.8, "eta": 0.1},
    gq.MultiQuantileTracker: {"levels": [0.1, 0.9]},
    gq.QuantileTracker: {"level": 0.9, "eta": 0.1},
    gq.QuantileEnsemble: {"level": 0.9, "etas": [0.1, 0.2], "ensemble_eta": 0.1},
    gq.RiskControl: {"error": missed, "target": 0.1, "eta": 0.1},
    gq.Keyed: {"layer": gq.Debiaser(0.1)},
    gq.Learner: {"loss": gq.Squared(), "schedule": 0.1},
}
# An option of the second needs another left out or given.
BESIDES = {
    ("Debiaser", "schedule"): {"eta": None},
    ("QuantileTracker", "schedule"): {"eta": None},
    ("IntervalTracker", "schedule"): {"eta": None},
    ("Elo", "schedule"): {"eta": None},
    ("Elo", "k"): {"eta": None},
    ("Elo", "home_step"): {"home_advantage": True},
    ("Debiaser", "clip"): {"outcome": "binary"},
    ("Learner", "lazy"): {"geometry": geometries.Box(-9.0, 9.0)},
}
# Under which other name a line may speak of an argument.
ALSO = {"schedule": ("eta",), "features": ("feature", "eta", "auto"), "A": ("Affine",), "b": ("Affine",)}
