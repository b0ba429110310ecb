"""Games with dates: strengths may drift by the year, in events as in columns."""

import csv
import gzip

import numpy as np
import pytest

from gradeq.layers.elo import Elo
from gradeq.layers.registry import from_json

DAY = 86400 * 10**9


def games(n):
    rng = np.random.default_rng(n)
    a = rng.integers(0, 6, n)
    b = (a + rng.integers(1, 6, n)) % 6
    days = np.sort(rng.integers(-20_000, 20_000, n))
    return a, b, rng.choice([0.0, 0.5, 1.0], n), days * DAY, rng.choice([0.0, 1.0, -1.0], n)


def test_events_columns_cuts_and_json_agree_to_the_last_bit():
    a, b, y, t, h = games(200)
    one, whole, cut = (Elo(home_advantage=True, dates=True) for _ in range(3))
    served = []
    for i in range(200):
        own = {"home": h[i], "time": float(t[i])}
        served.append(one.peek(str(a[i]), str(b[i]), **own))
        one.play(str(a[i]), str(b[i]), y[i], **own)
    run = whole.run(a, b, y, home=h, times=t)
    assert run.served.tolist() == served
    for piece in (slice(0, 70), slice(70, 200)):
        cut.run(a[piece], b[piece], y[piece], home=h[piece], times=t[piece])
        cut = from_json(cut.to_json())
    assert one.internals.state == whole.internals.state
    assert whole.to_json() == cut.to_json() and whole.equilibrium().gap < 1e-14


def test_late_scores_agree_in_tickets_and_columns_and_years_matter():
    a, b, y, t, _ = games(120)
    book, columns, plain = Elo(dates=True), Elo(dates=True), Elo()
    due = t + 400 * DAY
    run = columns.run(a, b, y, times=t, label_times=due)
    waiting, served = [], []
    for i in range(120):
        for k in [k for k in waiting if due[k] <= t[i]]:
            book.update(y[k], id=k)
            waiting.remove(k)
        served.append(book.predict(str(a[i]), str(b[i]), id=i, time=float(t[i])))
        waiting.append(i)
    assert run.served.tolist() == served
    assert plain.run(a, b, y, times=t, label_times=due).served.tolist() != served
    assert book.drift()["weights"].keys() == columns.drift()["weights"].keys()
    assert "0.1 a year" in book.drift()["weights"] and book.drift() == columns.drift()


def test_who_has_not_played_for_long_is_less_sure_now():
    a, b, y, t, _ = games(400)
    elo = Elo(dates=True)
    elo.run(a, b, y, times=t)
    before = {row.player: row.elo_high - row.elo_low for row in elo.leaderboard("now")}
    elo.play("0", "1", 1.0, time=float(t[-1] + 3000 * DAY))
    after = {row.player: row.elo_high - row.elo_low for row in elo.leaderboard("now")}
    if elo.board().drift[1] == "year":
        assert after["3"] > before["3"]


def test_football_with_home_and_dates_is_forecast_well(data_dir):
    with gzip.open(data_dir / "football_internationals.csv.gz", "rt") as file:
        rows = list(csv.DictReader(file))
    a, b = (np.array([row[name] for row in rows]) for name in ("home_team", "away_team"))
    y = np.array([{"home": 1.0, "away": 0.0}.get(row["winner"], 0.5) for row in rows])
    home = np.array([row["neutral"] == "False" for row in rows], dtype=float)
    times = np.array([row["date"] for row in rows], dtype="datetime64[ns]")
    elo = Elo(home_advantage=True, dates=True)
    elo.run(a, b, y, home=home, times=times)
    found, board = elo.equilibrium(), elo.board()
    assert found.loss_after < 0.572 and found.gap < 1e-15
    assert board.constant < 0.01 and board.drift == (0.1, "year")
    assert board.rows[0].player == "Spain" and board.lines[1].endswith("all-time first is Brazil.")
    assert board.home.low < 80.0 < board.home.high and board.home.high - board.home.low < 60.0
    assert board.home.bias == pytest.approx(board.home.from_state, abs=1e-12)
