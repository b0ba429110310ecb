"""Sample stories for tests and for looking at: real ones from public data, made-up extreme ones."""

import csv
import gzip
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gradeq.report import game_notices as elo_say
from gradeq.report import notices as say
from gradeq.report.rolling import POINTS, Blocks, StreamHistogram, label_change, numbers, thin, window
from gradeq.report.story import (
    BeforeAfter,
    Bin,
    Certificate,
    Curves,
    EloStory,
    Fact,
    Group,
    LossFigures,
    Method,
    NamedCurve,
    Player,
    Provenance,
    Rolling,
    RollingError,
    Span,
    Spark,
    StepPoint,
    Story,
    ThetaPanel,
    Verdict,
    Worked,
    Worst,
)

HOSTILE = "</script><img src=x onerror=alert(1)>"
AT = datetime(2026, 11, 15, 20, 20, tzinfo=UTC).timestamp()
W = 0.2784645427610738
VERSIONS = "gradeq 0.1.0, Python 3.11.7, numpy 2.4.6"


class Pass(NamedTuple):
    """One pass over a file: served values, final corrections by code, per row errors."""

    served: np.ndarray
    theta: np.ndarray


def shift(p: float, m: float) -> float:
    return p + 2.0 / (1.0 + math.exp(-m)) - 1.0


def logit(p: float, m: float) -> float:
    p = min(max(p, 1e-6), 1 - 1e-6)
    return 1.0 / (1.0 + math.exp(-(math.log(p / (1 - p)) + m)))


def descend(p, y, codes, eta, link=shift) -> Pass:
    """The layer in six lines: serve, learn, over overlapping groups (codes: one row per column)."""
    theta = [0.0] * (int(codes.max()) + 1)
    served = np.empty(len(p))
    rows = list(zip(*(column.tolist() for column in codes), strict=True))
    for t, (raw, label, members) in enumerate(zip(p.tolist(), y.tolist(), rows, strict=True)):
        served[t] = link(raw, sum(theta[j] for j in members))
        for j in members:
            theta[j] -= eta * (served[t] - label)
    return Pass(served, np.array(theta))


def compas_rows(data: Path) -> list[dict[str, str]]:
    with gzip.open(data / "compas.csv.gz", "rt", encoding="utf-8") as file:
        races = {"African-American", "Caucasian", "Hispanic"}
        rows = [row for row in csv.DictReader(file) if row["race"] in races]
    return sorted(rows, key=lambda row: row["compas_screening_date"])


def day(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def compas(data: Path, hostile: str | None = None) -> Story:
    """COMPAS by race and sex with the shift link; ``hostile`` renames one group."""
    rows = compas_rows(data)
    y = np.array([float(row["is_recid"]) for row in rows])
    p = np.array([float(row["v_decile_score"]) / 10 for row in rows])
    x = np.array([day(row["compas_screening_date"]) for row in rows])
    races, sexes = ("African-American", "Caucasian", "Hispanic"), ("Female", "Male")
    race = np.array([races.index(row["race"]) for row in rows])
    sex = np.array([sexes.index(row["sex"]) for row in rows])
    names = [*(("race", r) for r in races), *(("sex", s) for s in sexes)]
    codes = np.stack([race, 3 + sex])
    eta, n = 0.025, len(y)
    run = descend(p, y, codes, eta)
    reach = math.sqrt(n * (4 * eta * W + 8 * eta**2))

    blocks = Blocks(("before", "after", "label", "label_squared", "loss_before", "loss_after"))
    columns = {
        "before": p, "after": run.served, "label": y, "label_squared": y * y,
        "loss_before": (p - y) ** 2, "loss_after": (run.served - y) ** 2,
    }  # fmt: skip
    blocks.add(columns, x)
    series = blocks.trailing(window(n))
    change = label_change(blocks)
    assert change is not None
    span = Span(change.x, None, "from 2 Apr 2014 every label is 1")

    groups, panels = [], {}
    parts = {by: Blocks(("before", "after"), 200, 1024) for by in ("race", "sex")}
    for by, column in (("race", race), ("sex", sex)):
        parts[by].add({"before": p - y, "after": run.served - y}, x, column)
    for j, (by, who) in enumerate(names):
        mine = codes[0 if by == "race" else 1] == j
        rows_j = int(mine.sum())
        local = j if by == "race" else j - 3
        small = parts[by].group_trailing(local)
        spark = Spark(tuple(small.x), numbers(small.means["before"]), numbers(small.means["after"]))
        groups.append(
            Group(
                by,
                hostile if hostile and j == 1 else who,
                rows_j,
                float(y[mine].mean()),
                float((p - y)[mine].mean()),
                float((run.served - y)[mine].mean()),
                BeforeAfter(float(((p - y) ** 2)[mine].mean()), float(((run.served - y) ** 2)[mine].mean())),
                reach / (eta * rows_j),
                spark=spark,
            )
        )
        picked = thin(n, POINTS)
        at, sums = x[picked], np.cumsum(np.where(mine, run.served - y, 0.0))[picked]
        panels.setdefault(by, (at, []))[1].append(NamedCurve(groups[-1].name, numbers(-eta * sums)))
    bias = BeforeAfter(float((p - y).mean()), float((run.served - y).mean()))
    loss = LossFigures("squared error", float(((p - y) ** 2).mean()),
                float(((run.served - y) ** 2).mean()))  # fmt: skip
    was = max(groups, key=lambda g: abs(g.before))
    now = max(groups, key=lambda g: abs(g.after))
    tally = StreamHistogram(0.0, 1.0)
    tally.add(run.served)
    shown = tally.histogram()
    largest = max(abs(g.after) * g.rows for g in groups) / n
    before = LossFigures("squared error", change.before["loss_before"], change.before["loss_after"])
    mean = BeforeAfter(change.before["label"], change.after["label"])
    jump = say.LabelChange("date", change.x, change.rows_after, mean)
    warnings = [
        say.labels_changed(
            jump,
            BeforeAfter(change.after["before"] - change.after["label"],
                 change.after["after"] - change.after["label"]),
            "the score", True,
            (BeforeAfter(change.before["before"] - change.before["label"],
                  change.before["after"] - change.before["label"]), before),
        ),
        say.error_from_change(jump, before),
        say.outside_range(
            shown.below + shown.above, n, shown.minimum, shown.maximum, "shift",
        ),
        say.loose_bounds(sum(g.bound > abs(g.before) for g in groups), len(groups)),
    ]  # fmt: skip
    frontier = [StepPoint(0.0, loss.before, max(abs(g.before) for g in groups))]
    for step in (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2):
        worst, mean = worst_of(descend(p, y, codes, step).served, y, codes)
        frontier.append(StepPoint(step, mean, worst, step == eta))
    female = groups[3]
    return Story(
        kind="debias",
        made=Provenance(
            "compas.csv",
            "gradeq debias compas.csv --prediction score --label is_recid --outcome binary \\\n"
            "  --link shift --by race --by sex --eta 0.025 --time compas_screening_date \\\n"
            "  --report report.html --state compas-state.json",
            "compas-state.json", at=AT, version="0.1.0", versions=VERSIONS,
        ),
        prediction=("score",),
        label="is_recid",
        by=("race", "sex"),
        outcome="binary",
        rows=n,
        labelled=n,
        verdict=Verdict(
            loss, Certificate(largest, reach / (eta * n), 2.1e-17), bias,
            worst=Worst(was.name, was.before, now.name, now.after),
        ),
        method=Method("shift", (Worked(female.name, female.rows, float(run.theta[3]),
                                       female.after, eta, tail=", the bias in the table"),)),
        notices=tuple(warnings),
        rolling=Rolling(
            "date", "compas_screening_date", series.window, tuple(series.x),
            numbers(series.means["before"]), numbers(series.means["after"]),
            numbers(series.means["label"]),
            (RollingError("", 0.0, numbers(series.means["before"] - series.means["label"]),
                     numbers(series.means["after"] - series.means["label"])),),
            begin=float(x[0]), span=span,
        ),
        groups=tuple(groups),
        groups_total=len(groups),
        frontier=tuple(frontier),
        theta=tuple(ThetaPanel(by, "date", tuple(at), tuple(lines))
                    for by, (at, lines) in panels.items()),
        theta_scale="in log-odds of the shift",
        histogram=shown,
        data=(
            Fact("Rows", f"{n:,}, all labelled, none skipped"),
            Fact("Order", "`compas_screening_date`, ties in file order"),
            Fact("Time span", "1 January 2013 to 31 December 2014"),
            Fact("Prediction", f"`score`, 10 distinct values, 0.1 to 1.0, mean {p.mean():.3f}"),
            Fact("Label", f"`is_recid`, 0 or 1, mean {y.mean():.3f}"),
            Fact("Groups", "3 of `race`, 2 of `sex`"),
        ),
    )  # fmt: skip


def worst_of(served, y, codes) -> tuple[float, float]:
    """Worst group |bias| and mean squared error."""
    error = served - y
    worst = max(abs(float(error[column == j].mean())) for column in codes for j in np.unique(column))
    return worst, float((error**2).mean())


def elo_games(data: Path) -> tuple[list[str], np.ndarray, np.ndarray, np.ndarray]:
    with gzip.open(data / "arena_140k.csv.gz", "rt", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["model_a"] != row["model_b"]]
    players = sorted({row["model_a"] for row in rows} | {row["model_b"] for row in rows})
    place = {player: i for i, player in enumerate(players)}
    score = {"model_a": 1.0, "model_b": 0.0}
    a = np.array([place[row["model_a"]] for row in rows])
    b = np.array([place[row["model_b"]] for row in rows])
    return players, a, b, np.array([score.get(row["winner"], 0.5) for row in rows])


def rate(a, b, y, eta, players, keep=()) -> tuple[np.ndarray, np.ndarray, dict[int, list[float]]]:
    """Elo in six lines: pre-game predictions, final ratings, and the paths of a few players."""
    theta = [0.0] * players
    p = np.empty(len(y))
    path: dict[int, list[float]] = {i: [] for i in keep}
    every = max(len(y) // 400, 1)
    for t, (i, j, won) in enumerate(zip(a.tolist(), b.tolist(), y.tolist(), strict=True)):
        p[t] = 1.0 / (1.0 + math.exp(theta[j] - theta[i]))
        move = eta * (won - p[t])
        theta[i] += move
        theta[j] -= move
        if keep and t % every == 0:
            for k in keep:
                path[k].append(1000 + 400 / math.log(10) * theta[k])
    return p, np.array(theta), path


def arena(data: Path, hostile: str | None = None) -> EloStory:
    """Arena 140k with K = 4; the ± are a plain normal guess, good enough to look at."""
    names, a, b, y = elo_games(data)
    count, k = len(names), 4.0
    per_k = math.log(10) / 400
    _, first, _ = rate(a, b, y, k * per_k, count)
    order = np.argsort(-first)
    keep = [int(i) for i in (*order[:3], order[20], order[-4], order[-2])]
    p, theta, path = rate(a, b, y, k * per_k, count, keep)
    elo = 1000 + theta / per_k
    games = np.bincount(a, minlength=count) + np.bincount(b, minlength=count)

    def total(side_a: np.ndarray) -> np.ndarray:
        return np.bincount(a, side_a, count) + np.bincount(b, 1 - side_a, count)

    wins, expected = total(y), total(p)
    bias = (expected - wins) / games
    bound = 43.0 / (k * per_k * games)  # of the right size only
    half = 31.0
    low, high = elo - half, elo + half
    rows = []
    for i in range(count):
        ranked = games[i] >= 30
        above = int((low > high[i]).sum())
        below = int((high < low[i]).sum())
        rows.append(
            player(
                1 + above if ranked else None,
                hostile if hostile and i == order[1] else names[i],
                float(elo[i]),
                int(games[i]),
                float(wins[i] / games[i]),
                float(bias[i]),
                float(bound[i]),
                count - below if ranked else None,
                half,
                bool(bound[i] >= 1.0),
            )
        )
    frontier = []
    for other in (1, 2, 4, 8, 16, 32):
        q, _, _ = rate(a, b, y, other * per_k, count)
        off = np.abs(total(q) - wins) / games
        frontier.append(StepPoint(other, log_loss(q, y), float(off[games >= 30].max()), other == k))
    lead = int(order[0])
    ranked_rows = [row for row in rows if row.rank is not None]
    worst = max(ranked_rows, key=lambda row: abs(row.bias))
    off_by_one = len(elo_say.clearly_off(ranked_rows))
    return EloStory(
        made=Provenance(
            "arena_140k.csv.gz",
            "gradeq elo arena_140k.csv.gz --winner winner \\\n  --a model_a --b model_b "
            "--ties half --k 4 \\\n  --skip-self --report elo.html -o leaderboard.csv",
            "elo-state.json", at=AT, version="0.1.0", versions=VERSIONS,
        ),
        a="model_a", b="model_b", games=len(y), players=count,
        loss=LossFigures("log loss", math.log(2), log_loss(p, y)),
        certificate=Certificate(float(np.abs(bias).max()), None, 1.2e-15),
        rows=tuple(rows), k=k, eta=k * per_k, noun="model",
        method=Method("elo", (Worked(names[lead], int(games[lead]), float(theta[lead]),
                                     float(bias[lead]), k * per_k),)),
        ties=int((y == 0.5).sum()), skipped=10,
        lines=(f"{names[lead]} leads.", "All games count alike."),
        notices=(
            elo_say.predicted_off(worst.player, worst.bias, worst.games, off_by_one,
                              len(ranked_rows), "model"),
            elo_say.no_time(),
            say.vacuous_bounds(sum(row.vacuous for row in rows), count, "model",
                               say.vacuous_because(40, k * per_k, None, "", True, "model")),
        ),
        curves=Curves(
            "row", "game", tuple(float(1 + i * (len(y) // 400)) for i in range(len(path[lead]))),
            tuple(NamedCurve(hostile if hostile and i == order[1] else names[i],
                       numbers(np.array(path[i]))) for i in keep),
        ),
        bins=tuple(bins(p, y)),
        frontier=tuple(frontier),
    )  # fmt: skip


def player(rank, name, elo, games, win_rate, bias, bound, rank_high=None, half=20.0, vacuous=False) -> Player:
    """A row of a leaderboard; its interval is ``elo`` and ``half`` on both sides."""
    return Player(
        rank, rank, rank_high or rank, name, elo, elo - half, elo + half, games, win_rate, win_rate + bias, bias,
        bound, vacuous,
    )  # fmt: skip


def log_loss(p: np.ndarray, y: np.ndarray) -> float:
    return float(-np.mean(y * np.log(p) + (1 - y) * np.log1p(-p)))


def bins(p: np.ndarray, y: np.ndarray) -> Iterator[Bin]:
    place = (p * 20).astype(int)
    for i in np.unique(place):
        mine = place == i
        n, mean = int(mine.sum()), float(y[mine].mean())
        half = 1.96 * math.sqrt(max(float(y[mine].var()), 1e-9) / n)
        if n >= 100:
            yield Bin(float(p[mine].mean()), mean, n, mean - half, mean + half)
