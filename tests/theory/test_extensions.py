"""Missing labels, intervals, levels that never cross, lazy projection."""

import math
import random

import pytest

from gradeq.theory import (
    Setting,
    average_from_radius,
    best_bound,
    group_bounds,
    isotonic_ranges,
    lazy_growth,
    observed_average,
    propensity_lipschitz,
    quantile_coverage_gap,
    quantile_range,
    two_sided_coverage,
    two_sided_shortfall,
)
from theory.adversaries import SLACK


def isotonic(values: list[float]) -> list[float]:
    """The L2 isotonic projection with equal weights: pool adjacent violators."""
    blocks: list[list[float]] = []
    for value in values:
        blocks.append([value, 1.0])
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (a, n), (b, m) = blocks[-2:]
            blocks[-2:] = [[(a * n + b * m) / (n + m), n + m]]
    return [mean for mean, count in blocks for _ in range(int(count))]


def levels_run(
    rng: random.Random, levels: list[float], eta: float, rounds: int, blind: int, arrange: str
) -> tuple[list[list[float]], list[float], list[float], list[float], list[float]]:
    """The u of each round, observed ranges, gaps of the bases, and miscoverage sums."""
    k = len(levels)
    u, total = [0.0] * k, [0.0] * k
    path, lows, highs, gaps = [], [math.inf] * k, [-math.inf] * k, [0.0] * (k - 1)
    for t in range(rounds):
        f = sorted(rng.gauss(0, 0.3) for _ in range(k)) if rng.random() < 0.7 else [0.0] * k
        served = [a + (b if t >= blind else 0.0) for a, b in zip(f, u, strict=True)]
        served = sorted(served) if arrange == "sort" else isotonic(served)
        pick = rng.randrange(k)
        y = rng.choice((-1.0, 1.0, served[pick], served[pick] + 1e-9, rng.uniform(-1, 1)))
        y = max(-1.0, min(1.0, y))
        for j in range(k):
            lows[j], highs[j] = min(lows[j], y - f[j]), max(highs[j], y - f[j])
            if j:
                gaps[j - 1] = max(gaps[j - 1], f[j] - f[j - 1])
            g = (y <= served[j]) - levels[j]
            total[j] += g
            u[j] -= eta * g
        path.append(list(u))
    return path, lows, highs, gaps, total


@pytest.mark.parametrize("blind", [0, 3])
def test_every_level_of_a_lazy_isotonic_layer_stays_in_its_range(blind: int) -> None:
    rng = random.Random(1)
    for _ in range(60):
        k, eta = rng.choice((2, 3, 5)), rng.choice((0.05, 0.3, 1.0))
        levels = sorted(rng.sample([j / 20 for j in range(1, 20)], k))
        path, lows, highs, gaps, total = levels_run(rng, levels, eta, 150, blind, "isotonic")
        ranges = isotonic_ranges(levels, lows, highs, gaps, eta, blind)
        for u in path:
            for value, where in zip(u, ranges, strict=True):
                assert where.low - 1e-9 <= value <= where.high + 1e-9
        setting = Setting(
            task="quantile",
            structure="isotonic",
            levels=tuple(levels),
            lows=tuple(lows),
            highs=tuple(highs),
            gaps=tuple(gaps),
            eta=eta,
            n=150,
            zero_scale_rounds=blind,
        )
        each = group_bounds(setting)
        for value, bound in zip(total, each, strict=True):
            assert bound.value is not None and abs(value) / 150 <= bound.value * SLACK + 1e-9
        assert best_bound(setting).value == max(b.value or 0.0 for b in each)


def test_one_level_is_plain_quantile_tracking() -> None:
    assert isotonic_ranges([0.9], [-1.0], [2.0], [], 0.5) == [quantile_range(0, -1.0, 2.0, 0.9, 0.5)]


def test_sorting_instead_of_projecting_fails() -> None:
    levels, eta, rounds = [0.3, 0.7], 0.1, 8000

    def worst(arrange: str) -> float:
        u, total = [0.0, 0.0], [0.0, 0.0]
        u = [0.05, -0.05] if arrange == "sort" else u
        for _ in range(rounds):
            served = sorted(u) if arrange == "sort" else isotonic(u)
            y = sum(served) / 2 if served[1] > served[0] else served[0]
            y = max(-1.0, min(1.0, y))
            for j in range(2):
                g = (y <= served[j]) - levels[j]
                total[j] += g
                u[j] -= eta * g
        return max(abs(v) for v in total) / rounds

    bound = max(w.radius() for w in isotonic_ranges(levels, [-1, -1], [1, 1], [0], eta))
    assert worst("isotonic") <= bound / (eta * rounds) * SLACK
    assert worst("sort") > 0.2


def two_sided(arrange: bool) -> tuple[float, float, float, float]:
    """Coverage of [lo, hi], of hi, of lo, and crossings, on a constant series at alpha = 1/4."""
    low, high, inside, upper, lower, crossed = 0.0, 0.0, 0, 0, 0, 0
    rounds, eta, y = 4000, 1.0, 0.0
    for _ in range(rounds):
        lo, hi = isotonic([low, high]) if arrange else (low, high)
        under = y <= lo if arrange else y < lo
        upper, lower = upper + (y <= hi), lower + under
        inside += (lo < y <= hi) if arrange else (lo <= y <= hi)
        crossed += hi < y < lo
        high -= eta * ((y <= hi) - 0.875)
        low -= eta * (under - 0.125)
    return inside / rounds, upper / rounds, lower / rounds, crossed / rounds


def test_two_trackers_cover_what_they_say_plus_their_crossings() -> None:
    inside, upper, lower, crossed = two_sided(arrange=False)
    assert inside == pytest.approx(two_sided_coverage(upper, lower, crossed))
    gap = quantile_coverage_gap(0.0, 0.0, 0.0, 0.875, 1.0, 4000)
    assert inside >= 0.75 - two_sided_shortfall(gap, gap) - 1e-9
    assert crossed > 0.12  # crossing is real: over-coverage by alpha/2


def test_isotonic_levels_remove_the_over_coverage() -> None:
    inside, upper, lower, crossed = two_sided(arrange=True)
    assert crossed == 0
    assert inside == pytest.approx(upper - lower) == pytest.approx(0.75, abs=0.01)


def test_nothing_is_said_about_labels_that_never_come() -> None:
    rng, theta, seen, covered, all_covered = random.Random(3), 0.0, 0, 0, 0
    for t in range(4000):
        y = rng.uniform(0, 1) if t % 2 else rng.uniform(2, 3)
        all_covered += y <= theta
        if t % 2:  # labels of the other half never come
            seen += 1
            covered += y <= theta
            theta -= 0.1 * ((y <= theta) - 0.9)
    radius = quantile_range(0.0, 0.0, 1.0, 0.9, 0.1).radius()
    assert abs(covered / seen - 0.9) <= observed_average(0.0, radius, 0.1, seen) * SLACK
    assert observed_average(0.0, radius, 0.1, seen) == average_from_radius(0.0, radius, 0.1, seen)
    assert abs(all_covered / 4000 - 0.9) > 0.4
    assert propensity_lipschitz(0.9, 0.1) == pytest.approx(9.0)


def test_lazy_projection_with_inward_flow_grows_slowly() -> None:
    rng = random.Random(5)
    levels, eta = [0.2, 0.5, 0.8], 0.2
    path, *_ = levels_run(rng, levels, eta, 400, 0, "isotonic")
    # Bases within 2 of the labels: kappa <= m b per level, ||g||^2 <= 3 m^2, no pull from the projection.
    for t, u in enumerate(path, 1):
        bound = math.sqrt(lazy_growth(3 * 0.8 * 3.0, 0.0, math.sqrt(3) * 0.8, eta, t))
        assert math.sqrt(sum(a * a for a in u)) <= bound * SLACK
    # Without inward flow u runs away: projecting on {0} while the gradient is constant.
    assert abs(-0.1 * 1.0 * 1000) > math.sqrt(lazy_growth(0.0, 0.0, 1.0, 0.1, 1000))
