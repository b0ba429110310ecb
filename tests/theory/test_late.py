"""Late labels: below an open mass of one every schedule is safe, above it one diverges."""

import math
import random

import pytest

from gradeq.theory import (
    Range,
    age_mass,
    age_root_mass,
    capped_open_mass,
    capped_radius_at_posting,
    capped_radius_ticket_fixed,
    capped_step,
    crossing_mass,
    fifo_step_limit,
    late_logistic_radius_by_delay,
    late_logistic_virtual_radius,
    late_logit_radius,
    late_pull_growth,
    late_quantile_range,
    late_radius_1d,
    late_service_diameter_quantile,
    late_service_diameter_squared,
    late_squared_growth,
    late_squared_radius,
    late_squared_radius_by_delay,
    late_squared_radius_in_order,
    late_squared_range,
    late_squared_wander,
    late_unposted_average,
    logistic_horizon,
)
from theory.adversaries import SLACK, Game, Played, play

RELEASES = ("fifo", "random", "newest", "burst", "reverse")
LABELS = ("up", "greedy", "extreme", "alternate", "swing", "edge")


def late_games(task: str, **settings: object) -> list[Played]:
    rng = random.Random(13)
    return [
        play(
            Game(task=task, release=release, labels=labels, hold=hold, **settings),  # type: ignore[arg-type]
            rng,
        )
        for release in RELEASES
        for labels in LABELS
        for hold in (1, 4)
    ]


@pytest.mark.parametrize("eta", [0.02, 0.08, 0.15])
def test_the_squared_error_stays_bounded_below_a_mass_of_one(eta: float) -> None:
    for played in late_games("mean", eta=eta):
        radius = late_squared_radius(0.0, 1.0, played.open_mass, played.stale_mass)
        assert played.farthest <= radius * SLACK
        where = late_squared_range(0.0, -1.0, 1.0, played.open_mass, played.stale_mass)
        assert where.radius() == pytest.approx(radius)
        by_delay = late_squared_radius_by_delay(0.0, 1.0, eta, played.delay)
        assert played.farthest <= by_delay * SLACK
        diameter = late_service_diameter_squared(radius, 1.0, played.open_mass)
        assert played.largest_total <= diameter / eta * SLACK


def hold_and_release(mass: float, hold: int, cycles: int) -> float:
    """Hold tickets of that mass, let the others flow until theta is 0, release: growth over the cycles."""
    eta, theta = mass / hold, 1.0
    for _ in range(cycles):
        held = hold * (theta - 0.0)  # residual 0: each held ticket pushes by its stale theta
        while abs(theta) > 1e-12:
            theta -= eta * theta if eta < 1 else theta
        theta -= eta * held
    return abs(theta)


@pytest.mark.parametrize("hold", [10, 100])
def test_the_limit_of_one_is_sharp(hold: int) -> None:
    assert hold_and_release(0.99, hold, 12) == pytest.approx(0.99**12, rel=1e-6)
    assert hold_and_release(1.01, hold, 12) == pytest.approx(1.01**12, rel=1e-6)
    assert late_squared_radius(0.0, 1.0, 1.0, 1.0) == math.inf


@pytest.mark.parametrize("delay", [0, 1, 2, 5, 10])
def test_the_limit_for_labels_in_order_is_exact(delay: int) -> None:
    def growth(eta: float) -> float:
        path = [1.0] * (delay + 1)
        for _ in range(3000 * (delay + 1)):
            path.append(path[-1] - eta * path[-1 - delay])
            if abs(path[-1]) > 1e9:
                break
        return max(abs(v) for v in path[-50:])

    limit = fifo_step_limit(delay)
    assert growth(0.99 * limit) < 1e-3
    assert growth(1.01 * limit) > 1e2


def test_in_order_delay_is_bounded() -> None:
    for delay in (1, 3):
        for labels in LABELS:
            eta = 0.6 / delay
            game = Game(release="fifo", hold=delay, eta=eta, labels=labels)
            played = play(game, random.Random(1))
            radius = late_squared_radius_in_order(0.0, 1.0, eta, delay)
            assert played.farthest <= radius * SLACK
    assert late_squared_radius_in_order(0.0, 1.0, 0.5, 2) == math.inf


@pytest.mark.parametrize("level", [0.1, 0.5, 0.9])
def test_the_quantile_range_grows_by_the_open_mass_and_no_more(level: float) -> None:
    closest = 0.0
    for played in late_games("quantile", eta=0.3, level=level, low=-1.0, high=2.0):
        where = late_quantile_range(0.0, -1.0, 2.0, level, played.open_mass)
        assert where.low - 1e-9 <= min(played.theta) <= max(played.theta) <= where.high + 1e-9
        diameter = late_service_diameter_quantile(0.0, -1.0, 2.0, played.open_mass)
        assert played.largest_total <= diameter / 0.3 * SLACK
        closest = max(closest, played.farthest / where.radius())
    assert closest > 0.9


def test_the_late_quantile_range_is_attained() -> None:
    eta, level, hold = 0.5, 0.9, 6
    theta = 1.0 - 1e-9  # just below the highest label: all open tickets were missed
    theta += hold * eta * level
    assert theta == pytest.approx(late_quantile_range(0.0, -1.0, 1.0, level, hold * eta).high)


@pytest.mark.parametrize("eta", [0.1, 0.5])
def test_logistic_trackers_survive_any_order(eta: float) -> None:
    for played in late_games("probability_shift", eta=eta, low=-0.9, high=0.9):
        soft = late_radius_1d(0.0, logistic_horizon(2.0, 0.1), 2.0, played.open_mass)
        assert played.farthest <= soft * SLACK
    for played in late_games("probability_shift", eta=eta):
        served = eta * played.game.rounds
        virtual = late_logistic_virtual_radius(0.0, 2.0, played.open_mass, served)
        assert abs(played.theta[0]) <= virtual * SLACK
        assert played.farthest <= (virtual + 2.0 * played.open_mass) * SLACK
        by_delay = late_logistic_radius_by_delay(0.0, 2.0, eta, played.game.rounds, played.delay)
        assert played.farthest <= by_delay * SLACK
    for played in late_games("probability_logit", eta=eta, low=0.0, high=1.0):
        odds = eta * played.odds_sum
        assert played.farthest <= late_logit_radius(0.0, played.open_mass, odds) * SLACK


@pytest.mark.parametrize("rows", ["spiral", "random"])
def test_features_survive_any_order(rows: str) -> None:
    shape = {"structure": "features", "dimension": 3, "rows": rows, "rounds": 120}
    for played in late_games("quantile", eta=0.2, **shape):
        lipschitz = 0.25 * played.size
        overlap = (played.open_mass - 0.2) * lipschitz
        growth = late_pull_growth(0.5, lipschitz, 0.2, 0.2 * played.n, overlap)
        assert math.sqrt(sum(u * u for u in played.theta)) <= math.sqrt(growth) * SLACK
    for played in late_games("mean", eta=0.05, **shape):
        growth = late_squared_growth(0.05 * played.n, played.size, played.crossing_mass)
        assert math.sqrt(sum(u * u for u in played.theta)) <= math.sqrt(growth) * SLACK
    assert late_squared_growth(1.0, 1.0, 2.0) == math.inf


def test_unposted_rounds_cost_at_most_their_count() -> None:
    game = Game(task="quantile", release="fifo", hold=7, eta=0.2, labels="extreme")
    played = play(game, random.Random(4))
    open_now = game.rounds - played.n
    bound = late_unposted_average(played.theta[0], 0.5, open_now, 0.2, game.rounds)
    # Whatever the open tickets turn out to be.
    assert (played.largest_total + 0.5 * open_now) / game.rounds <= bound * SLACK


@pytest.mark.parametrize("cap", [0.1, 0.3, 0.9])
def test_steps_capped_at_serving_keep_the_squared_error_bounded(cap: float) -> None:
    rng = random.Random(3)
    for hold, rule in ((h, r) for h in (1, 5, 20) for r in ("flip", "up", "random")):
        theta, peak, farthest, mass, waiting = 0.0, 1, 0.0, 0.0, []
        for _ in range(120):
            peak = max(peak, len(waiting) + 1)
            waiting.append((theta, capped_step(1.0, cap, peak)))
            mass = max(mass, sum(eta for _, eta in waiting))
            while len(waiting) > hold or (waiting and rng.random() < 0.3):
                served, eta = waiting.pop(rng.randrange(len(waiting)))
                y = {"flip": math.copysign(1.0, theta), "up": 1.0}.get(rule, rng.uniform(-1, 1))
                theta -= eta * (served - y)
                farthest = max(farthest, abs(theta))
        assert farthest <= capped_radius_ticket_fixed(1.0, cap, peak) * SLACK
        assert mass <= capped_open_mass(cap, cap, peak) * SLACK


def test_steps_capped_at_posting_keep_it_bounded_too() -> None:
    rng = random.Random(8)
    for cap in (0.1, 0.5, 0.9):
        for _ in range(60):
            theta, peak, waiting = 0.0, 1, []
            hold, rule = rng.choice((1, 4, 15)), rng.choice(("flip", "up", "random"))
            for _ in range(200):
                waiting.append(theta)
                peak = max(peak, len(waiting))
                while len(waiting) > hold or (waiting and rng.random() < 0.3):
                    served = waiting.pop(rng.randrange(len(waiting)))
                    y = {"flip": math.copysign(1.0, theta), "up": 1.0}.get(rule, rng.uniform(-1, 1))
                    theta -= capped_step(1.0, cap, peak) * (served - y)
                    assert abs(theta) <= capped_radius_at_posting(1.0, cap) * SLACK
    assert capped_radius_at_posting(1.0, 1.0) == math.inf


@pytest.mark.parametrize(
    ("cap", "at_posting", "ten", "hundred", "many"),
    [(0.1, 1.22, 1.63, 2.33, 2.84), (0.25, 1.67, 2.9, 6.0, 8.9), (0.5, 3.0, 6.1, 22, 45)],
)
def test_the_radius_of_a_capped_layer(cap: float, at_posting: float, ten: float, hundred: float, many: float) -> None:
    assert capped_radius_at_posting(1.0, cap) == pytest.approx(at_posting, rel=0.02)
    for most_open, radius in ((10, ten), (100, hundred), (409, many)):
        assert capped_radius_ticket_fixed(1.0, cap, most_open) == pytest.approx(radius, rel=0.03)


def test_the_masses_of_ages_are_sums_and_their_tails_are_a_little_more() -> None:
    for step, cap, latest, others in (
        (0.5, 0.1, 1, 0), (0.5, 0.1, 2, 0), (0.01, 0.1, 9, 0), (0.01, 0.1, 3000, 0), (0.3, 0.2, 700, 1),
        (0.05, 3.0, 200, 2), (2.0, 0.1, 50, 0),
    ):  # fmt: skip
        ages = range(2, latest + 1)
        exact = sum(min(step, cap / (a + others)) for a in ages)
        assert exact <= age_mass(step, cap, latest, others) * SLACK <= (exact + 1e-4) * SLACK**2
        exact = sum(min(step, math.sqrt(step * cap / a)) for a in ages)
        assert exact <= age_root_mass(step, cap, latest) * SLACK <= (exact + 1e-3) * SLACK**2
        assert age_mass(step, None, latest) == age_root_mass(step, None, latest) == step * len(ages)
    assert age_mass(0.01, 0.1, 10**15) == pytest.approx(0.09 + 0.1 * math.log(1e14), rel=0.01)
    assert age_mass(1e-300, 1e300, 5) == 4e-300


def test_crossings_are_those_of_a_bounded_delay_until_the_cap_acts() -> None:
    assert crossing_mass(0.01, 0.1, 5) == crossing_mass(0.01, None, 5) == pytest.approx(0.09)
    assert crossing_mass(0.01, 0.1, 901) == pytest.approx(0.01 + 2.0 * math.sqrt(9.0 * 0.1))
    assert crossing_mass(0.01, 0.1, 1) == 0.01


def test_a_ranged_mean_is_bounded_on_each_side() -> None:
    assert late_squared_range(0.0, 0.5, 2.0, 0.1, 0.0) == Range(0.0, 2.0)
    where = late_squared_range(0.0, 0.0, 1.0, 0.6, 0.5)
    assert where.low == pytest.approx(-1.0) and where.high == pytest.approx(2.0)
    assert late_squared_range(0.0, -1.0, 1.0, 1.5, 0.0) == late_squared_range(0.0, -1.0, 1.0, 0.6, 0.5)
    assert late_squared_range(0.0, -1.0, 1.0, 1.1, 1.0).length == math.inf
    assert late_squared_wander(2.0, 0.5, 2.0) == 2.0
    assert late_squared_wander(1.0, 0.25, 0.0) == math.inf


def test_late_bounds_are_the_numbers_that_they_say() -> None:
    assert late_squared_radius_in_order(0.0, 2.0, 0.25, 2) == 6.0
    assert late_radius_1d(0.5, 1.0, 2.0, 0.25) == 1.5
    eta, kappa, squared, n, most_open = 0.1, 0.3, 2.0, 50, 4
    growth = late_pull_growth(kappa, squared, eta, n * eta, (most_open - 1) * eta * squared)
    assert growth == pytest.approx(n * eta * (2 * kappa + eta * squared * (2 * most_open - 1)))
    assert late_service_diameter_squared(2.0, 1.0, 0.5) == 7.0
    assert late_service_diameter_quantile(0.0, 1.0, 2.0, 0.5) == 3.0
    assert capped_step(0.5, 0.1, 10) == 0.01 and capped_step(0.005, 0.1, 10) == 0.005
    virtual = late_logistic_virtual_radius(0.0, 1.0, 0.3, 20.0)
    assert late_logit_radius(0.0, 0.3, 20.0) == pytest.approx(virtual + 0.3)
    assert virtual == pytest.approx(math.log(1.0 + math.exp(0.3) * 20.0))
