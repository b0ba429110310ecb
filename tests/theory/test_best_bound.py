"""The bound that a layer prints holds for every sequence, and says what it rests on."""

import math
import random
from dataclasses import replace

import pytest

from gradeq.errors import BadInput
from gradeq.theory import Bound, Setting, best_bound, group_bounds, labels_until
from theory.adversaries import SLACK, Game, Played, play

LABELS = ("greedy", "up", "down", "alternate", "swing", "edge", "extreme", "heavy", "random")
RELEASES = ("fifo", "random", "newest", "burst", "reverse")
TASKS = ("mean", "quantile", "probability_logit", "probability_shift", "glm", "poisson", "multiplicative", "elo")


def random_game(task: str, rng: random.Random) -> Game:
    bounded = {"probability_logit": (0.0, 1.0), "elo": (0.0, 1.0), "probability_shift": (-1.0, 1.0)}
    game = Game(task=task, rounds=rng.choice((40, 120, 300)))
    game.low, game.high = bounded.get(task, (-1.0, 1.0))
    if task in ("mean", "quantile"):
        game.low, game.high = rng.choice(((-1.0, 1.0), (-3.0, 0.5), (0.5, 2.0), (-8.0, 30.0)))
    if task == "glm":
        game.low, game.high = rng.choice(((-0.5, 1.5), (-0.4, 1.4), (0.1, 1.5)))
    if task in ("poisson", "multiplicative"):
        game.low, game.high = rng.choice(((0.5, 2.0), (0.0, 3.0), (0.2, 6.0)))
    if task == "probability_shift" and rng.random() < 0.3:
        game.low, game.high = -0.9, 0.8
    game.level = rng.choice((0.1, 0.5, 0.9))
    game.labels = rng.choice(LABELS)
    game.eta = rng.choice((0.02, 0.1, 0.5))
    if task == "mean":
        game.eta = rng.choice((0.02, 0.1, 0.5, 0.9, 1.4))
    if task in ("probability_logit", "probability_shift", "glm", "quantile"):
        game.eta = rng.choice((0.02, 0.3, 1.0, 3.0))
    game.decay = rng.choice((0.0, 0.0, 0.3, 0.6))
    game.wobble = rng.choice((0.0, 0.0, 0.0, 0.5))
    game.clip = rng.choice((0.2, 0.01, 1e-4))
    if task in ("poisson", "multiplicative"):
        return game
    shape = rng.choice(("scalar", "disjoint", "features"))
    if task == "elo":
        game.dimension, game.size = rng.choice((2, 3, 6)), 2.0
        game.rows = rng.choice(("random", "ladder"))
        game.structure = "features"
    elif shape != "scalar":
        game.structure, game.dimension = shape, rng.choice((2, 4))
        if shape == "features":
            game.size = rng.choice((0.25, 1.0, 3.0))
            game.rows = rng.choice(("random", "spiral", "groups"))
            game.eta = min(game.eta, 1.6 / game.size) if task == "mean" else game.eta
            game.size = 1.0 if game.rows == "groups" else game.size
    if rng.random() < 0.25:
        game.penalty, game.strength = rng.choice(("lasso", "ridge")), rng.choice((0.01, 0.2))
        return game
    if rng.random() < 0.25:
        game.weight = rng.choice((0.3, 1.0))
        game.eta /= 1.0 + game.weight
    if rng.random() < 0.5:
        game.release, game.hold = rng.choice(RELEASES), rng.choice((1, 2, 7))
        if rng.random() < 0.5:
            game.cap, game.epoch = rng.choice((0.1, 0.3, 0.9)), rng.choice((2.0, 50.0))
        elif task == "mean":
            game.eta = min(game.eta, 0.7 / (game.size * (2 * game.hold + 3)))
    if task == "quantile" and rng.random() < 0.3:
        game.zero_scale = rng.choice((1, 4))
    return game


def checked(played: Played) -> Bound:
    bound = best_bound(played.setting())
    if bound.value is not None:
        assert played.largest_total / played.n <= bound.value * SLACK + 1e-9, (played.game, bound)
    return bound


@pytest.mark.parametrize("task", TASKS)
def test_no_player_exceeds_the_bound(task: str) -> None:
    rng = random.Random(sum(map(ord, task)))
    proven, closest = 0, 0.0
    for _ in range(200):
        played = play(random_game(task, rng), rng)
        if not played.n:
            continue
        bound = checked(played)
        if bound.value is not None:
            proven += 1
            closest = max(closest, played.largest_total / played.n / bound.value)
    assert proven >= 100
    assert closest > 0.5  # the players are strong enough to see a bound that is half as large


def test_each_group_keeps_its_own_bound() -> None:
    rng = random.Random(8)
    for task in ("mean", "quantile", "probability_logit", "probability_shift"):
        for _ in range(20):
            game = random_game(task, rng)
            game.structure, game.dimension, game.penalty = "disjoint", 3, None
            game.size, game.rows, game.weight = 1.0, "groups", 0.0
            played = play(game, rng)
            for total, count, bound in zip(played.total, played.counts, group_bounds(played.setting()), strict=True):
                if count and bound.value is not None:
                    assert abs(total) / count <= bound.value * SLACK + 1e-9, game


def test_counts_alone_give_valid_group_bounds() -> None:
    rng = random.Random(9)
    for _ in range(40):
        game = Game(
            task=rng.choice(("mean", "quantile", "probability_shift")),
            structure="disjoint",
            dimension=3,
            rows="groups",
            labels=rng.choice(LABELS),
            eta=rng.choice((0.1, 0.7)),
        )
        played = play(game, rng)
        setting = replace(played.setting(), groups=())
        assert played.largest_total / played.n <= (best_bound(setting).value or 0.0) * SLACK + 1e-9
        for total, count, bound in zip(played.total, played.counts, group_bounds(setting), strict=True):
            assert bound.value is not None
            assert abs(total) / count <= bound.value * SLACK + 1e-9


def test_overlapping_groups_and_players_are_bounded_over_their_own_rows() -> None:
    rng = random.Random(10)
    game = Game(task="elo", structure="features", dimension=4, size=2.0, low=0.0, rows="ladder")
    played = play(game, rng)
    for total, count, bound in zip(played.total, played.counts, group_bounds(played.setting()), strict=True):
        assert bound.value is not None and abs(total) / max(count, 1) <= bound.value * SLACK


def test_no_theorem_means_no_value() -> None:
    rng = {"n": 100, "low": -1.0, "high": 1.0}
    none = [
        Setting(**rng, eta=2.0),
        Setting(**rng, eta=2.0, penalty="lasso", strength=0.1),
        Setting(**rng, structure="features", size=4.0, eta=0.5),
        Setting(**rng, structure="features", lateness=300, eta=0.01),
        Setting(**rng, structure="overlapping", size=2.0, lateness=4000, cap=0.1, eta=0.01),
        Setting(**rng, lateness=102, eta=0.01),
        Setting(**rng, lateness=100, cap=0.1, eta=0.01),  # a cap acted and nobody counted
        Setting(**rng, lateness=3, penalty="ridge", strength=0.1),
        Setting(task="poisson", n=100, low=0.0, high=3.0, lateness=2),
        Setting(task="elo", n=100, dimension=4, lateness=2, home=True),
        Setting(task="multiplicative", n=100, low=-1.0, high=1.0),
        Setting(task="quantile", structure="isotonic", **rng),
        Setting(task="probability_logit", n=100),
        Setting(n=0),
    ]
    for setting in none:
        bound = best_bound(setting)
        assert bound.value is None and bound.vacuous and bound.reason, setting
        assert labels_until(setting, 0.01) is None or not setting.n
        assert all(b.value is None for b in group_bounds(replace(setting, counts=(50, 50))))


def test_the_trivial_value_is_that_of_doing_nothing() -> None:
    assert best_bound(Setting(task="probability_logit", n=1)).trivial == 1.0
    assert best_bound(Setting(task="probability_shift", n=1)).trivial == 2.0
    assert best_bound(Setting(task="quantile", n=1, level=0.9)).trivial == 0.9
    assert best_bound(Setting(task="mean", n=1, low=-3, high=1, largest=2.0)).trivial == 6.0
    few = best_bound(Setting(task="mean", n=5, low=-1, high=1, eta=0.1))
    many = best_bound(Setting(task="mean", n=50, low=-1, high=1, eta=0.1))
    assert few.vacuous and not many.vacuous


def test_the_bound_rests_on_a_named_result_with_its_assumptions() -> None:
    bound = best_bound(Setting(task="quantile", n=1000, low=-2.0, high=3.0, level=0.9, eta=0.1))
    assert bound.value == pytest.approx((3.0 + 0.1 * 0.9) / 100.0)
    assert bound.result == "3.1"
    assert bound.assumptions == ("tracked residuals in [-2, 3]", "each label comes before the next prediction")


SHAPES = [
    Setting(task="mean", n=10, low=-1, high=1),
    Setting(task="quantile", n=10, low=-1, high=1, level=0.9),
    Setting(task="probability_logit", n=10, clip=1e-6, odds_sum=30.0),
    Setting(task="probability_shift", n=10, low=-1, high=1),
    Setting(task="poisson", n=10, low=0, high=3),
    Setting(task="elo", n=10, dimension=20, size=2.0, structure="features"),
    Setting(task="mean", structure="features", n=10, low=-1, high=1, size=4.0),
    Setting(task="mean", structure="disjoint", n=10, counts=(4, 6), low=-1, high=1),
    Setting(task="mean", n=10, low=-1, high=1, eta_last=0.001, decay=0.5),
    Setting(task="mean", n=10, low=-1, high=1, lateness=400, cap=0.1, eta=0.01, inverse_variation=0),
    Setting(task="mean", structure="overlapping", n=10, size=2, low=-1, high=1, lateness=20),
    Setting(task="elo", n=10, dimension=20, lateness=9),
    Setting(task="quantile", structure="isotonic", levels=(0.1, 0.5, 0.9), n=10, low=-1, high=1),
    Setting(task="probability_shift", n=10, low=-1, high=1, penalty="lasso", strength=0.001),
]


@pytest.mark.parametrize("setting", SHAPES, ids=lambda s: f"{s.task}-{s.structure}")
def test_more_labels_never_loosen_the_bound_and_huge_counts_stay_finite(setting: Setting) -> None:
    before = math.inf
    for power in range(13):
        n = 10.0**power
        scale = n / setting.n
        grown = replace(
            setting,
            n=n,
            counts=tuple(c * scale for c in setting.counts),
            odds_sum=None if setting.odds_sum is None else setting.odds_sum * scale,
        )
        value = best_bound(grown).value
        assert value is not None and math.isfinite(value)
        assert value <= before * SLACK
        before = value


@pytest.mark.parametrize("setting", SHAPES, ids=lambda s: f"{s.task}-{s.structure}")
def test_labels_until_is_the_first_count_that_reaches_the_target(setting: Setting) -> None:
    needed = labels_until(setting, 0.02)
    assert needed is not None
    grown, shorter = [
        replace(
            setting,
            n=n,
            counts=tuple(c * n / setting.n for c in setting.counts),
            odds_sum=None if setting.odds_sum is None else setting.odds_sum * n / setting.n,
            eta_last=setting.eta_last and setting.eta_last * (n / setting.n) ** -setting.decay,
        )
        for n in (needed, needed - 1)
    ]
    reached, missed = best_bound(grown).value, best_bound(shorter).value
    assert reached is not None and reached < 0.02
    assert missed is not None and missed >= 0.02


def test_a_penalty_leaves_a_floor_that_no_count_of_labels_removes() -> None:
    setting = Setting(task="mean", n=10, low=-1, high=1, penalty="ridge", strength=0.5)
    assert labels_until(setting, 0.01) is None
    assert labels_until(setting, 0.0) is None


def test_steps_that_change_with_lateness_go_on_changing() -> None:
    steps = {"eta": 0.01, "lateness": 400, "cap": 0.1, "inverse_variation": 900.0}
    late = Setting(n=100, low=-1, high=1, **steps)
    needed = labels_until(late, 0.02)
    assert needed is not None
    grown = replace(late, n=needed, inverse_variation=900.0 * math.sqrt(needed / 100))
    assert (best_bound(grown).value or 1.0) < 0.02
    # Where each row has its own step the variation grows as fast as the count of labels.
    assert labels_until(replace(late, weight_max=3.0, weight_sum=150.0), 0.02) is None
    shared = replace(late, structure="overlapping", size=2.0, eta=0.005, lateness=90)
    assert best_bound(shared).value is not None and labels_until(shared, 0.02) is None
    constant = replace(late, cap=None, lateness=50, inverse_variation=0.0)
    assert labels_until(constant, 0.02) is not None


@pytest.mark.parametrize("structure", ["scalar", "overlapping", "features"])
@pytest.mark.parametrize("lateness", [1, 3])
def test_ranges_that_no_float_can_square_are_bounded_or_refused(structure: str, lateness: int) -> None:
    shape = {"structure": structure, "n": 50, "eta": 0.1, "lateness": lateness}
    plain = best_bound(Setting(low=-1.0, high=1.0, **shape)).value
    assert plain is not None
    for b in (1e-320, 1e-200, 1e200):
        value = best_bound(Setting(low=-b, high=b, square_sum=50.0 * b * b, **shape)).value
        assert value == pytest.approx(plain * b, rel=1e-3)
    for task in ("mean", "quantile", "glm", "poisson", "probability_shift"):
        for penalty in (None, "lasso", "ridge"):
            setting = Setting(
                task=task, low=-1e308, high=1e308, span_low=-1e308, span_high=1e308, weight_max=1e200,
                weight_sum=1e300, penalty=penalty, strength=0.1, **shape,
            )  # fmt: skip
            value = best_bound(setting).value
            assert value is None or math.isfinite(value)


def test_a_home_advantage_is_a_coordinate_with_a_smaller_step() -> None:
    rng, n, eta = random.Random(6), 400, 0.3
    for favour in (0.5, 0.9):
        theta, home, total, own = [0.0] * 3, 0.0, 0.0, [0.0] * 3
        for _ in range(n):
            a, b = rng.sample(range(3), 2)
            p = 1.0 / (1.0 + math.exp(theta[a] - theta[b] - home))
            e = p - float(rng.random() < favour or theta[b] > theta[a])
            theta[a], theta[b], home = (theta[a] + eta * e, theta[b] - eta * e, home - 0.1 * eta * e)
            total, own[a], own[b] = total + e, own[a] - e, own[b] + e
        setting = Setting(task="elo", n=n, counts=(n,) * 3, dimension=3, eta=eta, home=True)
        bound, players = best_bound(setting), group_bounds(setting)
        assert bound.value is not None and abs(total) / n <= bound.value * SLACK
        for sum_of, player in zip(own, players, strict=True):
            assert player.value == pytest.approx(bound.value * math.sqrt(0.1))
            assert abs(sum_of) / n <= player.value * SLACK
    assert best_bound(replace(setting, lateness=2)).reason.endswith("home advantage")
    assert best_bound(replace(setting, penalty="lasso", strength=0.1)).value is None


def test_the_sum_of_squares_sharpens_a_heavy_tail() -> None:
    plain = Setting(task="mean", n=1000, low=-1000, high=1000, eta=0.01)
    sharp = replace(plain, square_sum=1000 * 40.0**2)
    assert best_bound(sharp).value < 0.3 * best_bound(plain).value
    rng = random.Random(4)
    for labels in LABELS:
        for structure, d in (("scalar", 1), ("features", 3)):
            game = Game(labels=labels, low=-8, high=30, eta=0.3, structure=structure, dimension=d)
            played = play(game, rng)
            setting = replace(played.setting(), square_sum=played.square_sum)
            bound = best_bound(setting).value
            assert bound is not None and played.largest_total / played.n <= bound * SLACK


def test_unknown_words_are_refused() -> None:
    wrongs = ({"task": "median"}, {"structure": "tree"}, {"penalty": "l2"}, {"eta": 0.0}, {"lateness": 0})
    for wrong in wrongs:
        with pytest.raises(BadInput):
            Setting(**wrong)


def test_looking_ahead_from_groups_of_few_labels_needs_no_whole_number():
    """A group with a small share of the labels is looked at with less than one: its steps add up to more than 0."""
    one = Setting(
        task="quantile", structure="isotonic", levels=(0.25, 0.75), gaps=(0.0,), n=30,
        low=-1.0, high=100.0, eta=280.0, decay=0.7, lateness=2, cap=0.3,
        step_mass=400.0, step_squares=9e4, mass_changes=1e3, square_changes=1e6, inverse_variation=0.6,
    )  # fmt: skip
    groups = (one, replace(one, n=1, step_mass=280.0, step_squares=280.0**2))
    whole = Setting(task="quantile", structure="disjoint", n=31, eta=280.0, decay=0.7, groups=groups)
    for target in (1e3, 10.0, 0.5):
        answer = labels_until(whole, target)
        assert answer is None or answer > 0


@pytest.mark.parametrize("unit", [1e-150, 1e-99, 1.0, 1e99, 1e150])
def test_the_heaviest_step_has_the_unit_of_the_steps(unit):
    """Quantiles have no unit: the bound of prices in wei is that of prices in ether, weights included."""
    one = Setting(task="quantile", level=0.9, n=100, low=-1.0, high=2.0, eta=0.1, weight_max=5.0, heaviest_step=0.3)
    other = replace(one, low=-unit, high=2.0 * unit, eta=0.1 * unit, heaviest_step=0.3 * unit)
    assert best_bound(other).value == pytest.approx(best_bound(one).value, rel=1e-12)


@pytest.mark.parametrize("penalty", [None, "ridge", "lasso"])
def test_a_bound_of_numbers_whose_squares_underflow_is_not_zero(penalty):
    tiny = 1e-238
    given = {} if penalty is None else {"penalty": penalty, "strength": 1e-3}
    setting = Setting(
        task="mean", structure="overlapping", n=100, low=-tiny, high=tiny, eta=0.1, size=2.0, dimension=4,
        counts=(50, 50), **given,
    )  # fmt: skip
    assert best_bound(setting).value >= tiny
