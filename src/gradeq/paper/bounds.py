"""Every proven bound against its worst sequence; the growth of Elo ratings; how large a step late labels allow."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from gradeq import theory
from gradeq.engine.learner import Learner
from gradeq.engine.learner_state import LearnerState
from gradeq.geometries import Box, EntropicSimplex, NonNegative
from gradeq.layers.ensemble import QuantileEnsemble
from gradeq.layers.quantile import MultiQuantileTracker
from gradeq.ledger.values import Ticket
from gradeq.losses import Logistic, Poisson, Quantile, Squared
from gradeq.numerics import LAMBERT_W, sigmoid
from gradeq.paper import plot
from gradeq.paper.experiment import Number, Result, Source
from gradeq.paper.panels import running_mean
from gradeq.paper.plot import Floats, Ints
from gradeq.penalties import Lasso, Ridge
from gradeq.schedules import Power
from gradeq.theory import average_from_radius, feature_average, squared_radius

ETA, ROUNDS, MANY = 0.1, 3000, 20_000
SLACK = 1e-9  # rounding
FLOOR = 1e-4  # smaller values are drawn here: a logarithmic axis has no zero
LEVEL = 0.9
COVERAGE = "|coverage − 0.9|"
STRENGTH = 0.02  # of a penalty
# Sees theta and the round; chooses the row (None: one parameter) and the label.
Adversary = Callable[[Floats, int], tuple[Floats | None, float]]
Bound = Callable[[int], float]  # of the number of rounds


class Trial(NamedTuple):
    """The size of the average gradient after ``at`` rounds, its proven bound, and other lines of the panel."""

    title: str
    at: Ints
    run: Floats
    bound: Floats
    unit: str
    more: tuple[plot.Line, ...]

    @property
    def ratio(self) -> float:
        """How close the run comes to its bound: at most 1."""
        return float((self.run / self.bound).max())

    @property
    def panel(self) -> plot.Panel:
        run = plot.Line(self.at, np.maximum(self.run, FLOOR), "run", plot.AFTER)
        marks = [run, plot.Line(self.at, self.bound, "bound", plot.BOUND), *self.more]
        unit = f"{self.unit}, at least {FLOOR:g}" if self.run.min() < FLOOR else self.unit
        return plot.Panel(self.title, "rounds T", unit, marks, x_scale="log", y_scale="log")


def trial(
    title: str,
    run: Floats,
    bound: Bound,
    unit: str = "|average gradient|",
    beside: Mapping[str, Floats] | None = None,
    look: plot.Look = plot.BEFORE,
) -> Trial:
    """A run against its bound, round by round; ``beside`` holds other lines by label."""
    at = plot.thinned(len(run), log=True, most=80) + 1
    more = tuple(plot.Line(at, values[at - 1], label, look) for label, values in (beside or {}).items())
    return Trial(title, at, run[at - 1], np.array([bound(t) for t in at.tolist()]), unit, more)


def descend(
    learner: Learner, adversary: Adversary, rounds: int = ROUNDS, start: int = 1, normal: bool = False
) -> Floats:
    """The norm of the average gradient (plus normal part) after each round; every label is known at once."""
    state, path = learner.start(start), []
    for t in range(1, rounds + 1):
        row, y = adversary(state.theta, t)
        state, ticket = learner.ticket(state, row)
        state = learner.update(state, ticket, y)
        path.append(_size(state, normal))
    return np.array(path)


def _size(state: LearnerState, normal: bool = False) -> float:
    return float(np.linalg.norm(state.gradients + (state.normals if normal else 0.0)) / state.n)


def within(radius: float, eta: float = ETA) -> Bound:
    return lambda t: average_from_radius(0.0, radius, eta, t)


def constant(y: float) -> Adversary:
    return lambda theta, t: (None, y)


def spiral(y: float, margin: float) -> Adversary:
    """Unit rows in the plane with this margin, otherwise at right angles to theta: its norm grows most."""

    def play(theta: Floats, t: int) -> tuple[Floats, float]:
        length = float(np.linalg.norm(theta))
        if length <= abs(margin):
            return np.array([1.0, 0.0]) if t == 1 or length == 0.0 else theta / length, y
        along = margin / length
        across = math.sqrt(1.0 - along * along)
        turned = np.array([-theta[1], theta[0]])
        return (along * theta + across * turned) / length, y

    return play


# At this margin an error pushes outward most: u sigma(-u) is largest (lem:logistic_grad_inner_prod).
LOGISTIC_SPIRAL = spiral(1.0, 1.0 + LAMBERT_W)
# At this margin every step adds as much as any can.
SQUARED_SPIRAL = spiral(1.0, (1.0 - ETA) / (2.0 - ETA))


def result(*trials: Trial, columns: int = 4) -> Result:
    rows = math.ceil(len(trials) / columns)
    panels = [trial.panel for trial in trials]
    sheet = plot.Sheet(panels, (rows, columns), (3.7 * columns, 3.1 * rows))
    numbers = tuple(Number(f"{trial.title}: run / bound", trial.ratio) for trial in trials)
    near = sum(trial.ratio > 0.9 for trial in trials)
    loosest = min(trials, key=lambda trial: trial.ratio)
    above = [trial.title for trial in trials if trial.ratio > 1.0 + SLACK]
    verdict = f"ABOVE THEIR BOUND: {', '.join(above)}." if above else "No run exceeds its bound."
    text = (
        f"{verdict} {near} of {len(trials)} come within a tenth of it at some horizon; the loosest is "
        f"{loosest.title} ({loosest.ratio:.2f} of its bound)."
    )
    return Result(text, numbers, {"": sheet})


def bounds_one(source: Source) -> Result:
    """One parameter: labels at the end of their range push theta to the end of its range."""
    one, jump, counts = Learner(Squared(), ETA), 1.5, (0.05, 5.0)
    radius, wide, first = (squared_radius(0.0, 1.0, eta) for eta in (ETA, jump, 1.0))
    printed = [theory.squared_bias_printed(0.0, 1.0, 0.5, ETA, n) for n in range(1, ROUNDS + 1)]
    gap = 0.01  # of soft labels from the ends of [0, 1]
    soft = theory.logistic_soft_radius(0.0, 1.0, gap, ETA)
    soft_printed = np.asarray((ETA + math.log(1.0 / (2.0 * gap))) / (ETA * np.arange(1, MANY + 1)))
    poisson = theory.exponential_range(0.0, *counts, 1.0, counts[1], ETA, ETA * ROUNDS)
    # A group with one row in twenty; its bound depends on its own count.
    rare = (np.arange(60_000) % 20 == 0).astype(np.int64)
    labels = np.where(rare == 1, 1.0, -1.0)
    errors = (one.run(one.start(2), rare, labels).served - labels)[rare == 1]
    return result(
        trial(  # labels in [-1, 1], all of them 1
            "3.1 quantile", descend(Learner(Quantile(LEVEL), ETA), constant(1.0)),
            lambda t: theory.quantile_coverage_gap(0.0, -1.0, 1.0, LEVEL, ETA, t), COVERAGE,
        ),
        trial(
            "3.2 squared error", descend(one, constant(1.0)), within(radius),
            beside={"printed, δ = 1/2": np.array(printed)}, look=plot.PRINTED,
        ),
        trial(  # theta jumps from side to side, the labels with it
            "3.2 squared error, η = 1.5",
            descend(Learner(Squared(), jump), lambda u, t: (None, 1.0 if u[0] <= 0.0 else -1.0), 300),
            within(wide, jump),
        ),
        trial(  # also result 1.2: labels change sides after ever longer stretches
            "3.2 decaying, α = 1/2",
            descend(
                Learner(Squared(), Power(1.0, 0.5)),
                lambda u, t: (None, 1.0 if int(math.log(t) / math.log(6.0)) % 2 == 0 else -1.0),
            ),
            lambda t: theory.average_with_power_steps(first, 1.0, 0.5, t),
        ),
        trial(
            "3.3 logistic, ε = 0.01", _growth(1.0 - gap), within(soft),
            beside={"printed": soft_printed}, look=plot.PRINTED,
        ),
        trial(  # every label is 1, and theta grows like log T
            "3.4 logistic, hard labels", _growth(1.0),
            lambda t: theory.logistic_hard_radius(0.0, 1.0, ETA, ETA * t) / (ETA * t),
        ),
        trial("3.5 Poisson", descend(Learner(Poisson(), ETA), constant(counts[0])), within(poisson.radius(0.0))),
        trial("4 disjoint groups, the rare one", np.abs(running_mean(errors)), within(radius), "|bias| in the group"),
    )  # fmt: skip


def _growth(label: float) -> Floats:
    """theta over eta T on the logistic loss, for many equal labels."""
    learner = Learner(Logistic(), ETA)
    run = learner.run(learner.start(), None, np.full(MANY, label))
    return np.asarray(np.append(run.served[1:], run.state.theta) / (ETA * np.arange(1, MANY + 1)))


def bounds_many(source: Source) -> Result:
    """Rows push theta outward as hard as the loss allows."""
    radius = theory.ridge_radius(0.0, 1.0, 1.0, STRENGTH, ETA)
    box = Learner(Squared(), ETA, geometry=Box(-0.5, 0.5))
    inside = theory.radius_1d(0.0, 0.5, 1.5, ETA)
    return result(
        trial(
            "5.1 logistic, features", descend(Learner(Logistic(), ETA), LOGISTIC_SPIRAL, start=2),
            lambda t: feature_average(0.0, theory.logistic_growth(1.0, 1.0, ETA, ETA * t), ETA, t),
        ),
        trial(
            "5.2 squared error, features", descend(Learner(Squared(), ETA), SQUARED_SPIRAL, start=2),
            lambda t: feature_average(0.0, theory.squared_growth(ETA * t, 1.0, ETA), ETA, t),
        ),
        trial(  # labels in [-1, 1], just missed each time
            "5.3 quantile, features", descend(Learner(Quantile(LEVEL), ETA), spiral(1.0, 1.0 - 1e-9), start=2),
            lambda t: feature_average(0.0, theory.quantile_growth(-1.0, 1.0, LEVEL, 1.0, ETA, ETA * t), ETA, t),
        ),
        trial(  # the bias does not go below the penalty
            "6.1 logistic with lasso",
            descend(Learner(Logistic(), ETA, penalty=Lasso(STRENGTH)), LOGISTIC_SPIRAL, start=2),
            lambda t: theory.logistic_lasso_average(0.0, 1.0, 1.0, STRENGTH, 2, ETA, t),
        ),
        trial(
            "6.2 squared error with ridge",
            descend(Learner(Squared(), ETA, penalty=Ridge(STRENGTH)), SQUARED_SPIRAL, start=2),
            lambda t: theory.penalised_average(0.0, radius, STRENGTH * radius, ETA, t),
        ),
        trial(  # gradient plus normal part vanishes, the gradient alone does not
            "7.1 projected onto a box", descend(box, constant(1.0), normal=True),
            lambda t: theory.projected_average(0.0, inside, ETA, t), "|average of g + n|",
            {"gradient alone": descend(box, constant(1.0))},
        ),
        _floored(),
        _ensemble(),
    )  # fmt: skip


def _floored() -> Trial:
    """Result 7.3: exponentiated gradient with every weight at least 0.01."""
    floor, eta, g, path = 0.01, 0.5, np.array([0.0, 1.0, 1.0]), []
    learner = Learner(Squared(), eta, geometry=EntropicSimplex(floor))
    state = learner.start(3)
    for _ in range(ROUNDS):
        state = learner.descend(state, g)
        path.append(_size(state, True))
    size = math.hypot(*g)
    return trial(
        "7.3 floored simplex", np.array(path), lambda t: theory.floored_simplex_average(3, floor, size, eta, t),
        "‖average of g + n‖", {"no floor": np.full(ROUNDS, size)},
    )  # fmt: skip


def _ensemble() -> Trial:
    """Result 7.5: labels just above the ensemble ruin its coverage; a final tracker restores it."""
    etas, final = (0.05, 0.0501), 0.05
    plain = QuantileEnsemble(LEVEL, etas, 0.01, final_eta=None)
    tracked = QuantileEnsemble(LEVEL, etas, 0.01, final_eta=final, link="linear")
    hits: list[tuple[float, float]] = []
    for _ in range(12_000):
        mixed, served = plain.predict(0.0), tracked.predict(0.0)
        y = mixed + 1e-6 if mixed + 1e-6 <= 1.0 else -1.0
        hits.append((float(y <= mixed), float(y <= served)))
        plain.update(y)
        tracked.update(y)
    alone, ended = np.abs(running_mean(np.array(hits)) - LEVEL).T
    return trial(
        "7.5 ensemble and final tracker", ended,
        lambda t: theory.ensemble_coverage_gap(1.0, list(etas), LEVEL, final, t), COVERAGE,
        {"ensemble alone": alone},
    )  # fmt: skip


def bounds_more(source: Source) -> Result:
    """Each adversary uses what the extension allows: late labels, missing ones, a wider range."""
    reach = np.sqrt(np.arange(1, ROUNDS + 1)) / 10.0  # the range of labels grows like sqrt(t)
    lows, highs, etas = (-reach).tolist(), reach.tolist(), [ETA] * ROUNDS
    games = np.arange(1, MANY)
    # The sum of steps, projected onto the nonnegative numbers only to serve.
    lazy = Learner(Quantile(0.5), ETA, geometry=NonNegative(), lazy=True)
    return result(
        _late_quantile(),
        _late_squared(),
        _missing(),
        trial(
            "8.3 widening range",
            descend(Learner(Quantile(LEVEL), ETA), lambda u, k: (None, float(reach[k - 1]))),
            lambda n: theory.varying_range(0.0, lows[:n], highs[:n], LEVEL, etas[:n]).radius(0.0) / (ETA * n),
            COVERAGE,
        ),
        _two_sided(),
        trial(
            "8.5 Elo, four players", ladder(4, MANY)[1:] / (ETA * games),
            lambda t: theory.elo_radius(4, ETA, ETA * t) / (ETA * t),
        ),
        _levels(),
        trial(
            "8.7 lazy projection", descend(lazy, constant(1.0)),
            lambda t: math.sqrt(theory.lazy_growth(0.5, 0.0, 0.5, ETA, t)) / (ETA * t), "|coverage − 1/2|",
        ),
    )  # fmt: skip


def with_delay(learner: Learner, state: LearnerState, y: float, delay: int, rounds: int) -> Iterator[LearnerState]:
    """The state after each round, if every label is y and comes ``delay`` rounds late."""
    waiting = deque[Ticket]()
    for _ in range(rounds):
        state, ticket = learner.ticket(state)
        waiting.append(ticket)
        if len(waiting) > delay:
            state = learner.update(state, waiting.popleft(), y)
        yield state


def with_release(learner: Learner, state: LearnerState, y: float, late: int, prompt: int) -> Iterator[LearnerState]:
    """The state after each label y: ``late`` tickets wait until ``prompt`` others have been labelled at once."""
    waiting = []
    for _ in range(late):
        state, ticket = learner.ticket(state)
        waiting.append(ticket)
    for _ in range(prompt):
        state, ticket = learner.ticket(state)
        state = learner.update(state, ticket, y)
        yield state
    for ticket in waiting:
        state = learner.update(state, ticket, y)
        yield state


def _late_quantile() -> Trial:
    """Result 8.1: every label is 1 and comes 20 rounds late, so theta overshoots by the open steps."""
    delay, learner = 20, Learner(Quantile(LEVEL), ETA)
    states = with_delay(learner, learner.start(), 1.0, delay, ROUNDS)
    path = np.array([_size(state) for state in states if state.n])
    radius = theory.late_quantile_range(0.0, -1.0, 1.0, LEVEL, (delay + 1) * ETA).radius(0.0)
    return trial("8.1 late labels, quantile", path, within(radius), COVERAGE)


def _late_squared() -> Trial:
    """Results 8.1 and A1: tickets are released when theta has moved to the other side."""
    late, y, learner = 5, 1.0, Learner(Squared(), ETA)
    states = [learner.start()]
    while len(states) <= ROUNDS:
        states += with_release(learner, states[-1], y, late, 80)
        y = -y
    path = np.array([_size(state) for state in states[1 : ROUNDS + 1]])
    radius = theory.late_squared_radius(0.0, 1.0, (late + 1) * ETA, late * ETA)
    return trial("8.1 late labels, squared", path, within(radius))


def _missing() -> Trial:
    """Result 8.2: labels of 1 arrive, labels of -1 do not. The bound is on the rows whose label arrived."""
    arrived = np.arange(ROUNDS) % 2 == 0
    labels = np.where(arrived, 1.0, -1.0)
    learner = Learner(Squared(), ETA)
    served = learner.run(learner.start(), None, np.where(arrived, labels, np.nan)).served
    radius = squared_radius(0.0, 1.0, ETA)
    return trial(
        "8.2 missing labels", np.abs(running_mean((served - labels)[arrived])),
        lambda n: theory.observed_average(0.0, radius, ETA, n), "|bias|, labels seen",
        {"all rows": np.abs(running_mean(served - labels))[1::2]},
    )  # fmt: skip


def _two_sided() -> Trial:
    """Result 8.4: an interval of two trackers; labels are first high, then low, so both ends lag behind."""
    level = 0.95
    labels = np.where(np.arange(ROUNDS) < 12, 1.0, -1.0)
    learner = Learner(Quantile(level), ETA)
    upper = learner.run(learner.start(), None, labels).served
    lower = -learner.run(learner.start(), None, -labels).served
    covered = (lower <= labels) & (labels <= upper)
    short = np.maximum(0.0, 2 * level - 1.0 - running_mean(covered.astype(float)))

    def bound(n: int) -> float:
        gap = theory.quantile_coverage_gap(0.0, -1.0, 1.0, level, ETA, n)
        return theory.two_sided_shortfall(gap, gap)

    return trial("8.4 two-sided interval", short, bound, "0.9 − coverage")


def _levels() -> Trial:
    """Result 8.6: the worst of three levels that never cross."""
    wanted, labels = (0.1, 0.5, 0.9), np.ones(ROUNDS)
    tracker = MultiQuantileTracker(wanted, ETA, link="linear")
    served = np.asarray(tracker.run(np.zeros(ROUNDS), labels).served)
    gaps = np.abs(running_mean((labels[:, None] <= served).astype(float)) - np.array(wanted))
    ranges = theory.isotonic_ranges(wanted, [-1.0] * 3, [1.0] * 3, [0.0] * 2, ETA)

    def each(level: float, gap: Floats, top: float) -> Trial:
        return trial(f"8.6 three levels, τ = {level:g}", gap, lambda t: top / t, "|coverage − τ|")

    tops = [where.radius(0.0) / ETA for where in ranges]
    return max(map(each, wanted, gaps.T, tops), key=lambda one: one.ratio)


GAMES = 60_000
PLAYERS = (2, 4, 6)


def ladder(players: int, rounds: int = GAMES) -> Floats:
    """The largest rating before every game, if the two closest neighbours play and the better one wins."""
    theta = [0.0] * players
    tops = np.empty(rounds)
    for t in range(rounds):
        tops[t] = max(abs(theta[0]), abs(theta[-1]))
        k = min(range(players - 1), key=lambda i: theta[i + 1] - theta[i])
        push = ETA * (1.0 - sigmoid(theta[k + 1] - theta[k]))
        theta[k] -= push
        theta[k + 1] += push
    return tops


def elo_growth(source: Source) -> Result:
    at = plot.thinned(GAMES, log=True, most=120)[10:]
    marks, biases, numbers = [], [], []
    for players, look in zip(PLAYERS, plot.SERIES, strict=False):
        tops = ladder(players)
        caps = np.array([theory.elo_sup_radius(players, ETA, ETA * t) for t in at.tolist()])
        roots = np.array([theory.elo_norm_radius(0.0, players, ETA, ETA * t) for t in at.tolist()])
        bounds = np.minimum(caps, roots)
        for y, name, style in ((tops[at], "run", look), (bounds, "bound", replace(look, width=0.9, marker=""))):
            marks.append(plot.Line(at, y, f"{players} players, {name}", style))
            biases.append(plot.Line(at, y / (ETA * at), f"{players} players, {name}", style))
        decade = float(tops[-1] - tops[len(tops) // 10])
        numbers += [
            Number(f"{players} players: growth over the last tenfold of games", decade),
            Number(f"{players} players: (M − 1)/2 · ln 10", (players - 1) / 2 * np.log(10.0)),
            Number(f"{players} players: largest rating / bound", float((tops[at] / bounds).max())),
        ]
    panels = [
        plot.Panel("Largest rating", "games T", "|θ|, log-odds", marks, x_scale="log"),
        plot.Panel(
            "Largest |Σ z(p − y)| / T", "games T", "", biases, x_scale="log", y_scale="log", legend=""
        ),
    ]  # fmt: skip
    growths, rates = (", ".join(f"{number.ours:.2f}" for number in numbers[k::3]) for k in (0, 1))
    text = (
        f"The largest rating of a ladder of players grows by {growths} while the games grow tenfold, for 2, 4 and 6 "
        f"players, against (M − 1)/2 · ln 10 = {rates}: ratings are not bounded, and log T is the right rate. The "
        "bias of a player still falls like log T / T."
    )
    return Result(text, tuple(numbers), {"": plot.Sheet(panels, (1, 2), (11.0, 4.0))})


DELAYS = (0, 1, 2, 3, 5, 10, 20)
SHOWN = 5


def constant_delay(eta: float, delay: int, rounds: int) -> Floats:
    """|theta| from theta_1 = 1, if every label is 0 and comes ``delay`` rounds late."""
    learner = Learner(Squared(), eta)
    start = learner.start([1.0])
    return np.array([abs(state.theta[0]) for state in (start, *with_delay(learner, start, 0.0, delay, rounds - 1))])


def hold_and_release(mass: float, late: int, cycles: int) -> Floats:
    """|theta| after each cycle: ``late`` tickets wait while others bring theta to zero, then follow."""
    learner = Learner(Squared(), mass / late)
    states = [learner.start([1.0])]
    for _ in range(cycles):
        *_, last = with_release(learner, states[-1], 0.0, late, math.ceil(8.0 * late / mass))
        states.append(last)
    return np.array([abs(state.theta[0]) for state in states])


def largest_stable_step(delay: int) -> float:
    """The step at which a long run with this delay neither grows nor shrinks."""
    low, high, rounds = 0.0, 2.5, 60 * (2 * delay + 1)
    for _ in range(14):
        middle = 0.5 * (low + high)
        path = constant_delay(middle, delay, rounds)
        half = len(path) // 2
        low, high = (middle, high) if path[half:].max() < path[:half].max() else (low, middle)
    return 0.5 * (low + high)


def delay_limits(source: Source) -> Result:
    delays = np.array(DELAYS)
    limits = np.array([theory.fifo_step_limit(delay) for delay in DELAYS])
    measured = np.array([largest_stable_step(delay) for delay in DELAYS])
    numbers = [
        Number(f"largest stable step, delay {delay}", float(step), None, float(limit), 0.02)
        for delay, step, limit in zip(DELAYS, measured, limits, strict=True)
    ]
    limit = theory.fifo_step_limit(SHOWN)
    rounds = np.arange(400) + 1
    runs = [
        plot.Line(rounds, constant_delay(factor * limit, SHOWN, 400), f"{factor:g} × limit", look)
        for factor, look in ((0.95, plot.AFTER), (1.0, plot.BEFORE), (1.05, plot.SECOND))
    ]
    cycles = np.arange(13)
    released = [
        plot.Line(cycles, hold_and_release(mass, 20, 12), f"open mass {mass:g}", look)
        for mass, look in ((0.9, plot.AFTER), (1.0, plot.BEFORE), (1.1, plot.SECOND))
    ]
    numbers += [
        Number(f"|θ| after 12 releases, {line.label}", float(line.y[-1]), None, mass**12, 0.01)
        for line, mass in zip(released, (0.9, 1.0, 1.1), strict=True)
    ]
    steps = [
        plot.Line(delays, limits, "2 sin(π / (2(2D + 1)))", plot.BOUND),
        plot.Line(delays, measured, "measured", replace(plot.AFTER, dash="none", marker="o")),
    ]
    ticks, cycled = (DELAYS, tuple(map(str, DELAYS))), [plot.Level(1.0), *released]
    growing = partial(plot.Panel, y="|θ|", y_scale="log", legend="upper left")
    panels = [
        plot.Panel("Constant delay D: limit of the step", "delay D", "η", steps, y_scale="log", ticks=ticks),
        growing(f"Constant delay {SHOWN}", "rounds", marks=runs),
        growing("Labels held back, then released", "releases", marks=cycled),
    ]
    ends = [f"{line.y[-1]:.3f}" for line in released]
    text = (
        f"With a constant delay the limit is 2 sin(π/(2(2D + 1))): measured {measured[4]:.4f} for D = 5, formula "
        f"{limits[4]:.4f}. If labels may come in any order, |θ| can be multiplied by the open step mass at each "
        f"release: {ends[0]}, {ends[1]} and {ends[2]} after twelve, so mass below 1 is safe and mass above 1 is not."
    )
    return Result(text, tuple(numbers), {"": plot.Sheet(panels, (1, 3), (13.5, 3.6))})
