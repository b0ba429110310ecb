"""What gradeq is compared with on real streams does what its papers say and knows no label too early."""

import json
import math

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from benchmarks.boards import Games
from benchmarks.online import bradley_terry, multiqt
from benchmarks.online.aci import GAMMA, aci
from benchmarks.online.elo import elo
from benchmarks.online.newton import least_squares, online_platt, projected
from benchmarks.online.platt import logit, platt, sigmoid
from benchmarks.online.sf_ogd import sf_ogd
from benchmarks.online.window import Window
from benchmarks.quality_streams import Stream
from benchmarks.real.__main__ import lines
from benchmarks.real.levels import Forecasts
from benchmarks.real.run import KINDS, one
from gradeq import Elo, MultiQuantileTracker

LEVEL, LEVELS = 0.9, (0.1, 0.5, 0.9)


def stream(kind, f, y):
    when = np.arange(len(y), dtype=float)
    group = np.array(["a", "b"])[np.arange(len(y)) % 2]
    return Stream("made", "", kind, f, y, group, when, when)


def made(kind, n, seed=1):
    """Streams in which nothing drifts: what has learned enough must be right."""
    rng = np.random.default_rng(seed)
    if kind == "intervals":
        return [stream("real", np.zeros(n), rng.exponential(3.0, n))]
    if kind == "means":
        f, p = rng.normal(size=n), rng.uniform(0.1, 0.9, n)
        won = rng.random(n) < sigmoid(0.7 * logit(p) + 0.5)
        return [stream("real", f, f + rng.normal(0.5, 1.0, n)), stream("binary", p, won.astype(float))]
    if kind == "levels":
        f = rng.normal(size=n)[:, None] + np.array([-1.0, 0.0, 1.0])
        y = f[:, 1] + rng.standard_t(4, n)
        group = np.array(["a", "b"])[np.arange(n) % 2]
        return [
            Forecasts(LEVELS, f, y, group, [np.arange(n)], 500, True),
            Forecasts(LEVELS, f[:, [1, 1, 1]], y, group, [np.arange(0, n, 2), np.arange(1, n, 2)], 500, False),
        ]  # fmt: skip
    players = np.linspace(-1.0, 1.0, 8)
    a = rng.integers(0, 8, n)
    b = (a + rng.integers(1, 8, n)) % 8
    return [Games(a, b, (rng.random(n) < sigmoid(players[a] - players[b])).astype(float))]


EVERY = [(kind, rule) for kind, own in KINDS.items() for rule in own.rules]
LEARNING = [(kind, rule) for kind, rule in EVERY if rule not in ("raw", "given")]


@pytest.mark.parametrize(("kind", "rule"), LEARNING)
def test_every_rule_is_right_where_nothing_drifts(kind, rule):
    close = {"intervals": 0.03, "means": 0.1, "levels": 0.03, "games": 0.03}[kind]
    for own in made(kind, 8000 if kind == "games" else 6000):
        found = KINDS[kind].measured(own, KINDS[kind].rules[rule].serve(own))
        assert found["bias" if "bias" in found else "error"] < close
        assert found.get("group", 0.0) < 2.0 * close
        assert found.get("width", 1.0) > 0.0


@pytest.mark.parametrize(("kind", "rule"), EVERY)
def test_no_rule_knows_the_label_that_it_is_for(kind, rule):
    """Whatever comes at a row and after it, what is served up to that row is the same."""
    now, n = 1212, 1700
    for own, other in zip(made(kind, n), made(kind, n, seed=2), strict=True):
        changed = own._replace(y=np.concatenate([own.y[:now], other.y[now:]]))
        served = [KINDS[kind].rules[rule].serve(each) for each in (own, changed)]
        if kind == "intervals":
            served = [np.stack(each, axis=1) for each in served]
        if served[0] is not None:
            assert (served[0][: now + 1] == served[1][: now + 1]).all()
            learns = rule not in ("raw", "given") and "once" not in rule and "batch" not in rule
            assert (served[0][now + 1 :] != served[1][now + 1 :]).any() == learns


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_found_has_the_shape_that_the_page_expects(kind):
    own = KINDS[kind]
    few = [("first", made(kind, 2500)[0]), ("last", made(kind, 2500, seed=2)[-1])]
    found = one(own._replace(streams=lambda: iter(few)))
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert list(found) == ["name", "title", "explained", "ours", "measures", "rules", "streams", "all"]  # fmt: skip
    keys = [measure["key"] for measure in found["measures"]]
    assert all(list(measure) == ["key", "title", "format", "how"] for measure in found["measures"])
    assert found["ours"] in found["rules"] and list(found["streams"]) == ["first", "last"]
    for rules in (*found["streams"].values(), found["all"]):
        assert list(rules) == list(found["rules"])
        assert all(list(figures) == keys for figures in rules.values())
    for measure in own.measures:
        each = [found["streams"][name][own.ours][measure.key] for name, _ in few]
        known = [x for x in each if x is not None]
        assert all(x == 1.0 for x in known) or measure.how == "mean"
        whole = found["all"][own.ours][measure.key]
        assert whole == (pytest.approx(np.mean(known)) if known else None)
    text = "\n".join(lines(found, True))
    assert text.count(own.ours) >= 3 and "all 2 streams" in text


def test_the_window_has_the_conformal_quantile():
    rng = np.random.default_rng(3)
    scores, window = rng.normal(size=300), Window(50)
    for t, score in enumerate(scores.tolist()):
        kept = np.sort(scores[max(0, t - 50) : t])
        for level in (0.05, 0.5, 0.9, 0.999):
            k = math.ceil((len(kept) + 1) * level)
            assert window.quantile(level) == (kept[k - 1] if k <= len(kept) else math.inf)
        assert window.share_at_least(score) == pytest.approx(np.mean(kept >= score) if len(kept) else 1.0)
        window.add(score)


def test_steps_of_thresholds_are_those_of_the_papers():
    """ACI: a_t moves by gamma (alpha - missed), which bounds its coverage error; SF-OGD: by D / sqrt(3) at first."""
    scores = np.random.default_rng(4).exponential(1.0, 4000)
    served = np.array(aci(scores.tolist(), LEVEL, 500))
    assert abs(np.mean(scores <= served) - LEVEL) <= (LEVEL + GAMMA) / (GAMMA * len(scores))
    found = sf_ogd([2.0, 2.0, 2.0], LEVEL, 3)
    rate, slopes = 2.0 / math.sqrt(3.0), (-0.9, -0.9)
    second = -rate * slopes[0] / math.sqrt(slopes[0] ** 2)
    assert found[:2] == pytest.approx([0.0, second])
    assert found[2] == pytest.approx(second + rate * 0.9 / math.sqrt(2 * 0.81))


def test_multiqt_keeps_levels_in_order_and_takes_the_step_of_its_paper(monkeypatch):
    """A tenth of the 0.9 quantile of 50 rows of residuals; with a constant step it is gradeq with link linear."""
    own = made("levels", 1500)[0]
    sizes = np.abs(own.y[:, None] - own.f)
    step = multiqt.steps(own.f, own.y)
    for t in (0, 7, 48, 49, 50, 1499):
        assert step[t] == pytest.approx(0.1 * np.quantile(sizes[max(0, t - 49) : t + 1], 0.9))
    served = multiqt.multiqt(own.f, own.y, LEVELS)
    assert (np.diff(served, axis=1) >= 0.0).all()
    first = step[0] * ((own.y[0] > own.f[0]) - (1.0 - np.array(LEVELS)))
    assert served[1] == pytest.approx(np.array(multiqt.increasing((own.f[1] + first).tolist())))
    monkeypatch.setattr(multiqt, "steps", lambda f, y: np.full(len(y), 0.2))
    ours = MultiQuantileTracker(LEVELS, 0.2, link="linear").run(own.f, own.y).served
    assert multiqt.multiqt(own.f, own.y, LEVELS) == pytest.approx(np.asarray(ours), abs=1e-9)


def test_pooling_neighbours_is_isotonic_regression():
    rng = np.random.default_rng(5)
    for n in (1, 2, 7, 23):
        values = np.cumsum(rng.normal(size=n))
        best = IsotonicRegression().fit_transform(np.arange(n), values)
        assert multiqt.increasing(values.tolist()) == pytest.approx(best.tolist())


def test_platt_scaling_solves_its_equations_and_is_finite_when_all_labels_are_equal():
    own = made("means", 500)[1]
    x, wins = np.column_stack([logit(own.f), np.ones(500)]), own.y.sum()
    target = np.where(own.y > 0.5, (wins + 1) / (wins + 2), 1 / (500 - wins + 2))
    served = platt(own.f, own.y)(own.f)
    assert x.T @ (served - target) == pytest.approx([0.0, 0.0], abs=1e-6)
    assert platt(own.f, np.zeros(500))(own.f) == pytest.approx(1 / 502, abs=1e-3)


def test_online_platt_scaling_takes_newton_steps():
    """From (1, 0): A = 100 I + g g', then - A^-1 g / 0.1; what leaves the disc comes back to its edge."""
    p, y = np.array([0.3, 0.6]), np.array([1.0, 0.0])
    x = logit(p)
    g = (p[0] - 1.0) * np.array([x[0], 1.0])
    a, b = np.array([1.0, 0.0]) - np.linalg.solve(100.0 * np.eye(2) + np.outer(g, g), g) / 0.1
    assert online_platt(p, y) == pytest.approx([p[0], sigmoid(a * x[1] + b)])
    norm = np.array([[3.0, 1.0], [1.0, 2.0]])
    edge = np.array(projected(norm, np.array([150.0, -20.0])))
    assert np.linalg.norm(edge) == pytest.approx(100.0)
    turns = np.linspace(0.0, 2.0 * np.pi, 2001)
    ring = 100.0 * np.stack([np.cos(turns), np.sin(turns)])
    away = [d @ norm @ d for d in (ring.T - [150.0, -20.0])]
    assert (edge - [150.0, -20.0]) @ norm @ (edge - [150.0, -20.0]) <= min(away)


def test_recursive_least_squares_is_the_regression_on_all_earlier_rows():
    own = made("means", 400)[0]
    x = np.column_stack([np.ones(400), own.f])
    weights = np.linalg.lstsq(x[:300], own.y[:300] - own.f[:300], rcond=None)[0]
    assert least_squares(own.f, own.y)[300] == pytest.approx(own.f[300] + x[300] @ weights, abs=1e-4)  # fmt: skip


def test_elo_with_a_k_is_gradeq_with_that_k():
    games = made("games", 3000)[0]
    for k in (4.0, 32.0):
        ours = Elo(k=k).run(games.a, games.b, games.y).served
        assert elo(games.a, games.b, games.y, k) == pytest.approx(np.asarray(ours), abs=1e-12)


def test_bradley_terry_gives_every_player_as_many_wins_as_there_were():
    """But for the one drawn game; a player who never played has strength 0."""
    games = made("games", 3000)[0]
    strength = bradley_terry.fitted(games.a, games.b, games.y, 9)
    p = sigmoid(strength[games.a] - strength[games.b])
    both, off = np.r_[games.a, games.b], np.r_[p - games.y, games.y - p]
    assert np.bincount(both, off, 9) == pytest.approx(0.5 - sigmoid(strength), abs=1e-6)
    assert strength[8] == 0.0
