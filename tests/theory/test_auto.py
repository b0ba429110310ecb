"""Mixing by loss: regret against the best expert, labels at once or late."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradeq.theory import (
    adahedge_regret,
    bayes_final_log_loss,
    bayes_mix_regret,
    final_residual_bound,
    late_mix_regret,
    mixed_mse,
)
from theory.adversaries import SLACK


def weights_of(losses: list[float], rate: float) -> list[float]:
    low = min(losses)
    raw = [math.exp(-rate * (a - low)) for a in losses]
    return [a / sum(raw) for a in raw]


@given(st.integers(0, 10**6), st.booleans())
def test_the_bayes_mix_pays_at_most_the_logarithm_of_the_experts(seed: int, soft: bool) -> None:
    rng, k = random.Random(seed), 5
    totals, mixed = [0.0] * k, 0.0

    def log_loss(p: float, y: float) -> float:
        return -y * math.log(p) - (1 - y) * math.log1p(-p)

    for _ in range(80):
        ps = [rng.uniform(0.001, 0.999) for _ in range(k)]
        p = sum(w * q for w, q in zip(weights_of(totals, 1.0), ps, strict=True))
        y = rng.random() if soft else float(p < 0.5)
        mixed += log_loss(p, y)
        totals = [t + log_loss(q, y) for t, q in zip(totals, ps, strict=True)]
    assert mixed <= min(totals) + bayes_mix_regret(k) + 1e-9


@given(st.integers(0, 10**6), st.floats(0.01, 2.0), st.sampled_from([0, 1, 5, 15]))
def test_late_losses_cost_what_is_proven(seed: int, rate: float, delay: int) -> None:
    rng, k, rounds = random.Random(seed), 4, 80
    posted, totals, mixed = [0.0] * k, [0.0] * k, 0.0
    waiting: list[tuple[float, list[float]]] = []
    squares = products = 0.0
    for _ in range(rounds):
        w = weights_of(posted, rate)
        scale = rng.choice((0.1, 1.0, 2.0))
        heaviest = w.index(max(w))
        losses = [scale * (rng.random() < (0.9 if i == heaviest else 0.4)) for i in range(k)]
        spread = max(losses) - min(losses)
        squares += spread**2
        products += spread * sum(s for s, _ in waiting)
        mixed += sum(a * b for a, b in zip(w, losses, strict=True))
        totals = [a + b for a, b in zip(totals, losses, strict=True)]
        waiting.append((spread, losses))
        while len(waiting) > delay or (waiting and rng.random() < 0.1):
            _, due = waiting.pop(rng.randrange(len(waiting)))
            posted = [a + b for a, b in zip(posted, due, strict=True)]
    assert mixed - min(totals) <= late_mix_regret(k, rate, squares, products) * SLACK


def test_the_parts_of_auto_add_up() -> None:
    assert bayes_final_log_loss(10.0, 7, 0.03, 100.0) == pytest.approx(10 + math.log(7) + 1.5)
    assert mixed_mse(1.0, 10.0, 100, 0.01) == pytest.approx(1.1 / 0.99)
    assert final_residual_bound(2.0, [0.5, 2.0, 2.0]) == 4.0
    assert adahedge_regret(4.0, 1.0, 3) == pytest.approx(math.sqrt(4 * math.log(3)) + 4 / 3 * math.log(3) + 2)
