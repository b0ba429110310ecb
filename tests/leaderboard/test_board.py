"""The leaderboard: one board for games in any order, intervals and ranks that hold, and what its first line says."""

import csv
import gzip
import math

import numpy as np
import pytest

from gradeq.errors import BadInput
from gradeq.layers.board import UNSURE
from gradeq.layers.elo import Elo
from gradeq.leaderboard import fitting
from gradeq.leaderboard.fitting import estimate_covariance, fit
from gradeq.leaderboard.ranks import WIDEST_RANKED, holm_critical_values, holm_threshold, ranks
from gradeq.ledger.pair_table import cells_of
from gradeq.penalties import Ridge

POINTS = 400 / math.log(10)


def drawn(rng, theta, a, b, ties=0.27):
    """Scores of games with these strengths: expected scores are those of Bradley and Terry."""
    p = 1 / (1 + np.exp(theta[b] - theta[a]))
    tie = ties * 4 * p * (1 - p)
    chance = rng.random(len(a))
    return np.where(chance < tie, 0.5, (chance < tie + p - tie / 2).astype(float))


def design(name):
    """Strengths and who plays whom."""
    rng = np.random.default_rng(3)
    if name == "chain":
        pairs = [(k, k + 1) for k in range(29) for _ in range(40)]
        return rng.normal(0, 0.3, 30), *np.array(pairs).T, 0.27
    players, each = {"equal": (30, 10), "small": (12, 4)}[name]
    pairs = [(i, j) for i in range(players) for j in range(i) for _ in range(each)]
    spread, ties = (0.05, 0.27) if name == "equal" else (0.8, 0.0)
    return rng.normal(0, spread, players), *np.array(pairs).T, ties


@pytest.mark.parametrize("name", ["equal", "small", "chain"])
def test_intervals_and_rank_ranges_cover_the_truth(name):
    check_coverage(*design(name), 60)


@pytest.mark.parametrize(("part", "runs"), [(1.0, 12), (0.05, 40)])
def test_intervals_and_rank_ranges_cover_the_truth_on_games_as_played_in_the_arena(arena, part, runs):
    a, b, y, _ = arena
    elo = Elo(0.1)
    elo.run(a, b, y)
    theta = np.zeros(1 + a.max())
    for row in elo.leaderboard("all-time"):
        theta[int(row.player)] = row.rating
    few = np.random.default_rng(4).random(len(a)) < part
    played = np.bincount(np.r_[a[few], b[few]], minlength=len(theta)) >= 30  # as the mean is of these
    check_coverage(theta, a[few], b[few], 0.27, runs, played)


def check_coverage(theta, a, b, ties, runs, ranked=None):
    """Simulate scores of these games: how often intervals and rank ranges hold the truth."""
    rng = np.random.default_rng(7)
    own = np.ones(len(theta), dtype=bool) if ranked is None else ranked
    truth, place = theta - theta[own].mean(), np.zeros(len(theta), dtype=int)
    place[own] = np.argsort(np.argsort(-truth[own])) + 1
    inside, ranges, wrong = [], [], 0
    for _ in range(runs):
        elo = Elo(0.1)
        elo.run(a, b, drawn(rng, theta, a, b, ties))
        board = elo.board("all-time")
        for row in board.rows:
            k = int(row.player)
            inside.append(row.elo_low <= 1000 + POINTS * truth[k] <= row.elo_high)
            if row.rank is not None:
                ranges.append(row.rank_low <= place[k] <= row.rank_high)
        if board.leader is not None and board.leader.verified:
            wrong += place[int(board.leader.player)] != 1
    assert 0.935 < np.mean(inside) < 0.975
    assert not ranges or np.mean(ranges) > 0.95
    assert wrong <= 3


@pytest.fixture(scope="module")
def arena(data_dir):
    scores = {"model_a": 1.0, "model_b": 0.0}
    with gzip.open(data_dir / "arena_140k.csv.gz", "rt") as file:
        rows = [(r["model_a"], r["model_b"], scores.get(r["winner"], 0.5)) for r in csv.DictReader(file)]
    a, b, y = zip(*(row for row in rows if row[0] != row[1]), strict=True)
    names, codes = np.unique([a, b], return_inverse=True)
    codes = codes.reshape(2, -1)
    return codes[0], codes[1], np.array(y), names.tolist()


def test_shuffled_games_give_one_all_time_board_bit_for_bit(arena):
    a, b, y, names = arena
    boards = []
    for seed in range(30):
        order = np.random.default_rng(seed).permutation(len(a))
        elo = Elo(0.1)
        elo.run(a[order], b[order], y[order])
        boards.append([row[:8] for row in elo.leaderboard("all-time")])
    assert all(board == boards[0] for board in boards)
    first = boards[0][0]
    assert names[int(first[3])] == "gemini-2.5-pro" and first[:3] == (1, 1, 1) and round(first[4]) == 1124


def test_intervals_on_arena_are_those_of_a_bootstrap(arena):
    a, b, y, _ = arena
    elo, again = Elo(0.1), []
    elo.run(a, b, y)
    rows = {row.player: row for row in elo.leaderboard("all-time") if row.rank}
    rng = np.random.default_rng(1)
    for _ in range(40):
        pick = rng.integers(0, len(a), len(a))
        other = Elo(0.1)
        other.run(a[pick], b[pick], y[pick])
        found = {row.player: row.elo for row in other.leaderboard("all-time")}
        again.append([found[name] for name in rows])
    spread = np.std(again, axis=0, ddof=1)
    half = np.array([(row.elo_high - row.elo_low) / 2 for row in rows.values()])
    assert abs(np.median(half / (1.96 * spread)) - 1.0) < 0.05


def test_soft_scores_weights_and_corrections_leave_exact_sums():
    rng = np.random.default_rng(2)
    a, b = rng.integers(0, 5, 200), rng.integers(5, 9, 200)
    y, w = rng.random(200), rng.exponential(1.0, 200)
    boards = []
    for seed in range(3):
        elo, order = Elo(0.1), np.random.default_rng(seed).permutation(200)
        for t in order[:100]:
            elo.predict(str(a[t]), str(b[t]), weight=w[t], id=int(t))
            elo.update(0.123, id=int(t))
            elo.correct(int(t), y[t])
        rest = order[100:]
        elo.run(a[rest], b[rest], y[rest], weights=w[rest])
        boards.append([row[:7] for row in elo.leaderboard("all-time")])
    assert boards[0] == boards[1] == boards[2]


def test_merged_partitions_have_the_board_of_the_whole():
    rng = np.random.default_rng(4)
    a, b = rng.integers(0, 5, 400), rng.integers(5, 9, 400)
    y, h = rng.choice([0.0, 0.5, 1.0], 400), rng.choice([-1.0, 0.0, 1.0], 400)
    w = np.where(np.arange(400) < 200, 1.0, 2.0)
    whole, one, other = (Elo(0.1, home_advantage=True) for _ in range(3))
    whole.run(a, b, y, weights=w, home=h)
    one.run(a[:200], b[:200], y[:200], weights=w[:200], home=h[:200])
    other.run(b[200:], a[200:], 1 - y[200:], weights=w[200:], home=-h[200:])
    one.merge(other)
    ours, theirs = ([row[:8] for row in elo.leaderboard("all-time")] for elo in (one, whole))
    assert ours == theirs
    assert one.board("all-time").home[:3] == whole.board("all-time").home[:3]


def test_matchmade_players_are_ranked_although_everyone_wins_half():
    rng = np.random.default_rng(5)
    players = 4000
    theta = np.sort(rng.normal(0, 1, players))
    a = np.repeat(np.arange(players), 30)
    b = np.clip(a + rng.integers(-200, 201, len(a)), 0, players - 1)
    a, b = a[a != b], b[a != b]
    elo = Elo(0.1)
    elo.run(a, b, drawn(rng, theta, a, b))
    found = np.zeros(players)
    for row in elo.leaderboard("all-time"):
        found[int(row.player)] = row.elo
    order = np.argsort(np.argsort(found))
    assert np.corrcoef(order, np.arange(players))[0, 1] > 0.95


@pytest.mark.parametrize("window", [600, 40, 12])
def test_intervals_of_many_players_are_those_of_the_whole_matrix(window):
    rng, players = np.random.default_rng(11), 600
    theta = np.sort(rng.normal(0, 1, players))
    a = np.repeat(np.arange(players), 30)
    b = np.clip(a + rng.integers(-window, window + 1, len(a)), 0, players - 1)
    h = rng.choice([-1.0, 0.0, 1.0], len(a))
    kept = a != b
    a, b, h = a[kept], b[kept], h[kept]
    elo = Elo(0.1, home_advantage=True)
    elo.run(a, b, drawn(rng, theta, a, b), home=h)
    rank = np.argsort(np.argsort(["", *elo.internals.names.players]))
    cells = cells_of(elo.internals.state, rank - 1)
    found, ranked = fit(cells, players, True), np.ones(players, dtype=bool)
    share = fitting.centre_weights(ranked, ranked)
    exact = fitting.all_time(cells, players, True, share)
    variances, common, first = estimate_covariance(cells, players, True, found, share)
    ratio = np.sqrt(variances / exact.view.variances)
    assert 0.98 < np.median(ratio) < 1.03 and ratio.min() > 0.7 and ratio.max() < 1.4
    assert first == pytest.approx(exact.home[1], rel=0.1)
    rows = np.array([common.row(r) for r in range(players)])
    spread = [
        np.sqrt(v[:, None] + v[None] - 2 * c)[np.triu_indices(players, 1)]
        for v, c in ((variances, rows), (exact.view.variances, exact.view.covariance))
    ]
    ratio = spread[0] / spread[1]
    assert 0.97 < np.median(ratio) < 1.05 and ratio.min() > 0.65 and ratio.max() < 1.4
    # Without what players of like strength have in common, pairs are off by twice as much where they meet few others.
    alone = np.sqrt(variances[:, None] + variances[None])[np.triu_indices(players, 1)] / spread[1]
    assert window > 100 or np.std(np.log(alone)) > 1.5 * np.std(np.log(ratio))


def test_drift_is_decided_by_the_games():
    rng = np.random.default_rng(6)
    n, players = 20_000, 30
    a = rng.integers(0, players, n)
    b = (a + rng.integers(1, players, n)) % players
    theta = rng.normal(0, 0.5, players)
    still = Elo()
    still.run(a, b, drawn(rng, theta, a, b))
    assert still.drift()["constant"] > 0.95
    assert still.board().lines[1].startswith("Strengths look constant: all 20,000 games")
    for ours, fitted in zip(still.leaderboard(), still.leaderboard("all-time"), strict=True):
        assert ours.player == fitted.player and abs(ours.elo - fitted.elo) < 1.0
    moving, y = theta.copy(), np.empty(n)
    for t in range(n):
        y[t] = drawn(rng, moving, a[t : t + 1], b[t : t + 1])[0]
        moving[[a[t], b[t]]] += rng.normal(0, 0.07, 2)
    elo = Elo()
    elo.run(a, b, y)
    board = elo.board()
    assert board.constant < 0.05 and board.drift in ((3e-3, "game"), (1e-2, "game"))
    assert board.lines[1].startswith("Strengths drift: recent games count more; all-time first is ")
    truth = moving - moving.mean()
    inside = [r.elo_low <= 1000 + POINTS * truth[int(r.player)] <= r.elo_high for r in board.rows]
    assert np.mean(inside) > 0.85


@pytest.mark.parametrize("home", [False, True])
@pytest.mark.parametrize("view", ["all-time", "now", "auto"])
@pytest.mark.parametrize("players", [12, 40])
def test_strangers_change_nobody_else_and_are_not_compared(players, view, home):
    rng, n = np.random.default_rng(12), 4000
    a = rng.integers(0, players, n)
    b = (a + rng.integers(1, players, n)) % players
    y = drawn(rng, np.linspace(0.8, -0.8, players), a, b)
    boards = []
    for strangers in (0, 40):
        elo = Elo(0.1, home_advantage=home)
        elo.run(a, b, y, home=np.zeros(n) if home else None)
        elo.run(["x"] * strangers, ["y"] * strangers, [1.0, 0.0] * (strangers // 2))
        boards.append(elo.board(view))
    alone, both = boards
    assert [len(group) for group in both.groups] == [players, 2]
    assert both.lines[0].split(" (")[0] == alone.lines[0].split(" (")[0]
    found = {row.player: row for row in both.rows}
    for row in alone.rows:
        other = found[row.player]
        assert other[:3] == row[:3] and abs(other.elo - row.elo) < 0.5
        assert other.elo_high - other.elo_low == pytest.approx(row.elo_high - row.elo_low, rel=0.02)
    for name in ("x", "y"):
        row = found[name]
        assert row.rank is None and row.elo_high - row.elo_low > 5000.0


def test_strangers_are_as_open_among_many_players_as_among_few(monkeypatch):
    rng, n, players = np.random.default_rng(13), 3000, 60
    a = rng.integers(0, players, n)
    b = (a + rng.integers(1, players, n)) % players
    elo = Elo(0.1)
    elo.run(a, b, drawn(rng, np.linspace(0.8, -0.8, players), a, b))
    elo.run(["x"] * 40, ["y"] * 40, [1.0, 0.0] * 20)
    few = {row.player: row for row in elo.leaderboard("all-time")}
    monkeypatch.setattr(fitting, "DENSE", 10)
    for row in elo.leaderboard("all-time"):
        other = few[row.player]
        ratio = (row.elo_high - row.elo_low) / (other.elo_high - other.elo_low)
        assert 0.8 < ratio < 1.25 and (row.rank is None) == (other.rank is None)


def test_the_first_line_gives_the_true_reason_why_nobody_is_ranked():
    day, unsure = np.timedelta64(1, "D"), Elo(dates=True)
    rng = np.random.default_rng(14)
    a = rng.integers(0, 2, 400)
    score = np.where(np.arange(400) // 40 % 2 == a, 1.0, 0.0)  # the better one changes again and again
    times = np.datetime64("1990-01-01", "ns") + np.arange(400) * 20 * day
    unsure.run(a, 1 - a, score, times=times)
    unsure.run([0], [2], [1.0], times=times[-1:] + 20_000 * day)  # a lifetime later
    for view in ("auto", "now"):
        board = unsure.board(view)
        enough = [row for row in board.rows if row.games >= 30]
        assert board.leader is None and board.lines[0] == (
            f"No one is ranked: {len(enough)} players have 30 games or more, "
            "but current strengths are not known within 240 Elo."
        )
        assert all(row.rank is None and row.elo_high - row.elo_low > 480.0 for row in enough)
    assert unsure.board("all-time").leader is not None
    assert int(1.96 * POINTS * math.sqrt(UNSURE)) == WIDEST_RANKED
    alone = Elo(0.1)
    alone.run(["x"] * 40 + ["a", "b"], ["y"] * 40 + ["b", "c"], [1.0, 0.0] * 21)
    assert alone.board().lines[0] == (
        "No player of the largest group that games join has 30 games yet: no one is ranked."
    )
    assert all(row.rank is None for row in alone.leaderboard())


def test_first_lines():
    elo = Elo()
    assert elo.board().lines[0] == "No games yet." and elo.connected() == []
    elo.play("a", "b", 1)
    assert elo.board().lines[0] == "No player has 30 games yet: no one is ranked."
    elo.run(["a"] * 40, ["b"] * 40, [0.5] * 40)
    assert "leads; 1 other may be first" in elo.board().lines[0]
    elo.run(["a"] * 90, ["b"] * 90, [1.0] * 90)
    assert elo.board("all-time").lines[0] == "a is first (p < 0.0001 against its closest rival)."
    with pytest.raises(BadInput, match="all-time"):
        elo.leaderboard("best")


def test_the_board_is_the_same_whatever_forecasts():
    rng = np.random.default_rng(9)
    a = rng.integers(0, 8, 600)
    b = (a + rng.integers(1, 8, 600)) % 8
    y, h = rng.choice([0.0, 0.5, 1.0], 600), rng.choice([-1.0, 0.0, 1.0], 600)
    w, days = rng.choice([0.5, 1.0, 2.0], 600), np.sort(rng.integers(0, 9000, 600))
    given = {"home": h, "weights": w, "times": days.astype("datetime64[D]").astype("datetime64[ns]")}
    boards = []
    for settings in ({}, {"eta": 0.1}, {"k": 8, "proximal": 1e-3}, {"eta": 0.2, "penalty": Ridge(0.01)}):
        elo = Elo(**settings, home_advantage=True, dates=True)
        elo.run(a, b, y, **given)
        for view in ("auto", "all-time", "now"):
            board = elo.board(view)
            rows = [(*row[:8], row.elo_all_time, row.elo_now) for row in board.rows]
            boards.append((rows, board[1:6], board.home[:3], elo.drift()))
    assert boards[3:6] == boards[:3] == boards[6:9] == boards[9:]


def test_the_ladder_is_holms():
    rng = np.random.default_rng(8)
    for _ in range(50):
        sizes = np.abs(rng.normal(0, 3, 20))
        steps = holm_critical_values(19)
        order = np.argsort(-sizes)[:19]
        rejected = np.logical_and.accumulate(sizes[order] > steps)
        assert (np.sort(order[rejected]) == np.flatnonzero(sizes > holm_threshold(sizes, steps))).all()
    found = ranks(np.array([0.0, 0.0, 9.0]), np.ones(3) * 0.1)
    assert found.rank.tolist() == [2, 2, 1] and found.verified
    assert found.low.tolist() == [2, 2, 1] and found.high.tolist() == [3, 3, 1]


@pytest.mark.parametrize("home", [False, True])
def test_a_board_of_games_that_weigh_next_to_nothing_is_printed(home):
    """So little that no cell is left to fit: every player is then at the centre."""
    layer = Elo(eta=0.1, home_advantage=home)
    layer.play("p", "q", 1.0, 1e-11)
    assert {row.player for row in layer.leaderboard()} == {"p", "q"}
