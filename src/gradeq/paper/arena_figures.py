"""The paper's Elo figures on Chatbot Arena."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, permutations
from typing import NamedTuple

import numpy as np

from gradeq.datasets import arena, football
from gradeq.engine.learner import Learner
from gradeq.engine.rows import PairRows
from gradeq.links import Sigmoid
from gradeq.losses import Logistic
from gradeq.paper import plot
from gradeq.paper.experiment import Number, Result, Source
from gradeq.paper.panels import centred_mean, running_mean, serve, values
from gradeq.paper.plot import Floats, Ints, Values
from gradeq.penalties import Lasso, Penalty
from gradeq.schedules import Power, Schedule
from gradeq.theory import elo_player_bias, elo_radius

FIVE = (
    "gpt-4o-2024-08-06",
    "claude-3-5-sonnet-20240620",
    "llama-3.1-405b-instruct",
    "gemini-1.5-pro-exp-0827",
    "llama-3.1-8b-instruct",
)
OTHER = "theirs: other battles"  # next to numbers of the authors that these games cannot equal
SHUFFLED = "The release is shuffled and has no times, so ratings move by the noise of the step, not by drift."
STAND_IN = "in place of the paper's battles of August 2024, which are not available"


@dataclass(frozen=True, eq=False)
class GameStream:
    """Games in order: players a and b by index, y = 1 where b won; the ``five`` players have lines of their own.

    If the order is arbitrary, ``when`` is None and ``note`` says so.
    """

    data: str
    players: tuple[str, ...]
    a: Ints
    b: Ints
    y: Floats
    when: Values | None
    five: tuple[int, ...]
    is_paper: bool
    note: str = ""

    @property
    def time_axis(self) -> str:
        return "battles, in shuffled order" if self.when is None else "date"

    @property
    def title(self) -> str:
        return self.data.split(",")[0]

    def sentence(self, text: str) -> str:
        return " ".join(part for part in (f"{self.title}: {text}", self.note) if part)


def streams(source: Source) -> dict[str, GameStream]:
    """The paper's 50,000 battles, or the 140k release and, on a second sheet, football."""

    def read() -> dict[str, GameStream]:
        if source.has(arena.PAPER):
            paper = source.load(arena.load_paper)
            name = "Chatbot Arena, the paper's file"
            return {"": _games(name, paper.a, paper.b, paper.winner == "model_b", paper.time, FIVE)}
        votes, matches = source.load(arena.load), source.load(football.load)
        rows = np.isin(votes.winner, ("model_a", "model_b")) & (votes.a != votes.b)
        name = f"LMArena 140k release, shuffled and without times, ties and self-play left out, {STAND_IN}"
        release = _games(name, votes.a[rows], votes.b[rows], votes.winner[rows] == "model_b", None)
        rows = matches.winner != "draw"
        name = f"Men's football internationals since 1872, a at home and b away, draws left out, {STAND_IN}"
        home, away, won = matches.home[rows], matches.away[rows], matches.winner[rows] == "away"
        return {"": replace(release, note=SHUFFLED), "football": _games(name, home, away, won, matches.date[rows])}

    return source.once("games", read)


def _games(
    data: str, a: Values, b: Values, b_won: Values, when: Values | None, five: tuple[str, ...] = ()
) -> GameStream:
    names, codes = np.unique(np.concatenate((a, b)), return_inverse=True)
    players = tuple(str(name) for name in names)
    drawn = np.argsort(-np.bincount(codes), kind="stable")[:5].tolist()  # those with most games
    if five and set(five) <= set(players):
        drawn = [players.index(name) for name in five]
    first, second = codes[: len(a)], codes[len(a) :]
    label = f"{data}; {len(a):,} games, {len(players)} players"
    y = b_won.astype(np.float64)
    return GameStream(label, players, first, second, y, when, tuple(drawn), bool(five))


WINDOW = 1000
FEW = 10  # games before the first drawn norm
EARLY = 50  # averages and ratings are drawn after 1/EARLY of all games
MIN_GAMES = 50  # a player's average is drawn after this many of its games
GAP = np.timedelta64(2 * 365, "D")  # lines break over longer gaps


class Season(NamedTuple):
    """One run: chances of b, errors, log losses, ratings before the games ``at``, and final ratings."""

    chances: Floats
    errors: Floats
    losses: Floats
    at: Ints
    ratings: Floats
    final: Floats


def play(games: GameStream, step: float | Schedule | None, penalty: Penalty | None = None) -> Season:
    """Elo as descent on the log loss of theta_b - theta_a; without a step all ratings stay 0."""
    n, m = len(games.y), len(games.players)
    every = max(1, n // 500)
    at = np.arange(0, n, every)
    if step is None:
        margins, final = np.zeros(n), np.zeros(m)
        ratings: Floats = np.zeros((len(at), m))
    else:
        learner = Learner(Logistic(), step, penalty=penalty)
        run = learner.run(learner.start(m), PairRows(games.a, games.b), games.y, trace=every)
        assert run.trace is not None
        margins, ratings, final = run.served, run.trace, run.state.theta
    chances = serve(Sigmoid(), np.zeros(n), margins)
    losses = values(Logistic(), margins, games.y)
    return Season(chances, chances - games.y, losses, at, ratings, final)


def bias_norm(games: GameStream, season: Season) -> tuple[Values, Floats]:
    """Steps t, and the largest coordinate of (1/t) sum z (p - y), in absolute value."""
    stops = plot.thinned(len(games.y), log=True, most=300)[FEW:] + 1
    total, norms, start = np.zeros(len(games.players)), [], 0
    for stop in stops.tolist():
        error = season.errors[start:stop]
        total += np.bincount(games.b[start:stop], error, len(total))
        total -= np.bincount(games.a[start:stop], error, len(total))
        norms.append(np.abs(total).max() / stop)
        start = stop
    return stops, np.array(norms)


def player_bias(games: GameStream, season: Season, player: int) -> tuple[Values, Floats]:
    """A player's games, and after each of them its mean predicted chance minus its win rate."""
    as_b, as_a = games.b == player, games.a == player
    steps = np.flatnonzero(as_a | as_b)
    return steps, running_mean(np.where(as_b, season.errors, -season.errors)[steps])


def broken(x: Values, y: Floats) -> tuple[Values, Floats]:
    """The points of a line, with a break between dates that are more than GAP apart."""
    if x.dtype.kind != "M":
        return x, y
    after = np.flatnonzero(np.diff(x) > GAP) + 1
    return np.insert(x, after, x[after]), np.insert(y, after, np.nan)


def elo_sheet(
    games: GameStream, seasons: Sequence[tuple[str, Season, plot.Look]], detail: tuple[str, Season]
) -> plot.Sheet:
    """Three panels with all steps, and two with five players at the step of ``detail``."""

    def line(steps: Values, y: Floats, label: str, look: plot.Look) -> plot.Line:
        some = plot.thinned(len(steps), most=400)
        when = steps + 1 if games.when is None else games.when[steps].astype("datetime64[D]")
        return plot.Line(*broken(when[some], y[some]), label, look)

    first = len(games.y) // EARLY
    drawn = np.arange(first, len(games.y))
    middle, truth = centred_mean(games.y, WINDOW)
    rates, biases, losses = [], [], []
    for label, season, look in seasons:
        chances = centred_mean(season.chances, WINDOW)[1]
        rates.append(replace(line(middle - 1, chances, label, look), quiet=True))
        biases.append(plot.Line(*bias_norm(games, season), label, look))
        losses.append(line(drawn, running_mean(season.losses)[drawn], label, look))
    rates.append(line(middle - 1, truth, "labels", plot.TRUTH))
    ratings: list[plot.Mark] = [plot.Level(0.0)]
    players: list[plot.Mark] = [plot.Level(0.0)]
    label, season = detail
    late = season.at >= first
    for player, look in zip(games.five, plot.SERIES, strict=False):
        name = games.players[player]
        ratings.append(line(season.at[late], season.ratings[late, player], name, look))
        steps, bias = player_bias(games, season, player)
        enough = (steps >= first) & (np.arange(len(steps)) >= MIN_GAMES)
        players.append(line(steps[enough], np.abs(bias)[enough], name, look))
    since = f"from game {first + 1:,} on"
    time = games.time_axis
    norm = plot.Panel("Norm of bias so far", "games", "largest |mean of z(p − y)|", biases, legend="lower left")
    title = f"Bias of each player so far, {label}, {since}, after {MIN_GAMES} games of its own"
    single = plot.Panel(title, time, "|mean chance − win rate|", players, legend="", cells=(2, 0, 1, 3))
    panels = [
        plot.Panel(f"Mean of {WINDOW:,} around each game", time, "chance that b wins", rates),
        replace(norm, x_scale="log", y_scale="log"),
        plot.Panel(f"Average log loss so far, {since}", time, "log loss", losses, legend=""),
        plot.Panel(f"Ratings, {label}, {since}", time, "θ, log-odds", ratings, legend="outside", cells=(1, 0, 1, 3)),
        replace(single, y_limits=(0.0, None)),
    ]
    return plot.Sheet(panels, (3, 3), (13.5, 9.6))


STEPS = (0.0, 0.005, 0.05, 0.5)  # the paper's eta; the authors' rates are twice these, on half the loss
CONSTANT = {f"η = {step:g}": step or None for step in STEPS}
FIRST = 0.5  # the paper's eta_1; the authors have 1 on half the loss
RATES_OF_DECAY = (0.0, 0.4, 0.5, 0.6)
DETAIL = 2  # the step whose ratings are drawn
VISIBLE = 0.02  # smallest bias in win rate that is worth a sentence
STRENGTH = 0.002  # of the lasso on the paper's loss; the authors have 0.001 on half of it
Outcome = tuple[list[Number], plot.Sheet, str]  # of one stream of games


class Published(NamedTuple):
    """The authors' last norms of bias and losses, on half the paper's scale, and the ratings of the five."""

    ends: tuple[tuple[float, float], ...]
    ratings: tuple[float, ...]


def _by_stream(source: Source, run: Callable[[str, GameStream], Outcome]) -> Result:
    games = streams(source)
    numbers, sheets, texts = zip(*(run(suffix, stream) for suffix, stream in games.items()), strict=True)
    data = ". ".join(stream.data for stream in games.values())
    return Result(" ".join(texts), tuple(chain(*numbers)), dict(zip(games, sheets, strict=True)), data)


def _rating_figure(
    source: Source,
    steps: Mapping[str, float | Schedule | None],
    looks: Sequence[plot.Look],
    authors: Published,
    text: Callable[[GameStream, list[Season]], str],
    penalty: Penalty | None = None,
    note: str = "",
) -> Result:
    """Ratings with each of the named steps; ``text`` describes them."""

    def run(suffix: str, games: GameStream) -> Outcome:
        seasons = [play(games, step, penalty) for step in steps.values()]
        labels = ["all equal" if step is None else name for name, step in steps.items()]
        detail = (labels[DETAIL] + note, seasons[DETAIL])
        sheet = elo_sheet(games, list(zip(labels, seasons, looks, strict=True)), detail)
        return _numbers(games, suffix, list(steps), seasons, authors), sheet, games.sentence(text(games, seasons))

    return _by_stream(source, run)


def _numbers(
    games: GameStream, suffix: str, names: list[str], seasons: list[Season], authors: Published
) -> list[Number]:
    """Norm of bias and loss of every season, then ratings and bias of the five players."""
    numbers = []
    # The authors' averages omit the last game and count a zero; other battles cannot agree at all.
    near, other = (1e-4, "") if games.is_paper else (math.inf, f" ({OTHER})")
    for name, season, ends in zip(names, seasons, authors.ends, strict=True):
        ours = _final_norm(games, season), float(season.losses.mean())
        for what, value, theirs in zip(("norm of bias", "log loss"), ours, ends, strict=True):
            if suffix:
                numbers.append(Number(f"{what}, {name}, {suffix}", value))
            else:
                numbers.append(Number(f"{what}, {name}{other}", value, theirs, 2 * theirs, near))
    known = dict(zip(FIVE, authors.ratings, strict=True)) if games.is_paper else {}
    for player, bias in zip(games.five, _final_biases(games, seasons[DETAIL]), strict=True):
        name, rating = games.players[player], known.get(games.players[player])
        final = float(seasons[DETAIL].final[player])
        numbers += [Number(f"rating of {name}", final, rating, rating, 1e-3), Number(f"bias of {name}", bias)]
    return numbers


def _final_norm(games: GameStream, season: Season) -> float:
    return float(bias_norm(games, season)[1][-1])


def _final_biases(games: GameStream, season: Season) -> list[float]:
    return [float(player_bias(games, season, player)[1][-1]) for player in games.five]


def arena_elo(source: Source) -> Result:
    authors = Published(
        ((0.010835, 0.346567), (0.002001, 0.326270), (0.000296, 0.324941), (0.000033, 0.354670)),
        (0.316605, 0.218152, 0.464684, 0.876964, -0.536319),
    )

    def text(games: GameStream, seasons: list[Season]) -> str:
        season, step = seasons[DETAIL], STEPS[DETAIL]
        worst = max(map(abs, _final_biases(games, season)))
        counts = [int(((games.a == p) | (games.b == p)).sum()) for p in games.five]
        radius = elo_radius(len(games.players), step, step * len(games.y))
        bound = max(elo_player_bias(0.0, radius, step, count) for count in counts)
        found = (
            f"at η = {step:g} none of the five players is off by more than {worst:.4f} in win rate (proven: "
            f"{bound:.3f}), at a log loss of {season.losses.mean():.4f} (all equal: {math.log(2):.4f})."
        )
        if abs(float(season.errors.mean())) <= VISIBLE:
            return found
        return (
            f"{found} The seat is not a player, so its advantage remains: b wins {100 * games.y.mean():.1f} % of the "
            f"games, the predicted share is {100 * season.chances.mean():.1f} %."
        )

    return _rating_figure(source, CONSTANT, plot.RATES, authors, text)


def arena_decaying(source: Source) -> Result:
    authors = Published(
        ((0.000033, 0.354670), (0.000770, 0.323193), (0.001634, 0.324553), (0.003867, 0.328229)),
        (0.351516, 0.271279, 0.410409, 0.691361, -0.578688),
    )
    decay = RATES_OF_DECAY[DETAIL]

    def text(games: GameStream, seasons: list[Season]) -> str:
        norms = ", ".join(f"{_final_norm(games, season):.5f}" for season in seasons)
        losses = ", ".join(f"{season.losses.mean():.4f}" for season in seasons)
        finals, quick = ([abs(b) for b in _final_biases(games, seasons[k])] for k in (DETAIL, 0))
        ends = (
            f"norm of bias {norms} and log loss {losses} for α = 0, 0.4, 0.5, 0.6. "
            f"At α = {decay:g} the five players are off by {min(finals):.3f} to {max(finals):.3f} in win rate "
            f"at the end, with the constant step by at most {max(quick):.3f}"
        )
        if max(finals) < VISIBLE:
            return f"{ends}."
        return (
            f"{ends}: the bias of a player has not gone to zero here, because steps that have fallen to "
            f"{FIRST * len(games.y) ** -decay:.4f} move ratings slowly. The norm is still small, because it divides "
            "by all games, not by the player's."
        )

    steps = {f"α = {rate:g}": Power(FIRST, rate) for rate in RATES_OF_DECAY}
    return _rating_figure(source, steps, plot.DECAYS, authors, text)


def arena_lasso(source: Source) -> Result:
    authors = Published(
        ((0.010835, 0.346567), (0.002516, 0.329137), (0.001174, 0.326747), (0.000983, 0.349246)),
        (0.086354, 0.025722, 0.248886, 0.586284, -0.407842),
    )

    def text(games: GameStream, seasons: list[Season]) -> str:
        first, second, third = (_final_norm(games, season) for season in seasons[1:])
        return (
            f"the norm of the average gradient ends at {first:.4f}, {second:.4f} and {third:.4f} at the three steps; "
            f"with the larger steps it settles near λ = {STRENGTH:g}, the price of the penalty."
        )

    note = f", λ = {STRENGTH:g}"
    return _rating_figure(source, CONSTANT, plot.RATES, authors, text, Lasso(STRENGTH), note)


# The published shares, in the order of FIVE: how often the row was preferred to the column.
PUBLISHED_WINS = (
    (None, 0.52, 0.49, 0.38, 0.69),
    (0.48, None, 0.45, 0.41, 0.62),
    (0.51, 0.55, None, 0.46, 0.77),
    (0.62, 0.59, 0.54, None, 0.72),
    (0.31, 0.38, 0.23, 0.28, None),
)


def arena_wins(source: Source) -> Result:
    def run(suffix: str, games: GameStream) -> Outcome:
        wins, counts = np.full((5, 5), np.nan), np.zeros((5, 5), dtype=int)
        for (i, one), (j, other) in permutations(enumerate(games.five), 2):
            as_b = (games.b == one) & (games.a == other)
            as_a = (games.a == one) & (games.b == other)
            counts[i, j] = as_a.sum() + as_b.sum()
            if counts[i, j]:
                wins[i, j] = (games.y[as_b].sum() + (1.0 - games.y[as_a]).sum()) / counts[i, j]
        count = int(counts.sum()) // 2
        names = tuple(games.players[player] for player in games.five)
        where = f", {suffix}" if suffix else ""
        theirs = 1108.0 if games.is_paper else None
        numbers = [Number(f"games among the five{where}", float(count), theirs, theirs)]
        for i, j in permutations(range(5), 2):
            cell = PUBLISHED_WINS[i][j] if games.is_paper else None  # to two decimals
            numbers.append(Number(f"{names[i]} beats {names[j]}", float(wins[i, j]), cell, cell, 0.005))
        panel = plot.Panel("Share of games that the row wins", "against", "", [plot.Heat(names, names, wins)])
        best = int(np.nanargmax(np.nanmean(wins, axis=1)))
        text = (
            f"{games.title}: {count:,} games among the five; {names[best]} wins most, "
            f"{100 * np.nanmean(wins[best]):.0f} % on average over the other four."
        )
        return numbers, plot.Sheet([panel], (1, 1), (9.0, 4.6)), text

    return _by_stream(source, run)
