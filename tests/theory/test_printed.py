"""What the paper prints and a run refutes, and what it leaves open: the same players that our bounds survive."""

import math
import random

import pytest

from gradeq.numerics import sigmoid
from gradeq.theory import (
    average_from_radius,
    elo_radius,
    ensemble_coverage_gap,
    floored_simplex_average,
    in_simplex_normal_cone,
    logistic_horizon,
    logistic_soft_radius,
    monotone_horizon_positive,
    quantile_coverage_gap,
    radius_quadratic_curvature,
    radius_zero_curvature,
    ridge_constant,
    squared_radius,
)
from theory.adversaries import descend
from theory.simplex import floored_run, plain_step


def test_the_introductions_update_without_theta_diverges() -> None:
    def average_bias(pull: float) -> float:
        theta, total = 0.0, 0.0
        for _ in range(1000):
            total += theta - 1.0
            theta += 0.1 * (1.0 - pull * theta)
        return total / 1000

    assert average_bias(0.0) > 40.0
    assert abs(average_bias(1.0)) <= average_from_radius(0.0, squared_radius(0, 1, 0.1), 0.1, 1000)


def test_bounded_iterates_without_eta_in_the_bound_is_too_small() -> None:
    path = [0.0]

    def gradient(theta: float, t: int) -> float:
        path.append(theta)
        return theta - 1.0

    end, average = descend(0.0, 0.01, 200, gradient)
    radius = max(abs(end), *map(abs, path))
    assert abs(average) > 2.0 * radius / 200
    assert abs(average) <= 2.0 * radius / (0.01 * 200)


def test_converging_to_the_minimiser_does_not_give_equilibrium() -> None:
    total_y, total_g, worst, theta = 0.0, 0.0, 0.0, 0.0
    for t in range(1, 60_001):
        y = math.cos(math.log(t))
        total_y += y
        assert abs(theta - total_y / t) <= 2.0 / t + 1e-12  # the minimiser of the losses so far
        total_g += theta - y
        theta -= (theta - y) / t  # descent with steps 1/t: the mean of the labels so far
        if t > 1000:
            worst = max(worst, abs(total_g / t))
    assert worst > 0.45


def test_the_printed_tie_rule_covers_a_constant_series_always() -> None:
    def coverage(tie: float) -> float:
        theta, covered = 0.0, 0
        for _ in range(1000):
            covered += theta >= 0.0
            g = 0.5 if theta > 0.0 else -0.5 if theta < 0.0 else tie
            theta -= 1.0 * g
        return covered / 1000

    bound = quantile_coverage_gap(0.0, 0.0, 0.0, 0.5, 1.0, 1000)
    assert abs(coverage(-0.5) - 0.5) > 1.0 / 1000 >= bound
    assert abs(coverage(0.5) - 0.5) <= bound


@pytest.mark.parametrize(("a", "b", "gap"), [(0.0, 1.0, 0.01), (-1.0, 1.0, 0.01), (0.0, 1.0, 0.1)])
def test_the_printed_logistic_horizon_is_too_small(a: float, b: float, gap: float) -> None:
    eta, rounds, span = 0.1, 20_000, b - a
    _, average = descend(0.0, eta, rounds, lambda u, t: a + span * sigmoid(u) - (b - gap))
    printed = span * eta + math.log(span / (2.0 * gap))
    assert abs(average) > printed / (eta * rounds)
    radius = logistic_soft_radius(0.0, span, gap, eta)
    assert abs(average) <= radius / (eta * rounds) * (1 + 1e-9)
    assert logistic_horizon(span, gap) > math.log(span / (2.0 * gap))


def test_the_printed_classifier_bound_is_too_small() -> None:
    eta, rounds, gap = 0.1, 20_000, 0.01
    _, average = descend(0.0, eta, rounds, lambda u, t: 2.0 * sigmoid(u) - 1.0 - (1.0 - gap))
    assert abs(average) > (2.0 * eta + math.log(1.0 / gap)) / (eta * rounds)
    assert abs(average) <= (2.0 * eta + math.log((2.0 - gap) / gap)) / (eta * rounds)


def test_the_printed_positive_curvature_horizon_fails_for_strong_monotonicity() -> None:
    # 2 theta^2 - theta on [-1, 1]: alpha = 4, |g(0)| = 1 = b, and |g| <= L = 5 there.
    alpha, b, eta, lipschitz = 4.0, 1.0, 0.02, 5.0
    printed = b / alpha + math.sqrt(eta / 2.0) * lipschitz / alpha
    exact = monotone_horizon_positive(b, alpha, eta, lipschitz)
    needed = eta * lipschitz**2 / 2.0
    between = 0.5 * (printed + exact)
    assert printed < between < exact < 1.0
    assert (alpha * between - b) * between < needed
    assert (alpha * exact - b) * exact >= needed * (1 - 1e-12)


def test_strong_monotonicity_everywhere_leaves_no_global_lipschitz_constant() -> None:
    alpha, b = 0.5, 1.0
    for lipschitz in (1.0, 10.0, 1e6):
        theta = (lipschitz + 2.0 * b) / alpha
        assert alpha * theta - b > lipschitz


def test_no_constant_step_meets_the_ridge_condition_for_growing_features() -> None:
    eta, strength = 0.5, 0.1

    def is_met(t: int) -> bool:
        return eta < 1.0 / (strength + math.sqrt(t) / 2.0)  # c_t = t^(1/4)

    assert next(t for t in range(1, 20) if not is_met(t)) == 15
    # As long as the condition holds the constant is finite, then it is not: no claim, and iterates may diverge.
    assert all(math.isfinite(ridge_constant(1.0, math.sqrt(t), strength, eta)) == is_met(t) for t in range(1, 2000))
    theta = 0.0
    for t in range(1, 2000):
        y = 1.0 if theta < 0.0 else -1.0
        theta -= eta * ((t**0.25 * theta - y) * t**0.25 + strength * theta)
        if abs(theta) > 1e6:
            break
    assert 15 < t < 2000


def test_steps_that_vanish_too_fast_are_not_enough_though_theta_vanishes_faster() -> None:
    def average(rounds: int) -> float:
        path = [0.0] + [math.sqrt(t) * math.exp(-t) for t in range(1, rounds + 1)]
        moves = ((path[t - 1] - path[t]) / math.exp(-t) for t in range(1, rounds + 1))
        return abs(sum(moves)) / rounds

    # theta_{t+1} = sqrt(t) e^-t = o(eta_t t) for eta_t = e^-t, and the average gradient grows.
    assert average(10) < average(50) < average(200)


@pytest.mark.parametrize("grows", [0.0, 0.25])
def test_steps_whose_product_with_t_does_not_fall_are_enough_where_theta_is_of_smaller_order(grows: float) -> None:
    """eta_t t = t^grows, c/t included, and theta_{t+1} = t^(grows - 1/4) turning to and fro: the average vanishes."""

    def average(rounds: int) -> float:
        total, theta = 0.0, 0.0
        for t in range(1, rounds + 1):
            new = math.cos(3.0 * math.log(t)) * t ** (grows - 0.25)
            total += (theta - new) / t ** (grows - 1.0)
            theta = new
        return abs(total) / rounds

    found = [max(average(k * n) for k in range(10, 20)) for n in (10, 100, 1000)]
    assert found[0] > found[1] > found[2] and found[2] < 0.7 * found[0]


def test_steps_c_over_t_are_not_enough_where_iterates_are_bounded_only() -> None:
    # No claim of the paper: theta_{t+1} is not o(1) here.
    total, theta, worst = 0.0, 0.0, 0.0
    for t in range(1, 60_001):
        g = theta - math.cos(math.log(t))
        total += g
        theta -= g / t
        worst = max(worst, abs(total / t)) if t > 1000 else worst
    assert worst > 0.45


def test_before_corollary_2_a_step_of_2_has_no_horizon_and_every_smaller_one_has() -> None:
    def is_restorative(eta: float, theta: float, y: float) -> bool:
        return theta * (theta - y) >= eta / 2.0 * (y - theta) ** 2

    for size in (1e1, 1e3, 1e6):
        assert not is_restorative(2.0, -size, 1.0)
        for eta in (0.1, 1.0, 1.9, 1.999):
            beyond = max(1.0, eta / (2.0 - eta)) * (1.0 + 1e-9) * size
            assert all(is_restorative(eta, u, y) for u in (beyond, -beyond) for y in (1.0, -1.0))


def test_the_root_term_of_decaying_steps_needs_its_factor_two() -> None:
    rng, violated = random.Random(5), False
    for _ in range(200):
        x = y = gx = gy = squares = 0.0
        turn = rng.choice((1.0, -1.0))
        for t in range(1, 41):
            eta, size = t**-0.5, math.hypot(x, y)
            ux, uy = (-y / size, x / size) if size > 0.0 else (1.0, 0.0)
            turn = -turn if rng.random() < 0.1 else turn
            gx, gy, x, y = gx + turn * ux, gy + turn * uy, x - eta * turn * ux, y - eta * turn * uy
            squares += eta**2
            average = math.hypot(gx, gy) / t
            radius = radius_zero_curvature(0.0, 1.0, squares, 0.0)
            violated |= average > math.sqrt(squares) / t**0.5 * (1 + 1e-9)
            assert average <= 2.0 * radius / (eta * t) * (1 + 1e-9)
    assert violated


def test_quadratic_curvature_with_the_square_of_the_step_explodes() -> None:
    eta, theta, h = 0.1, 1.0, 0.001
    for _ in range(6):
        g = 100.0 * theta
        assert g * theta >= eta**2 * g**2 / 2.0  # the printed condition
        theta -= eta * g
    claimed = max(1.0, h) + eta * 100.0 * h
    assert abs(theta) > 5e5 > claimed >= radius_quadratic_curvature(1.0, h, 100.0 * h, eta)
    assert eta * 100.0**2 / 2.0 > 100.0 * 1.0  # the condition that is needed fails


def test_unsigned_elo_bias_does_not_vanish_and_the_signed_one_does() -> None:
    eta, rounds, theta, literal, signed = 0.1, 4000, [0.0, 0.0], 0.0, 0.0
    for t in range(rounds):
        a, b = (0, 1) if t % 2 else (1, 0)
        error = sigmoid(theta[b] - theta[a]) - 1.0  # seat b always wins
        literal += error
        signed += error if b == 0 else -error
        theta[a], theta[b] = theta[a] + eta * error, theta[b] - eta * error
    assert abs(literal / rounds) > 0.4
    assert abs(signed / rounds) <= elo_radius(2, eta, eta * rounds) / (eta * rounds)


def test_algorithm_4_read_coordinate_by_coordinate_leaves_group_bias() -> None:
    def biases(elementwise: bool) -> list[float]:
        rng, theta, bias, rows = random.Random(3), [0.0, 0.0], [0.0, 0.0], [0, 0]
        for _ in range(20_000):
            z = rng.choice(((1, 0), (0, 1), (1, 1)))
            y = float(rng.random() < 0.3 + 0.2 * z[0] + 0.3 * z[1])
            margin = z[0] * theta[0] + z[1] * theta[1]
            served = 0.4 + 2.0 * sigmoid(margin) - 1.0
            for j in (0, 1):
                if z[j]:
                    own = 0.4 + 2.0 * sigmoid(theta[j]) - 1.0
                    rows[j] += 1
                    bias[j] += served - y
            steps = [
                z[j] * ((0.4 + 2.0 * sigmoid(theta[j]) - 1.0) if elementwise else served) - z[j] * y for j in (0, 1)
            ]
            theta = [u - 0.05 * g for u, g in zip(theta, steps, strict=True)]
            assert own <= 1.4
        return [abs(b) / n for b, n in zip(bias, rows, strict=True)]

    assert max(biases(True)) > 0.05
    assert max(biases(False)) < 0.01


@pytest.mark.parametrize("shared", [False, True])
def test_algorithm_5_as_printed_breaks_the_coverage_of_its_trackers(shared: bool) -> None:
    """Both readings of the printed error: each tracker's own, or the ensemble's for all."""
    level, rates, rounds, b = 0.9, (0.01, 0.5), 20_000, 1.0

    def gaps(corrected: bool) -> list[float]:
        rng = random.Random(11)
        theta, w, covered, mixed = [0.0, 0.0], [0.5, 0.5], [0, 0], 0.0
        for _ in range(rounds):
            y = rng.uniform(-b, b)
            hit = [y <= u for u in theta]
            covered = [c + h for c, h in zip(covered, hit, strict=True)]
            start = theta if corrected else [mixed, mixed]
            used = [y <= mixed] * 2 if shared and not corrected else hit
            new = [u - r * (h - level) for u, r, h in zip(start, rates, used, strict=True)]
            w = plain_step(w, [u * ((y <= mixed) - level) for u in theta], 0.05)
            theta = new
            mixed = sum(a * u for a, u in zip(w, theta, strict=True))
        return [abs(c / rounds - level) for c in covered]

    printed = [(rate + b) / (rate * rounds) for rate in rates]  # Corollary 1 from theta_1 = 0
    ours = [quantile_coverage_gap(0.0, -b, b, level, rate, rounds) for rate in rates]
    assert gaps(False)[1] > printed[1] >= ours[1]
    assert all(gap <= bound for gap, bound in zip(gaps(True), ours, strict=True))


def test_simplex_equilibrium_does_not_give_coverage_and_one_final_tracker_does() -> None:
    level, rates, b, final_eta, rounds = 0.9, (0.05, 0.0501), 1.0, 0.05, 40_000
    theta, w, final = [0.2, 0.0], [0.5, 0.5], 0.0
    covered = final_covered = 0
    for _ in range(rounds):
        mixed = sum(a * u for a, u in zip(w, theta, strict=True))
        # Just above the ensemble whenever that is allowed: one tracker misses, the other one does not.
        y = mixed + 1e-6 if mixed + 1e-6 <= b else -b
        covered += y <= mixed
        hit = y <= mixed + final
        final_covered += hit
        final -= final_eta * (hit - level)
        w = plain_step(w, [u * ((y <= mixed) - level) for u in theta], 0.01)
        theta = [u - r * ((y <= u) - level) for u, r in zip(theta, rates, strict=True)]
    assert abs(covered / rounds - level) > 0.05
    bound = ensemble_coverage_gap(b, list(rates), level, final_eta, rounds)
    assert abs(final_covered / rounds - level) <= bound < 0.003


def test_the_printed_normal_cone_of_the_simplex_points_into_the_set() -> None:
    u, corner, other = [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]
    # u is orthogonal to the (trivial) face through the corner, yet u'(z - corner) > 0 inside the simplex.
    assert sum(a * (z - c) for a, z, c in zip(u, other, corner, strict=True)) > 0.0
    assert not in_simplex_normal_cone(u, corner)
    assert in_simplex_normal_cone([1.0, 0.5], corner)


def test_gradients_on_the_support_become_equal_not_zero() -> None:
    # The same loss each round and an iterate that minimises it on the simplex: equilibrium without any limit.
    theta, g = [0.5, 0.5, 0.0], [1.0, 1.0, 3.0]
    assert in_simplex_normal_cone([-x for x in g], theta)
    assert g[0] == g[1] != 0.0 and g[2] >= g[0]


def test_exponentiated_gradient_needs_a_floor() -> None:
    rounds, eta, g = 4000, 0.5, [0.0, 1.0, 1.0]
    w = [1 / 3] * 3
    for _ in range(rounds):
        w = plain_step(w, g, eta)
    assert min(w) > 0.0  # never on the boundary, so no normal part: avg(g + n) = avg g
    assert math.hypot(*g) > 1.4
    _, _, whole = floored_run([g] * rounds, 0.01, eta)
    assert math.hypot(*whole) <= floored_simplex_average(3, 0.01, math.hypot(*g), eta, rounds)


def test_the_printed_normal_cone_test_accepts_a_vector_in_the_interior() -> None:
    v, theta = 1.0, 0.0
    ratios = [v * (z - theta) / abs(z - theta) for z in (-1e-6, 1e-6)]
    assert min(ratios) <= 0.0 < max(ratios)  # liminf passes, limsup does not; the cone of the line is {0}
