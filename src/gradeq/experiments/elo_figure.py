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
FEW = 10  # games before the first norm that is drawn
EARLY = (
    50  # one part in so many of all games comes before the first average and rating that is drawn
)
OWN = 50  # games of a player before the first average of its own that is drawn
GAP = np.timedelta64(2 * 365, "D")  # no line is drawn over more than this


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


def broken(x: Any, y: Floats) -> tuple[Any, Floats]:
    """The points of a line, with a break wherever two dates are farther apart than GAP."""
    if x.dtype.kind != "M":
        return x, y
    after = np.flatnonzero(np.diff(x) > GAP) + 1
    return np.insert(x, after, x[after]), np.insert(y, after, np.nan)


def elo_sheet(
    games: Games,
    seasons: Sequence[tuple[str, Season, Look]],
    shown: tuple[str, Season],
) -> Sheet:
    """Three panels over all steps, two over five players at the step that is shown."""

    def line(steps: Any, y: Floats, label: str, look: Look) -> Line:
        some = thinned(len(steps), most=400)
        when = steps + 1 if games.when is None else games.when[steps].astype("datetime64[D]")
        return Line(*broken(when[some], y[some]), label, look)

    first = len(games.y) // EARLY
    middle, truth = centred_mean(games.y, WINDOW)
    rates: list[Mark] = [
        line(middle - 1, centred_mean(s.chances, WINDOW)[1], label, look)._replace(quiet=True)
        for label, s, look in seasons
    ]
    rates.append(line(middle - 1, truth, "labels", TRUTH))
    biases: list[Mark] = [
        Line(*bias_norm(games, season), label, look) for label, season, look in seasons
    ]
    drawn = np.arange(first, len(games.y))
    losses: list[Mark] = [
        line(drawn, running_mean(season.losses)[drawn], label, look)
        for label, season, look in seasons
    ]
    ratings: list[Mark] = [Level(0.0)]
    own: list[Mark] = [Level(0.0)]
    label, season = shown
    late = season.at >= first
    for player, look in zip(games.five, SERIES, strict=False):
        name = games.players[player]
        ratings.append(line(season.at[late], season.ratings[late, player], name, look))
        steps, bias = player_bias(games, season, player)
        enough = (steps >= first) & (np.arange(len(steps)) >= OWN)
        own.append(line(steps[enough], np.abs(bias)[enough], name, look))
    since = f"from game {first + 1:,} on"
    panels = [
        Panel(f"Mean of {WINDOW:,} around each game", games.unit, "chance that b wins", rates),
        Panel(
            "Norm of bias so far", "games", "largest |mean of z(p − y)|", biases,
            x_scale="log", y_scale="log", legend="lower left",
        ),
        Panel(f"Average log loss so far, {since}", games.unit, "log loss", losses, legend=""),
        Panel(
            f"Ratings, {label}, {since}", games.unit, "θ, log-odds", ratings,
            legend="outside", cells=(1, 0, 1, 3),
        ),
        Panel(
            f"Bias of each player so far, {label}, {since}, after {OWN} games of its own", games.unit,
            "|mean chance − win rate|", own, y_limits=(0.0, None), legend="", cells=(2, 0, 1, 3),
        ),
    ]  # fmt: skip
    return Sheet(panels, (3, 3), (13.5, 9.6))
