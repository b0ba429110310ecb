"""Many groups: what the search for the worst rests on, and that it finds the worst."""

import numpy as np
import pytest

from gradeq.theory import Setting
from gradeq.theory.best import best_bound, trivial_error
from gradeq.theory.setting import ORDERED, Groups

TASKS = (*ORDERED, "levels")  # of quantiles
LEVELS = (0.1, 0.5, 0.9)


def drawn(rng, task: str, late: bool, coarse: bool = False) -> np.ndarray:
    """Facts of a group: -low, high, n, weight, half the squares, odds, lateness, 1/eta_1, variation."""
    low, high = np.sort(rng.normal(size=2)) * 10.0 ** rng.uniform(-2, 2)
    if task not in ("mean", "quantile", "levels"):
        low, high = np.sort(rng.random(2)) if rng.random() < 0.7 else (0.0, 1.0)
    n = float(rng.integers(0, 1000))
    facts = np.array([
        -low, high, n, n * rng.uniform(0.1, 3.0), n * max(low**2, high**2) * rng.random(),
        n * np.exp(rng.uniform(0, 5)), rng.integers(2, 50) if late else 1.0, rng.uniform(1, 5), rng.exponential(),
    ])  # fmt: skip
    return np.round(facts) if coarse else facts


def making(task: str, eta: float, cap: float | None, squares: bool, varied: bool):
    """How a setting is made of a row of facts."""

    def make(row: list[float]) -> Setting:
        low, high, n, weight, half, odds, late, inverse, variation = row
        given = {"task": task, "cap": cap, "low": -low, "high": high, "n": n, "weight_sum": weight}
        given |= {"lateness": int(late), "eta": eta, "weight_max": 3.0, "level": 0.8}
        if task == "levels":
            given |= {"task": "quantile", "structure": "isotonic", "levels": LEVELS}
            given |= {"lows": (-low, -0.5 * low, -2.0 * low), "highs": (0.5 * high, high, 2.0 * high)}
            given["gaps"] = (variation, odds / 1000.0)
        elif task == "quantile":
            given["zero_scale_rounds"] = odds // 1000.0 if squares else 0.0
        else:
            given |= {"square_sum": 2.0 * half if squares else None, "odds_sum": odds}
        if task == "probability_logit":
            given |= {"label_low": max(0.0, -low), "label_high": min(1.0, high), "clip": 1e-3}
        if varied:
            given |= {"eta": eta / max(inverse, 1.0), "eta_max": eta, "eta_min": eta / 9.0}
            given["inverse_variation"] = variation / eta
        return Setting(**given)

    return make


def kinds(task: str, rows: np.ndarray) -> np.ndarray:
    """Which groups are compared apart."""
    return 2 * ((task == "poisson") & (rows[:, 0] >= 0.0)) + (rows[:, 6] >= 2.0)


def cases(seed: int, count: int, task: str):
    """Ways to make settings, and a generator."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        cap = (None, 0.1, 0.5, 1.0)[rng.integers(4)]
        eta, flags = 10.0 ** rng.uniform(-4, 0.4), rng.random(3) < 0.5
        yield rng, bool(flags[0]), making(task, eta, cap, bool(flags[1]), bool(flags[2]))


@pytest.mark.parametrize("task", TASKS)
def test_no_group_is_bounded_by_less_when_a_fact_grows(task):
    for rng, late, make in cases(1, 500, task):
        few, other = drawn(rng, task, late), drawn(rng, task, late)
        if rng.random() < 0.5:
            other[np.arange(9) != rng.integers(9)] = -np.inf
        if len(set(kinds(task, np.array([few, np.maximum(few, other)])))) > 1:
            continue
        one, wider = (make(row.tolist()) for row in (few, np.maximum(few, other)))
        totals = [best_bound(own).value for own in (one, wider)]
        if one.n and totals[1] is not None:
            assert totals[0] is not None
            assert totals[0] * one.weights <= totals[1] * wider.weights * (1.0 + 1e-12)
        assert trivial_error(one) <= trivial_error(wider)


@pytest.mark.parametrize("task", TASKS)
def test_the_worst_of_many_groups_is_the_worst_of_all(task):
    for rng, late, make in cases(2, 12, task):
        coarse = bool(rng.random() < 0.5)
        rows = np.array([drawn(rng, task, late and k % 3 > 0, coarse) for k in range(60)])
        groups = Groups(rows, kinds(task, rows), make)
        given = {"task": groups.widest.task, "structure": "disjoint", "low": 0.1}
        given |= {"n": rows[:, 2].sum(), "levels": groups.widest.levels}
        many, each = (Setting(groups=own, **given) for own in (groups, tuple(groups)))
        assert best_bound(many) == best_bound(each)
        assert (many.latest, many.constant) == (each.latest, each.constant)
