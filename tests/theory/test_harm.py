"""What a step can cost: caps that hold for every sequence and are attained, and what no rule can escape."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradeq.numerics import log1pexp, sigmoid
from gradeq.theory import (
    HARD_LABEL_RATIO,
    Setting,
    constant_step_product,
    convex_harm,
    harm_cap,
    late_convex_harm,
    late_squared_harm_factor,
    least_excess,
    log_loss_harm_factor,
    pinball_harm,
    squared_harm_factor,
    squared_oracle_total,
    step_from_budget,
    uncertainty_product,
)
from theory.adversaries import SLACK, Game, play

seeds = st.integers(0, 10**6)


@given(st.floats(0.01, 0.99), seeds)
def test_the_squared_error_never_rises_beyond_its_cap(eta: float, seed: int) -> None:
    rng, theta = random.Random(seed), [0.0, 0.0]
    served, base, best = 0.0, 0.0, [0.0] * 3
    rivals = [[rng.gauss(0, 1), rng.gauss(0, 1)] for _ in range(3)]
    for _ in range(120):
        angle = rng.choice((0.0, 1.0, rng.uniform(0, 6.28)))
        z = (math.cos(angle), math.sin(angle))
        m = z[0] * theta[0] + z[1] * theta[1]
        r = rng.choice((rng.gauss(0, 1) ** 5, -m / (1 - eta), 1.0, -1.0))
        r = max(-1e6, min(1e6, r))
        e = m - r
        served, base = served + e * e, base + r * r
        for k, u in enumerate(rivals):
            best[k] += (z[0] * u[0] + z[1] * u[1] - r) ** 2
        theta = [a - eta * e * b for a, b in zip(theta, z, strict=True)]
    assert served <= base * squared_harm_factor(eta) * SLACK + 1e-9
    for total, u in zip(best, rivals, strict=True):
        assert served <= squared_oracle_total(total, u[0] ** 2 + u[1] ** 2, eta) * SLACK + 1e-9


@pytest.mark.parametrize(("eta", "share"), [(0.001, 0.99), (0.01, 0.98), (0.1, 0.9)])
def test_the_squared_cap_is_attained_by_alternating_residuals(eta: float, share: float) -> None:
    theta, served, base = 0.0, 0.0, 0.0
    for t in range(2):
        r = 1.0 if t % 2 else -1.0
        served, base = served + (theta - r) ** 2, base + r * r
        theta -= eta * (theta - r)
    cap = squared_harm_factor(eta)
    assert share * (cap - 1.0) <= served / base - 1.0 <= (cap - 1.0) * SLACK


@given(st.floats(0.0001, 3.0))
def test_a_budget_gives_the_step_that_keeps_it(budget: float) -> None:
    eta = step_from_budget(budget, 2.0)
    assert squared_harm_factor(eta, 2.0) == pytest.approx(1.0 + budget)


@given(st.floats(0.01, 2.0), st.floats(0.05, 0.95), seeds)
def test_the_pinball_loss_never_rises_beyond_its_cap(eta: float, level: float, seed: int) -> None:
    rng, theta, excess, squares = random.Random(seed), 0.0, 0.0, 0.0

    def pinball(u: float, y: float) -> float:
        return max(level * (y - u), (level - 1) * (y - u))

    for t in range(1, 121):
        y = rng.choice((rng.gauss(0, 1), 1e-9, -1e-9, theta + 1e-9, theta))
        g = (y <= theta) - level
        excess += pinball(theta, y) - pinball(0.0, y)
        squares += g * g
        theta -= eta * g
        assert excess <= convex_harm(eta, squares) * SLACK + 1e-9
        assert excess / t <= pinball_harm(eta, level) * SLACK + 1e-9


@given(st.floats(0.01, 4.0), seeds)
def test_the_log_loss_never_rises_beyond_its_cap(eta: float, seed: int) -> None:
    rng, theta, served, base, brier = random.Random(seed), 0.0, 0.0, 0.0, 0.0

    def log_loss(u: float, y: float) -> float:
        return log1pexp(-u) if y == 1.0 else log1pexp(u)

    for _ in range(120):
        o = rng.uniform(-3, 3)
        y = rng.choice((0.0, 1.0, float(theta < 0)))
        e = sigmoid(o + theta) - y
        served, base, brier = served + log_loss(o + theta, y), base + log_loss(o, y), brier + e * e
        theta -= eta * e
        assert served - base <= convex_harm(eta, brier) * SLACK + 1e-9
        assert served <= base * log_loss_harm_factor(eta) * SLACK + 1e-9


def test_the_convex_cap_is_attained() -> None:
    eta, level, theta, excess, squares = 0.1, 0.5, 0.0, 0.0, 0.0
    for _ in range(1000):
        y = 0.0 if theta > 0 else 1e-12
        g = (y <= theta) - level
        excess += 0.5 * abs(y - theta) - 0.5 * abs(y)
        squares += g * g
        theta -= eta * g
    assert excess / convex_harm(eta, squares) > 0.99


def test_the_constant_of_the_log_loss_cap_is_the_smallest() -> None:
    worst = max((1 - p) ** 2 / -math.log(p) for p in (k / 100_000 for k in range(1, 100_000)))
    assert worst <= HARD_LABEL_RATIO < worst + 1e-5
    assert log_loss_harm_factor(10.0) == math.inf


@pytest.mark.parametrize("release", ["fifo", "random", "newest", "burst"])
def test_late_labels_keep_their_larger_caps(release: str) -> None:
    rng = random.Random(2)
    for labels in ("heavy", "extreme", "alternate", "swing", "up"):
        for hold in (1, 4):
            eta = 0.3 / (2 * hold + 3)
            game = Game(release=release, hold=hold, eta=eta, labels=labels, low=-5, high=20)
            played = play(game, rng)
            factor = late_squared_harm_factor(eta, played.delay)
            served = sum(e * e for e in played.errors)
            assert served <= played.square_sum * factor * SLACK
            game = Game(task="quantile", release=release, hold=hold, eta=0.3, labels=labels)
            played = play(game, rng)
            excess = sum(0.5 * abs(y - u) - 0.5 * abs(y) for u, y in zip(played.margins, played.targets, strict=True))
            assert excess / played.n <= late_convex_harm(0.3, 0.5, played.most_open) * SLACK
            assert played.most_open <= played.delay + 1 == played.lateness
    assert late_squared_harm_factor(0.5, 3) == math.inf


def test_bias_and_excess_loss_cannot_both_be_small() -> None:
    for eta in (0.05, 0.2):
        products = []
        for seed in range(4):
            rng, theta, cumulative, excess, squares, n = (random.Random(seed), 0.0, 0.0, 0.0, 0.0, 20_000)
            for _ in range(n):
                squares += cumulative**2
                r = rng.choice((-1.0, 1.0))
                excess += theta**2
                cumulative += theta - r
                theta -= eta * (theta - r)
            products.append(excess / n * squares / n)
        mean = sum(products) / len(products)
        assert mean == pytest.approx(constant_step_product(1.0, eta), rel=0.1)
        assert mean >= uncertainty_product(1.0) * 0.95
    assert least_excess(1.0, 10.0, 1e9) == pytest.approx(1 / 400, rel=1e-3)
    assert uncertainty_product(1.0, 5.0, 1.0) == 0.0


def test_the_cap_of_a_layer_is_a_sentence() -> None:
    cap = harm_cap(Setting(task="mean", eta=step_from_budget(0.01)))
    assert cap.sentence == "this step can raise the squared error by at most 1 %, whatever the data"
    assert cap.factor == pytest.approx(1.01) and cap.result == "B1"
    assert harm_cap(Setting(task="mean", eta=0.01, size=4.0)).factor == pytest.approx(1 / 0.96)
    assert harm_cap(Setting(task="quantile", level=0.9, eta=0.1)).added == pytest.approx(0.0405)
    assert harm_cap(Setting(task="probability_logit", eta=0.03)).result == "C4"
    soft = Setting(task="probability_logit", eta=0.03, label_low=0.1, label_high=0.9)
    assert harm_cap(soft).added == pytest.approx(0.015)
    assert harm_cap(Setting(task="elo", eta=0.1)).result == "B2"
    late = harm_cap(Setting(task="mean", eta=0.01, lateness=5))
    assert late.factor == pytest.approx(1 / 0.91) and late.result == "A6"
    late = harm_cap(Setting(task="quantile", level=0.5, eta=0.1, lateness=3))
    assert late.added == pytest.approx(0.0625)
    late = harm_cap(Setting(task="elo", eta=0.1, lateness=3, cap=1.0))
    assert late.added == pytest.approx(0.5) and late.result == "A6"


@pytest.mark.parametrize(
    "setting",
    [
        Setting(task="mean", eta=0.01, eta_last=0.001),
        Setting(task="mean", eta=0.01, penalty="ridge", strength=0.1),
        Setting(task="mean", eta=1.5),
        Setting(task="mean", eta=0.01, lateness=100),
        Setting(task="mean", eta=0.01, lateness=4, weight_max=2.0),
        Setting(task="mean", eta=0.01, lateness=40, cap=0.1),
        Setting(task="mean", eta=0.01, lateness=4, inverse_variation=1.0),
        Setting(task="elo", eta=0.01, lateness=2, home=True),
        Setting(task="probability_shift", eta=0.01),
        Setting(task="multiplicative", eta=0.01),
        Setting(task="quantile", structure="isotonic", levels=(0.1, 0.9), eta=0.1),
    ],
    ids=lambda s: f"{s.task}-{s.structure}-{s.eta}",
)
def test_no_cap_is_printed_where_none_is_proven(setting: Setting) -> None:
    cap = harm_cap(setting)
    assert cap.factor is None and cap.added is None
    assert cap.sentence.startswith(("no harm cap", "this step is too large"))


def test_the_sinh_link_has_no_cap() -> None:
    assert harm_cap(Setting(task="quantile", eta=0.1), sinh=True).added is None


@pytest.mark.parametrize("task", ["mean", "quantile", "probability_logit"])
def test_a_printed_cap_is_never_below_the_proven_one(task: str) -> None:
    for eta in np.geomspace(1e-4, 0.9, 57).tolist():
        cap = harm_cap(Setting(task=task, level=0.9, eta=eta))
        shown = float(cap.sentence.split("at most ")[1].split()[0].rstrip(",%"))
        proven = 100.0 * (cap.factor - 1.0) if cap.factor is not None else cap.added
        assert proven is not None and proven * (1.0 - 1e-9) <= shown <= 1.011 * proven
