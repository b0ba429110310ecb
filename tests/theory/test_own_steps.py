"""Result 1.10: coordinates bounded by the steps of their own labels, attacked and attained."""

import math
from dataclasses import replace

import numpy as np
import pytest

from gradeq.theory import OwnSteps, Setting, best_bound, group_bounds, labels_until, spread_total


def sums(steps, errors):
    return np.sum(errors**2), len(steps), np.sum(steps), np.sum(steps**2)


def test_the_sum_of_no_sequence_is_larger_than_its_spread_allows():
    rng = np.random.default_rng(1)
    closest = 0.0
    for _ in range(3000):
        n = int(rng.integers(1, 40))
        steps = 10.0 ** rng.uniform(-3, 0, n) if rng.random() < 0.5 else rng.choice([0.1, 0.2], n)
        errors = rng.normal(size=n) if rng.random() < 0.5 else 1.0 / steps - rng.uniform(0, 9)
        z = rng.choice([0.0, 0.5, 1.0, 2.0], n) if rng.random() < 0.3 else np.ones(n)
        total, moved = abs(np.sum(errors * z)), abs(np.sum(steps * errors * z))
        bound = float(spread_total(moved, *sums(steps, errors), largest=float(z.max()) or 1.0))
        assert total <= bound * (1 + 1e-9)
        closest = max(closest, total / bound)
    assert closest > 0.99


@pytest.mark.parametrize(("low", "high"), [(0.1, 0.2), (0.01, 0.5)])
def test_two_steps_and_two_errors_attain_it_though_the_parameter_ends_where_it_began(low, high):
    """So no bound from these sums is smaller: what one group of steps adds, the other takes from the parameter."""
    steps = np.tile([low, high], 500)
    errors = np.tile([1.0, -low / high], 500)
    assert abs(np.sum(steps * errors)) < 1e-12
    bound = float(spread_total(0.0, *sums(steps, errors)))
    assert abs(np.sum(errors)) == pytest.approx(bound, rel=1e-6)


def test_one_constant_step_leaves_the_identity():
    n, eta, radius = 10**6, 0.01, 3.0
    bound = float(spread_total(radius, 4.0 * n, n, eta * n, eta * eta * n))
    assert radius / eta <= bound <= radius / eta + 1e-4 * n


def test_numbers_that_underflow_or_are_not_known_promise_nothing():
    for mass, squares in ((1e-170 * 5, 0.0), (math.inf, math.inf), (0.0, 0.0), (math.nan, 1.0)):
        assert not float(spread_total(1.0, 5.0, 5.0, mass, squares)) < 1e-3 / 5.0


def varied(task="mean", n=1000, **more):
    """A layer of two coordinates whose steps alternate between .001 and .0015."""
    steps = np.tile([0.001, 0.0015], n // 2)
    change = (n - 1) * (1 / 0.001 - 1 / 0.0015)
    ones = np.ones(2)
    own = OwnSteps(
        n * ones, 1000.0 * ones, 1 / 0.0015 * ones, change * ones, steps.sum() * ones,
        np.sum(steps**2) * ones, 0.25 * n * ones,
    )  # fmt: skip
    given = {
        "task": task, "structure": "overlapping", "n": n, "counts": (n, n), "low": -1.0, "high": 1.0, "size": 2.0,
        "eta": 0.001, "eta_last": 0.0015, "eta_max": 0.0015, "inverse_variation": change, "clip": 0.01,
        "step_mass": steps.sum(), "step_squares": np.sum(steps**2), "lateness": 50, "cap": 0.1, **more,
    }  # fmt: skip
    return Setting(**given), own


@pytest.mark.parametrize("task", ["mean", "quantile", "probability_logit", "probability_shift"])
def test_steps_that_alternate_cost_their_spread_and_not_their_changes(task):
    setting, own = varied(task)
    before, after = best_bound(setting), best_bound(replace(setting, own_steps=own))
    assert before.value > 100.0 * after.value and after.result == before.result
    assert any("1.10" in said for said in after.assumptions)
    assert [b.value for b in group_bounds(replace(setting, own_steps=own))] == [after.value] * 2


def test_weights_other_than_one_and_penalties_leave_the_spread_out():
    setting, own = varied()
    for more in ({"weight_sum": 999.0}, {"weight_max": 2.0, "heaviest_step": 0.002}):
        with_own = best_bound(replace(setting, own_steps=own, **more)).value
        assert with_own == best_bound(replace(setting, **more)).value
    penalised = replace(setting, penalty="ridge", strength=0.1)
    assert best_bound(replace(penalised, own_steps=own)) == best_bound(penalised)


def test_a_coordinate_pays_for_the_changes_of_its_own_labels_only():
    setting, own = varied()
    calm = own._replace(
        variation=np.array([0.0, own.variation[1]]), mass=np.full(2, math.inf), squares=np.full(2, math.inf)
    )
    first, second = group_bounds(replace(setting, own_steps=calm))
    assert first.value < second.value / 100.0 and second.value == best_bound(setting).value


def test_labels_until_looks_ahead_with_the_spread():
    setting, own = varied()
    setting = replace(setting, own_steps=own)
    floor = 0.5 * math.sqrt(0.25) * 0.2  # the spread itself does not vanish
    now = best_bound(setting).value
    needed = labels_until(setting, now / 2)
    assert needed is not None and needed > setting.n
    assert labels_until(setting, floor) is None


def test_steps_in_any_unit_have_the_same_bound():
    setting, own = varied("quantile")
    tiny = 1e-120
    small = replace(
        setting, eta=setting.eta * tiny, eta_last=setting.eta_last * tiny, eta_max=setting.eta_max * tiny,
        inverse_variation=setting.inverse_variation / tiny, step_mass=setting.step_mass * tiny,
        step_squares=setting.step_squares * tiny * tiny, low=-tiny, high=tiny, cap=0.1 * tiny,
        own_steps=own.in_unit(1.0 / tiny),
    )  # fmt: skip
    plain = best_bound(replace(setting, own_steps=own)).value
    assert best_bound(small).value == pytest.approx(plain, rel=1e-9)
