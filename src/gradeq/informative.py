"""Whether a proven bound says anything about the data at hand: one rule for layers, groups, keys, levels and players.

A bound is informative when it is below the raw error: the |mean error| of the raw prediction or, where that is below
one standard error, that standard error; for coverage and win rates the distance of the raw rate from its target, at
least 0.05. Of a model that was always right it is 1e-9 of the largest value: a bound below that is rounding.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradeq.kernels.account import (
    BEFORE,
    COLUMNS,
    HIGH,
    LOSS_BEFORE,
    LOW,
    ROUND,
    ROWS,
    WEIGHT,
)

LEAST_RATE = 0.05  # of a coverage or win rate: to know it less well than that is to know little
NEGLIGIBLE = 1e-9  # of the largest value
MANY = 50  # parameters; of more the labels needed follow from the usual rate, 1/n


def is_vacuous(bound: float | None, raw: float) -> bool | None:
    """Whether a bound says no more than the raw error does; None where there is no bound.

    >>> is_vacuous(0.01, 0.2), is_vacuous(264.0, 1.6), is_vacuous(None, 1.6)
    (False, True, None)
    """
    return None if bound is None else bound != 0.0 and not bound < raw


def rate_error(off: Any) -> Any:
    """The raw error of a coverage or win rate that is so far off its target."""
    return np.maximum(np.abs(off), LEAST_RATE)


def mean_error(mean: Any, square_mean: Any, rows: Any) -> Any:
    """The raw |mean error|, or its standard error where that is larger.

    >>> float(mean_error(-0.5, 1.0, 100)), float(mean_error(0.0, 1.0, 100))
    (0.5, 0.1)
    """
    with np.errstate(over="ignore", invalid="ignore"):
        error = np.sqrt(np.maximum(square_mean - mean * mean, 0.0) / np.maximum(rows, 1.0))
    return np.fmax(np.abs(mean), error)


def raw_errors(reading: Any, accounts: Any) -> Any:
    """The raw error of each account (rows of a table, or flat)."""
    table = np.asarray(accounts, dtype=float).reshape(-1, COLUMNS)
    weight = np.where(table[:, WEIGHT] > 0.0, table[:, WEIGHT], math.inf)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = table[:, BEFORE] / weight
        if reading.of_rates:
            return rate_error(mean)
        squares = reading.terms.loss_scale * table[:, LOSS_BEFORE] / weight
        errors = mean_error(mean, squares, table[:, ROWS])
    return errors if errors.all() else np.maximum(errors, least_error(reading))


def least_error(reading: Any) -> float:
    """What the error of a model that was always right counts as; 0 for any other.

    The range of its residuals is what rounding may hide of them, which says how large its values are; with link exp
    errors are relative.
    """
    task, totals = reading.terms.task, [reading.total(k) for k in range(reading.width)]
    if task not in ("mean", "poisson") or any(own[BEFORE] or own[LOSS_BEFORE] for own in totals):
        return 0.0
    if task == "poisson":
        return NEGLIGIBLE
    return NEGLIGIBLE / ROUND * float(max(max(-own[LOW], own[HIGH], 0.0) for own in totals))


def raw_error_of_all(reading: Any) -> float:
    """What the bound on the largest coordinate is held against: the largest raw error, all over all rows."""
    totals = [reading.total(k) for k in range(reading.width)]
    whole = totals[0][WEIGHT]
    if not whole:
        return 0.0
    every = np.asarray(reading.state.sums, dtype=float).reshape(-1, COLUMNS)
    shares = raw_errors(reading, every) * (every[:, WEIGHT] / whole)
    most = float(shares.max(initial=0.0))
    if reading.of_players:
        return most
    return max(most, float(np.max(raw_errors(reading, totals))))


def no_guarantee(needed: int | None, noun: str = "label") -> str:
    """What is said in place of a bound that is vacuous; ``needed``: labels in all until it is not, None if never.

    >>> no_guarantee(12_345)
    'no worst-case guarantee yet; it needs about 13,000 labels'
    >>> no_guarantee(None)
    'no worst-case guarantee: more labels would not bring one'
    """
    if needed is None:
        return f"no worst-case guarantee: more {noun}s would not bring one"
    if needed > 10**9:
        return f"no worst-case guarantee yet; it needs more than a billion {noun}s"
    unit = 10 ** max(0, len(str(needed)) - 2)
    return f"no worst-case guarantee yet; it needs about {-(-needed // unit) * unit:,} {noun}s"
