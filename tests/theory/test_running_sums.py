"""Steps that vary, penalties of any strength: what sums of steps prove, against players who see theta."""

import math
import random
from dataclasses import replace

import pytest

from gradeq.numerics import sigmoid
from gradeq.theory import Setting, best_bound, ridge_closed_mean
from theory.adversaries import SLACK, dot, norm

D, ROUNDS = 3, 300
TASKS = ("mean", "quantile", "probability_shift", "probability_logit")
PENALTIES = (None, "lasso", "ridge", "proximal lasso", "proximal ridge")
SHAPES = ("constant", "power", "up and down", "weights")


def error(task, margin, y):
    if task == "mean":
        return margin - y
    if task == "quantile":
        return float(y <= margin) - 0.7
    if task == "probability_shift":
        return 2.0 * sigmoid(margin) - 1.0 - y
    return sigmoid(margin) - y


def steps_of(shape, eta, rng):
    for t in range(1, ROUNDS + 1):
        if shape == "power":
            yield eta * t**-0.5, 1.0
        elif shape == "up and down":
            yield eta * rng.choice((0.1, 0.3, 1.0)), 1.0
        elif shape == "weights":
            yield eta * t**-0.3, rng.choice((0.2, 1.0, 2.0))
        else:
            yield eta, 1.0


def row(rows, theta, rng, margin):
    """A feature row of length 1: along theta by ``margin`` and across it, a random one, or a group."""
    if rows == "groups":
        return [float(j == rng.randrange(D)) for j in range(1)] + [0.0] * (D - 1)
    z = [rng.gauss(0.0, 1.0) for _ in range(D)]
    size = norm(theta)
    if rows == "random" or not size:
        return [x / norm(z) for x in z]
    along = max(-1.0, min(1.0, margin / size))
    z = [x - dot(z, theta) / size**2 * y for x, y in zip(z, theta, strict=True)]
    across, length = math.sqrt(1.0 - along**2), norm(z)
    return [along * y / size + across * x / length for x, y in zip(z, theta, strict=True)]


def moved(theta, z, e, s, w, penalty, strength):
    cut = s * strength
    if penalty == "lasso":
        slopes = [strength * ((x > 0) - (x < 0)) for x in theta]
    elif penalty == "ridge":
        slopes = [strength * x for x in theta]
    else:
        slopes = [0.0] * D
    theta = [x - s * (w * e * v + p) for x, v, p in zip(theta, z, slopes, strict=True)]
    if penalty == "proximal lasso":
        return [math.copysign(max(0.0, abs(x) - cut), x) for x in theta]
    if penalty == "proximal ridge":
        return [x / (1.0 + cut) for x in theta]
    return theta


def play(task, penalty, strength, shape, rows, player, rng, eta=0.4):
    """The setting after each of some rounds, and the largest |sum of w e z_j| then."""
    theta, total = [0.0] * D, [0.0] * D
    mass = squares = changes = square_changes = variation = weights = residuals = heaviest = 0.0
    first = last = top = 0.0
    end = 1.0
    low = 0.0 if task == "probability_logit" else -1.0
    found = []
    for t, (s, w) in enumerate(steps_of(shape, eta, rng), 1):
        z = row(rows, theta, rng, rng.choice((0.0, 0.3, 0.9)))
        margin = dot(z, theta)
        y = end if player == "up" else (low if margin > 0 else end)
        y = rng.choice((low, end)) if player == "random" else y
        if task == "quantile" and player == "edge":
            y = min(end, margin + 1e-9)
        e = error(task, margin, y)
        total = [g + w * e * v for g, v in zip(total, z, strict=True)]
        theta = moved(theta, z, e, s, w, penalty, strength)
        if last:
            change = abs(1.0 / s - 1.0 / last)
            variation, changes = variation + change, changes + mass * change
            square_changes += squares * change
        first, last, top, heaviest = first or s, s, max(top, s), max(heaviest, w)
        mass, squares, weights = mass + s * w, squares + (s * w) ** 2, weights + w
        residuals += w * y * y
        if t in (1, 2, 7, 50, ROUNDS):
            setting = Setting(
                task=task, structure="features", level=0.7, n=t, low=low, high=end, dimension=D,
                clip=0.5, eta=first, eta_last=last, eta_max=top, inverse_variation=variation,
                step_mass=mass, step_squares=squares, mass_changes=changes,
                square_changes=square_changes, weight_max=heaviest, weight_sum=weights,
                penalty=penalty, strength=strength if penalty else 0.0,
                square_sum=residuals if task == "mean" else None,
            )  # fmt: skip
            found.append((setting, max(map(abs, total))))
    return found


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
@pytest.mark.parametrize("task", TASKS)
def test_no_player_exceeds_what_the_sums_of_steps_prove(task, penalty, shape) -> None:
    rng = random.Random(5)
    for strength in (1e-5, 0.01, 0.5):
        for rows in ("spiral", "random", "groups"):
            for player in ("up", "against", "random", "edge"):
                for setting, most in play(task, penalty, strength, shape, rows, player, rng):
                    bound = best_bound(setting)
                    assert bound.value is not None, (setting, bound)
                    assert most / setting.weights <= bound.value * SLACK + 1e-12, (setting, bound)
                    if rows == "groups":  # all of them in one group
                        alone = best_bound(replace(setting, structure="scalar", dimension=1))
                        assert most / setting.weights <= alone.value * SLACK + 1e-12, setting


@pytest.mark.parametrize(
    ("penalty", "least"), [(None, 0.97), ("ridge", 0.97), ("proximal ridge", 0.6), ("lasso", 0.6)]
)
def test_the_growth_of_the_squared_error_is_all_but_attained(penalty, least) -> None:
    """A spiral: each residual is met where the squared norm grows most; the whole norm is the bound's."""
    s, strength, theta, n = 0.3, 1e-3, [0.0, 0.0], 400
    for _ in range(n):
        size = norm(theta)
        rho = 1.0 - s * strength if penalty == "ridge" else 1.0
        margin = 1.0 - rho / (2.0 * rho - s)
        along = min(1.0, margin / size) if size else 1.0
        u = [x / size for x in theta] if size else [1.0, 0.0]
        z = [along * u[0] - math.sqrt(1 - along**2) * u[1], along * u[1] + math.sqrt(1 - along**2) * u[0]]
        e = dot(z, theta) - 1.0
        theta = [*moved([*theta, 0.0], [*z, 0.0], e, s, 1.0, penalty, strength)][:2]
    setting = Setting(
        structure="features", n=n, low=-1.0, high=1.0, dimension=2, eta=s, penalty=penalty,
        strength=strength if penalty else 0.0,
    )  # fmt: skip
    floor = {None: 0.0, "lasso": strength, "proximal lasso": strength}.get(penalty)
    growth = s * rho * rho / (2.0 * rho - s)
    floor = strength * ridge_closed_mean(growth, rho, n) if penalty == "ridge" else floor
    floor = strength * norm(theta) if floor is None else floor
    proven = (best_bound(setting).value - floor) * s * n
    assert least * proven <= norm(theta) <= proven * SLACK


@pytest.mark.parametrize(
    ("alpha", "n", "published"),
    [(0.5, 1000, 0.593), (0.5, 10_000, 0.334), (0.5, 100_000, 0.188), (0.6, 10_000, 0.617), (0.8, 1000, 2.65)],
)  # fmt: skip
def test_decaying_steps_are_bounded_as_sharply_as_with_a_sum_for_each_label(alpha, n, published):
    """Squared error, |r| <= 1, two columns, Power(.25, alpha): within 3 % of the sum of R_i |1/s_i - 1/s_{i-1}|."""
    mass = squares = changes = square_changes = last = 0.0
    for t in range(1, n + 1):
        s = 0.25 * t**-alpha
        if last:
            changes += mass * (1.0 / s - last)
            square_changes += squares * (1.0 / s - last)
        mass, squares, last = mass + s, squares + s * s, 1.0 / s
    setting = Setting(
        structure="overlapping", size=2.0, n=n, low=-1.0, high=1.0, eta=0.25, eta_last=1.0 / last,
        inverse_variation=last - 4.0, step_mass=mass, step_squares=squares, mass_changes=changes,
        square_changes=square_changes,
    )  # fmt: skip
    assert best_bound(setting).value == pytest.approx(published, rel=0.03)
    old = replace(setting, step_mass=None, mass_changes=None)
    assert best_bound(old).value > 2.5 * published


@pytest.mark.parametrize("structure", ["scalar", "disjoint", "features", "overlapping"])
@pytest.mark.parametrize("penalty", PENALTIES[1:])
@pytest.mark.parametrize("task", [*TASKS, "elo"])
def test_a_small_penalty_costs_little(task, penalty, structure) -> None:
    """As the strength goes to 0 the bound goes to that without a penalty."""
    low, high = (0.0, 1.0) if task in ("probability_logit", "elo") else (-1.0, 0.9)
    setting = Setting(
        task=task, structure=structure, n=5000, low=low, high=high, clip=0.3, dimension=4, eta=0.05,
        odds_sum=5000.0, square_sum=2000.0,
    )  # fmt: skip
    if "proximal" in penalty and structure in ("scalar", "disjoint") and task != "elo":
        return  # of several parameters only
    if structure == "disjoint":
        setting = replace(setting, structure="scalar") if task != "elo" else setting
    free = best_bound(setting).value
    small = best_bound(replace(setting, penalty=penalty, strength=1e-9)).value
    many = structure in ("features", "overlapping") and task != "elo"
    assert small <= free * (1.001 if many else 2.5) + 1e-8
    larger = best_bound(replace(setting, penalty=penalty, strength=1e-4)).value
    assert small <= larger + 1e-12
