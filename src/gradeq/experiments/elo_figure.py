"""The sheet of the three Elo figures: win rate, bias and loss by step, then ratings and bias of five players."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradeq.engine.learner import Learner
from gradeq.engine.rows import Pairs
from gradeq.experiments.averages import Floats, centred_mean, running_mean
from gradeq.experiments.descent import serve, values
from gradeq.experiments.games import Games
from gradeq.experiments.sheet import SERIES, TRUTH, Level, Line, Look, Mark, Panel, Sheet, thinned
from gradeq.links import Sigmoid
from gradeq.losses import Logistic
from gradeq.penalties import Penalty
from gradeq.schedules import Schedule

WINDOW = 1000
FEW = 10  # games before the first average that is drawn


class Season(NamedTuple):
    """One run over all games: chances of b, errors, log losses, ratings before the games ``at``, and at the end."""

    chances: Floats
    errors: Floats
    losses: Floats
    at: Any
    ratings: Floats
    final: Floats


def play(games: Games, step: float | Schedule | None, penalty: Penalty | None = None) -> Season:
    """Elo as descent on the log loss of theta_b - theta_a; no step: everybody is equal for ever."""
    n, m = len(games.y), len(games.players)
    every = max(1, n // 500)
    at = np.arange(0, n, every)
    if step is None:
        margins, final = np.zeros(n), np.zeros(m)
        ratings: Floats = np.zeros((len(at), m))
    else:
        learner = Learner(Logistic(), step, penalty=penalty)
        run = learner.run(learner.start(m), Pairs(games.a, games.b), games.y, trace=every)
        assert run.trace is not None
        margins, ratings, final = run.served, run.trace, run.state.theta
    chances = serve(Sigmoid(), np.zeros(n), margins)
    losses = values(Logistic(), margins, games.y)
    return Season(chances, chances - games.y, losses, at, ratings, final)


def bias_norm(games: Games, season: Season) -> tuple[Any, Floats]:
    """Steps t, and the largest coordinate of (1/t) sum z (p - y), in absolute value."""
    stops = thinned(len(games.y), log=True, most=300)[FEW:] + 1
    total, norms, start = np.zeros(len(games.players)), [], 0
    for stop in stops.tolist():
        error = season.errors[start:stop]
        total += np.bincount(games.b[start:stop], error, len(total))
        total -= np.bincount(games.a[start:stop], error, len(total))
        norms.append(np.abs(total).max() / stop)
        start = stop
    return stops, np.array(norms)


def player_bias(games: Games, season: Season, player: int) -> tuple[Any, Floats]:
    """Games of a player, and its mean predicted win chance less its win rate after each of them."""
    as_b, as_a = games.b == player, games.a == player
    own = np.flatnonzero(as_a | as_b)
    signed = np.where(as_b, season.errors, -season.errors)[own]
    return own, running_mean(signed)


def elo_sheet(
    games: Games,
    seasons: Sequence[tuple[str, Season, Look]],
    shown: tuple[str, Season],
) -> Sheet:
    """Three panels over all steps, two over five players at the step that is shown."""

    def x(steps: Any) -> Any:
        return steps + 1 if games.when is None else games.when[steps].astype("datetime64[D]")

    middle, truth = centred_mean(games.y, WINDOW)
    some = thinned(len(middle), most=400)
    rates: list[Mark] = [
        Line(x(middle[some] - 1), centred_mean(s.chances, WINDOW)[1][some], label, look, True)
        for label, s, look in seasons
    ]
    rates.append(Line(x(middle[some] - 1), truth[some], "labels", TRUTH))
    biases: list[Mark] = []
    losses: list[Mark] = []
    for label, season, look in seasons:
        steps, norms = bias_norm(games, season)
        biases.append(Line(steps, norms, label, look))
        average = running_mean(season.losses)
        places = thinned(len(average), most=400)
        losses.append(Line(x(places), average[places], label, look))
    late = [running_mean(s.losses)[len(games.y) // 50 :] for _, s, _ in seasons]
    low, high = min(float(v.min()) for v in late), max(float(v.max()) for v in late)
    ratings: list[Mark] = [Level(0.0)]
    own: list[Mark] = [Level(0.0)]
    label, season = shown
    for player, look in zip(games.five, SERIES, strict=False):
        name = games.players[player]
        ratings.append(Line(x(season.at), season.ratings[:, player], name, look))
        steps, bias = player_bias(games, season, player)
        places = thinned(len(steps), most=400)
        own.append(Line(x(steps[places]), np.abs(bias)[places], name, look))
    panels = [
        Panel(f"Mean of {WINDOW} around each game", games.unit, "chance that b wins", rates),
        Panel(
            "Norm of bias so far", "games", "largest |mean of z(p − y)|", biases,
            x_scale="log", y_scale="log", legend="lower left",
        ),
        Panel(
            "Average log loss so far", games.unit, "log loss", losses,
            y_limits=(low - 0.01, high + 0.01), legend="",
        ),
        Panel(f"Ratings, {label}", games.unit, "θ, log-odds", ratings, legend="outside", cells=(1, 0, 1, 3)),
        Panel(
            f"Bias of each player, {label}", games.unit, "|mean chance − win rate|", own,
            y_limits=(0.0, 0.2), legend="", cells=(2, 0, 1, 3),
        ),
    ]  # fmt: skip
    return Sheet(panels, (3, 3), (13.5, 9.6))
