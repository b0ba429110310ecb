"""The smaller errata, of severity B and C, and remarks: where a few numbers can check what the page says of them."""

import itertools
import math
import random

import pytest

from gradeq.numerics import sigmoid
from gradeq.theory import ridge_constant


def planar_run(gradient, eta: float, rounds: int) -> float:
    """The norm of the average of the loss's gradient, in the plane from 0; ``gradient`` adds a penalty's slope."""
    theta, total = [0.0, 0.0], [0.0, 0.0]
    for t in range(rounds):
        g, slope = gradient(theta, t)
        total = [a + b for a, b in zip(total, g, strict=True)]
        theta = [u - eta * (a + b) for u, a, b in zip(theta, g, slope, strict=True)]
    return math.hypot(*total) / rounds


def across(theta: list[float], along: float) -> tuple[float, float]:
    """A unit row whose margin with theta is ``along`` where that is possible, the rest at right angles."""
    size = math.hypot(*theta)
    if size <= abs(along):
        return (1.0, 0.0)
    c = along / size
    s = math.sqrt(1.0 - c * c)
    return ((c * theta[0] - s * theta[1]) / size, (c * theta[1] + s * theta[0]) / size)


def test_14_the_stated_horizon_is_true_though_the_root_of_its_proof_lacks_a_factor() -> None:
    rng, lacking = random.Random(14), 0
    for _ in range(5000):
        alpha = math.exp(rng.uniform(-2.0, 3.0))
        beta, b = alpha * rng.uniform(1.0, 5.0), 1.0
        eta = rng.uniform(0.01, 1.99) / beta
        a = alpha * (1.0 - eta * beta / 2.0)
        linear = b * (1.0 + eta * beta)
        stated = (linear + math.sqrt(eta / 2.0) * b) / a
        proof = (linear + math.sqrt(linear**2 + 2.0 * a * eta * b**2)) / (2.0 * a)
        lacking += stated < proof
        exact = b * (1.0 + math.sqrt(max(0.0, 1.0 - 2.0 * eta * a))) / (2.0 * a)
        assert exact <= stated * (1.0 + 1e-12)
    assert lacking > 0  # where the stated horizon does not follow from the proof


def test_15_the_sufficient_horizon_of_the_remark_is_at_most_8_b_over_delta() -> None:
    for delta in (0.01, 0.3, 0.7, 0.99):
        eta = 2.0 * (1.0 - delta) / (1.0 + delta) ** 2
        assert (1.0 + eta + math.sqrt(eta / 2.0)) * (1.0 + delta) < 8.0


def test_16_the_second_part_of_the_proof_is_decreasing_beyond_b() -> None:
    values = [x / (1.0 + x) ** 2 for x in (1.0, 1.5, 3.0, 10.0)]
    assert values == sorted(values, reverse=True)


@pytest.mark.parametrize("eta", [0.1, 1.0, 3.0, 10.0])
def test_19_the_printed_lasso_bound_holds_though_its_derivation_gives_another_constant(eta: float) -> None:
    rng, c, d = random.Random(19), 1.0, 2
    for strength in (0.001, 0.02, 0.3, 2.0):
        size = c + strength * math.sqrt(d)  # L, for labels in [0, 1]
        for margin in (0.0, 1.2785, 3.0):

            def gradient(theta, t, strength=strength, margin=margin):
                row = across(theta, margin)
                error = sigmoid(row[0] * theta[0] + row[1] * theta[1]) - float(rng.random() < 0.9)
                slope = [strength * ((u > 0.0) - (u < 0.0)) for u in theta]
                return [error * z for z in row], slope

            for rounds in (1, 7, 300):
                found = planar_run(gradient, eta, rounds)
                printed = (
                    size / eta / (eta * rounds)
                    + (0.279 + eta * size**2 / 2.0) / (strength * eta * rounds)
                    + strength * math.sqrt(d)
                )
                assert found <= printed * (1.0 + 1e-9)
    if eta > 1.0:
        assert size / eta < eta * size  # the printed constant is the smaller one: not by that derivation


def test_22_the_printed_ridge_bound_holds_though_the_proposition_gives_a_larger_one() -> None:
    b, c = 1.0, 1.0
    for eta in (0.05, 0.3, 0.8, 1.5):
        for strength in (0.001, 0.02, 0.15):
            assert eta < 1.0 / (strength + c**2 / 2.0)
            constant = ridge_constant(b, c**2, strength, eta)
            more = eta * (c**2 + strength) + 1.0

            def gradient(theta, t, strength=strength, eta=eta):
                row = across(theta, (1.0 - eta) / (2.0 - eta))
                margin = row[0] * theta[0] + row[1] * theta[1]
                return [(margin - b) * z for z in row], [strength * u for u in theta]

            for rounds in (1, 10, 500):
                printed, proposition = (
                    b * c / rounds
                    + root / (math.sqrt(strength) * eta * rounds)
                    + math.sqrt(strength) * root
                    + strength * eta * b * c
                    for root in (math.sqrt(constant * more), math.sqrt(constant) * more)
                )
                assert planar_run(gradient, eta, rounds) <= printed * (1.0 + 1e-9) < proposition


def test_24_one_over_t_balances_the_second_and_the_third_term() -> None:
    eta, b, c = 0.5, 1.0, 1.0
    for rounds in (10**3, 10**6):
        strength = 1.0 / rounds
        root = math.sqrt(ridge_constant(b, c**2, strength, eta) * (eta * (c**2 + strength) + 1.0))
        second = root / (math.sqrt(strength) * eta * rounds)
        third, fourth = math.sqrt(strength) * root, strength * eta * b * c
        assert second / third == pytest.approx(1.0 / eta) and fourth / third < 0.05


def test_26_a_sum_from_1_counts_the_first_step_twice() -> None:
    etas = [0.5, 0.4, 0.2]
    inverse = [0.0] + [1.0 / eta for eta in etas]
    changes = [after - before for before, after in itertools.pairwise(inverse)]
    assert sum(map(abs, changes)) == pytest.approx(1.0 / etas[-1])
    assert 1.0 / etas[0] + sum(changes) > 1.0 / etas[-1]


def test_44_a_loss_can_be_lipschitz_on_a_ball_with_steep_subgradients_at_its_boundary() -> None:
    h, steep = 1.0, 100.0

    def loss(u: float) -> float:
        return max(0.0, steep * (u - h))

    assert all(loss(u) == 0.0 for u in (-1.0, 0.0, 1.0))  # L = 0 on [-1, 1]
    assert all(loss(z) >= loss(h) + steep * (z - h) for z in (-2.0, 0.0, 1.0, 1.5))


def test_51_projected_iterates_need_not_touch_the_boundary() -> None:
    rng, theta, most = random.Random(51), 0.0, 0.0
    for _ in range(5000):
        theta -= 0.1 * ((rng.uniform(-1.0, 1.0) <= theta) - 0.9)
        theta = max(-10.0, min(10.0, theta))
        most = max(most, abs(theta))
    assert most < 2.0


def test_54_a_move_of_bounded_length_lowers_smooth_losses_as_the_proof_needs() -> None:
    beta, size = 2.0, 0.3
    for slope in (0.3, 1.0, 50.0):  # |G_T| along the subsequence, at least size
        move = min(size, slope) / beta
        assert move <= size / beta
        assert -slope * move + beta / 2.0 * move**2 <= -(size**2) / (2.0 * beta) * (1.0 - 1e-12)
