"""The lateness rule of the product as a plain loop, and players who know it: no run leaves what is proven.

The step of a label is decided when it is posted. Players choose which labels to hold, in which order to post
them, what they say (after seeing everything), how much they weigh, and which never come. Epochs of one label
forget a lateness peak at once, which is harder than the product's.
"""

import random
from dataclasses import replace

import pytest

from gradeq.theory import Setting, age_mass, best_bound, group_bounds, harm_cap, late_squared_radius
from theory.adversaries import SLACK
from theory.games import Peaks
from theory.posting import Layer, Plan


def reach(setting: Setting) -> tuple[float, float, float]:
    """What the bound rests on: the radius of the last state, the distance to it on the way, the farthest point."""
    top, varied = setting.top_eta, {"inverse_variation": 1e9, "own_steps": None}
    settings = (
        replace(setting, eta=top, inverse_variation=0.0),
        replace(setting, eta=top, eta_last=None, eta_max=top, **varied),
        replace(setting, eta=top, **varied),
    )
    still, apart, moving = (best_bound(own).value for own in settings)
    assert still is not None and apart is not None and moving is not None
    return still * setting.n * top, apart * setting.n / 1e9, moving * setting.n / 1e9


def check(plan: Plan, rng: random.Random) -> tuple[int, float]:
    """Play, compare with what is proven; how many bounds there were and how much of them was used."""
    layer = Layer(plan, rng)
    layer.run()
    proven, used = 0, 0.0
    for setting, coordinates in layer.checks():
        bound = best_bound(setting)
        if bound.value is None:
            assert bound.result == "no theorem fits" and bound.reason
            continue
        proven += 1
        radius, diameter, farthest = reach(setting)
        own_bounds = group_bounds(setting) if setting.own_steps is not None else ()
        for j in coordinates:
            path = layer.path[j]
            average = abs(layer.total[j]) / setting.n
            assert average <= bound.value * SLACK + 1e-12, (plan, setting, bound)
            assert abs(path[-1]) <= radius * SLACK + 1e-12, (plan, setting, bound)
            apart, far = max(abs(x - path[-1]) for x in path), max(map(abs, path))
            assert apart <= diameter * (SLACK + 1e-6) + 1e-12, (plan, setting, bound)
            assert far <= farthest * (SLACK + 1e-6) + 1e-12, (plan, setting, bound)
            if setting.latest >= 3:
                used = max(used, abs(path[-1]) / radius, apart / diameter, far / farthest)
            if own_bounds and own_bounds[j].value is not None:
                own = abs(layer.total[j]) / setting.counts[j]
                assert own <= own_bounds[j].value * SLACK + 1e-12, (plan, setting, own_bounds[j])
    return proven, used


def random_plan(task: str, shape: str, rng: random.Random) -> Plan:
    low, high = {
        "mean": rng.choice(((-1.0, 1.0), (-3.0, 0.5), (0.5, 2.0))),
        "quantile": rng.choice(((-1.0, 1.0), (-0.2, 3.0))),
        "probability_shift": rng.choice(((-1.0, 1.0), (-0.9, 0.7))),
    }.get(task, (0.0, 1.0))
    plan = Plan(task, shape, low=low, high=high)
    plan.rounds = rng.choice((12, 30, 60))
    plan.hold = rng.choice((1, 2, 4, 9))
    plan.release = rng.choice(("pump", "pump", "leaky", "batch", "trickle"))
    plan.order = rng.choice(("newest", "newest", "oldest", "random"))
    plan.labels = rng.choice(("cycle", "cycle", "outward", "against", "up", "coin", "inside"))
    plan.rows = rng.choice(("random", "steady"))
    plan.weights = rng.choice(("unit", "unit", "wild", "flush"))
    plan.lost = rng.choice((0.0, 0.0, 0.2))
    plan.level = rng.choice((0.1, 0.5, 0.9))
    plan.clip = rng.choice((0.2, 0.01))
    plan.epoch, plan.growth = rng.choice(((1.0, 0.0), (1.0, 0.0), (3.0, 0.0), (50.0, 50.0)))
    plan.cap = rng.choice((0.05, 0.2, 0.6, 2.0, None))
    plan.eta = rng.choice((0.02, 0.1, 0.4, 1.0))
    plan.size = {"overlapping": rng.choice((2.0, 3.0)), "features": rng.choice((0.5, 4.0))}.get(shape, 1.0)
    if task == "mean":
        heavy = 2.5 if plan.weights == "wild" else 1.0
        plan.eta = rng.choice((0.01, 0.05, 0.2, 0.5, 1.0)) / (heavy * max(plan.size, 1.0))
        plan.cap = rng.choice((0.05, 0.2, 0.4, None))
        if plan.cap is None:
            plan.eta *= 0.2
    return plan


CELLS = [
    (task, shape)
    for task in ("mean", "quantile", "probability_logit", "probability_shift")
    for shape in ("scalar", "disjoint", "overlapping", "features")
] + [("elo", "elo"), ("quantile", "levels")]


@pytest.mark.parametrize(("task", "shape"), CELLS)
def test_no_player_who_knows_the_rule_exceeds_the_bound(task: str, shape: str) -> None:
    rng = random.Random(f"{task} {shape}")
    proven, used = 0, 0.0
    for _ in range(500):
        more, most = check(random_plan(task, shape, rng), rng)
        proven, used = proven + more, max(used, most)
    assert proven >= 350
    assert used > 0.35  # the players are strong enough to see a bound that is a third as large


@pytest.mark.parametrize(
    ("task", "shape"),
    [(t, s) for t in ("mean", "quantile") for s in ("scalar", "disjoint", "overlapping", "features")]
    + [("elo", "elo")],
)
def test_one_constant_step_costs_no_more_than_its_cap(task: str, shape: str) -> None:
    rng = random.Random(f"harm {task} {shape}")
    proven, used = 0, 0.0
    for _ in range(150):
        plan = random_plan(task, shape, rng)
        plan.cap, plan.weights, plan.eta = None, "unit", rng.choice((0.002, 0.01, 0.05, 0.2))
        layer = Layer(plan, rng)
        layer.run()
        if not layer.layer.n:
            continue
        structure = {"elo": "features"}.get(shape, shape)
        cap = harm_cap(layer.layer.setting(plan, structure, plan.size))
        served, raw = (sum(column) for column in zip(*layer.losses, strict=True))
        if cap.factor is not None:
            assert served <= cap.factor * raw * SLACK
            used = max(used, (served - raw) / ((cap.factor - 1.0) * raw))
        elif cap.added is not None:
            rise = (served - raw) / layer.layer.n
            assert rise <= cap.added * SLACK + 1e-12
            used = max(used, rise / cap.added)
        proven += cap.result != "no theorem fits"
    assert proven >= 60 and used > 0.1


def pump(cap: float, latest: int, cycles: int, flush: bool) -> float:
    """Hold latest - 1 tickets, let one label at once turn the state around, release: the farthest state.

    With ``flush`` labels of tiny weight end the product's epochs first, so that the peak is forgotten.
    """
    theta, farthest = 0.0, 0.0
    peaks = Peaks(1) if flush else Peaks(1, 1.0, 0.0)
    for cycle in range(cycles):
        y = 1.0 if cycle % 2 else -1.0
        while flush and peaks.peak[0] > 1:
            opened = peaks.serve((0,))
            peaks.post((0,), opened)
            theta -= 1e-12 * peaks.step((0,), 1.0, cap, 1e-12) * (theta - y)
        waiting = [(theta, peaks.serve((0,))) for _ in range(latest)]
        while waiting:
            served, opened = waiting.pop()
            assert peaks.post((0,), opened) <= latest
            theta -= peaks.step((0,), 1.0, cap, 1.0) * (served - y)
            farthest = max(farthest, abs(theta))
    return farthest


@pytest.mark.parametrize("flush", [False, True])
@pytest.mark.parametrize(("cap", "latest"), [(0.2, 8), (0.5, 4), (0.4, 9)])
def test_the_radius_of_a_mean_is_attained(cap: float, latest: int, flush: bool) -> None:
    stale = age_mass(1.0, cap, latest)
    radius = late_squared_radius(0.0, 1.0, 1.0 + stale, stale)
    farthest = pump(cap, latest, 14 if flush else 60, flush)
    assert (0.8 if flush else 0.99) * radius <= farthest <= radius * SLACK


def test_beyond_a_stale_mass_of_one_a_run_diverges_and_nothing_is_promised() -> None:
    cap, latest = 0.9, 9
    assert age_mass(1.0, cap, latest) > 1.0
    assert pump(cap, latest, 40, flush=False) > 1e6
    setting = Setting(n=100, low=-1.0, high=1.0, eta=1.0, lateness=latest, cap=cap)
    bound = best_bound(replace(setting, inverse_variation=10.0))
    assert bound.value is None and "too late" in bound.reason


def test_the_rule_is_the_one_of_the_product() -> None:
    peaks = Peaks(2)
    first, second = peaks.serve((0, 1)), peaks.serve((0,))
    assert peaks.post((0,), second) == 1 and peaks.step((0,), 0.5, 0.1, 1.0) == 0.5
    assert peaks.post((0, 1), first) == 2 and peaks.peak == [2, 1]
    assert peaks.step((0, 1), 0.5, 0.3, 2.0) == pytest.approx(0.05)
    for _ in range(48):
        peaks.post((0,), peaks.serve((0,)))
    assert peaks.peak[0] == 2 and peaks.length[0] == 100.0
    for _ in range(100):
        peaks.post((0,), peaks.serve((0,)))
    assert peaks.peak[0] == 1 and peaks.length[0] == 150.0
