"""The raw recursions as plain loops, and players who try to break a bound.

Nothing here uses the package's engine: a bound is checked against the text of the method itself. A game is a
task, a rule for rows, a rule for labels and a rule for when labels come; each rule sees the parameter.
"""

import math
import random
from collections.abc import Callable

from gradeq.numerics import LAMBERT_W, sigmoid
from gradeq.theory import clip_bound, logit_pull
from theory.games import Game, Peaks, Played, Ticket

__all__ = ["SLACK", "Game", "Played", "descend", "play"]

SLACK = 1.0 + 1e-9


def dot(a: list[float], b: list[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def norm(a: list[float]) -> float:
    return math.sqrt(dot(a, a))


def error_of(game: Game, base: float, margin: float, target: float) -> float:
    """The error of a served value; ``base`` is the offset (logit) or the forecast (multiplicative)."""
    if game.task == "mean":
        return margin - target
    if game.task == "quantile":
        return (1.0 if target <= margin else 0.0) - game.level
    if game.task == "probability_shift":
        return 2.0 * sigmoid(margin) - 1.0 - target
    if game.task == "glm":
        return -0.5 + 2.0 * sigmoid(margin) - target
    if game.task in ("probability_logit", "elo"):
        return sigmoid(base + margin) - target
    return base * math.exp(margin) - target


def row(game: Game, theta: list[float], t: int, rng: random.Random) -> list[float]:
    """The features of a round."""
    d, c = game.dimension, math.sqrt(game.size)
    if game.task == "elo":
        a, b = rng.sample(range(d), 2)
        if game.rows == "ladder":
            # Neighbours in the ranking: the stronger wins again, which stretches the ladder.
            ranked = sorted(range(d), key=lambda i: theta[i])
            k = min(range(d - 1), key=lambda i: theta[ranked[i + 1]] - theta[ranked[i]])
            a, b = ranked[k], ranked[k + 1]
        z = [0.0] * d
        z[a], z[b] = -1.0, 1.0
        return z
    if game.structure == "scalar" or d == 1:
        return [1.0]
    if game.structure == "disjoint" or game.rows == "groups":
        j = rng.randrange(d) if rng.random() < 0.7 else 0
        return [1.0 if i == j else 0.0 for i in range(d)]
    z = [rng.gauss(0.0, 1.0) for _ in range(d)]
    length = norm(theta)
    if game.rows == "random" or length == 0.0:
        return [c * x / norm(z) for x in z]
    # Spiral: the margin that makes the squared norm grow most, the rest orthogonal to theta.
    margin = best_margin(game)
    along = max(-1.0, min(1.0, margin / (c * length)))
    z = [x - dot(z, theta) / length**2 * y for x, y in zip(z, theta, strict=True)]
    across = math.sqrt(max(0.0, 1.0 - along**2))
    size = norm(z) or 1.0
    return [c * (along * y / length + across * x / size) for x, y in zip(z, theta, strict=True)]


def best_margin(game: Game) -> float:
    """Margin at which one step with the label ``high`` adds most to the squared norm of theta."""
    if game.task == "mean":
        return game.high * (1.0 - 1.0 / max(2.0 - game.eta * game.size, 1e-9))
    if game.task == "quantile":
        return game.high - 1e-9
    if game.task == "probability_logit":
        return 1.0 + logit_pull(clip_bound(game.clip))
    return 1.0 + LAMBERT_W


def label(game: Game, base: float, margin: float, t: int, rng: random.Random) -> float:
    """The label of a round, chosen after the prediction is known."""
    low, high = game.low, game.high
    rule = game.labels
    if rule == "greedy":
        return high if margin >= 0.0 else low
    if rule == "up":
        return high
    if rule == "down":
        return low
    if rule == "alternate":
        return high if t % 2 else low
    if rule == "swing":
        return high if (t // 40) % 2 == 0 else low
    if rule == "edge":
        # Just past the served value: the longest chain of one-sided steps.
        return min(high, max(low, margin + (1e-9 if margin < high else 0.0)))
    if rule == "extreme":
        return rng.choice((low, high))
    if rule == "heavy":
        return min(high, max(low, rng.gauss(0.0, 1.0) / max(1e-3, rng.random()) * 0.1 * high))
    return rng.uniform(low, high)


def due(game: Game, waiting: list[Ticket], theta: list[float], t: int, rng: random.Random) -> list[int]:
    """Which of the waiting tickets are posted now, in which order."""
    if game.release == "at once":
        return list(range(len(waiting)))
    if game.release == "fifo":
        return [0] if len(waiting) > game.hold else []
    if game.release == "random":
        return [i for i in range(len(waiting)) if rng.random() < 1.0 / (1 + game.hold)][:3]
    if game.release == "newest":
        # The oldest hold tickets stay until the parameter has come back, then all go at once.
        if len(waiting) > game.hold and norm(theta) > 0.05 * abs(game.high):
            return list(range(game.hold, len(waiting)))
        return list(range(len(waiting))) if len(waiting) > game.hold else []
    if game.release == "burst":
        return list(range(len(waiting))) if len(waiting) > game.hold else []
    if game.release == "reverse":
        return [len(waiting) - 1] if len(waiting) > game.hold else []
    raise ValueError(game.release)


def play(game: Game, rng: random.Random) -> Played:
    """Run one game and keep its books."""
    d = game.dimension
    theta = [0.0] * d
    groups = d if game.structure == "disjoint" else 1
    whole = Played(game, theta, [0.0] * d, [0] * d)
    books = [Played(_one(game), [0.0], [0.0], [0]) for _ in range(groups)]
    waiting: list[list[Ticket]] = [[] for _ in range(groups)]
    served = [0.0] * groups
    counts = [0] * groups
    peaks = Peaks(d, epoch=game.epoch)
    last_post = [0] * groups
    for t in range(1, game.rounds + 1):
        z = row(game, theta, t, rng)
        g = z.index(1.0) if groups > 1 else 0
        book = books[g] if groups > 1 else whole
        counts[g] += 1
        weight = rng.choice((0.0, 0.5, 1.0, 1.0 + game.weight)) if game.weight else 1.0
        eta = game.eta * counts[g] ** -game.decay
        if game.wobble:
            eta *= 1.0 - game.wobble * rng.random()
        cells = cells_of(game, z)
        margin = dot(z, theta)
        base = _base(game, rng)
        scaled = t > game.zero_scale
        target = _target(game, base, margin, t, rng)
        error = error_of(game, base, margin if scaled else 0.0, target)
        slope = _slope(game, theta)
        mass = eta * weight
        open_now = sum(ticket.mass for ticket in waiting[g])
        served[g] += mass
        ticket = Ticket(
            z, [weight * error * x for x in z], slope, eta, weight, mass, served[g], open_now,
            counts[g], t, error, base, target, margin, g, cells, peaks.serve(cells),
        )  # fmt: skip
        waiting[g].append(ticket)
        for b in {id(book): book, id(whole): whole}.values():
            b.open_mass = max(b.open_mass, open_now + mass)
            b.most_open = max(b.most_open, len(waiting[g]))
            b.size = max(b.size, dot(z, z))
        last_post[g] = _post(game, book, whole, waiting[g], theta, t, rng, served, counts, last_post[g], peaks)
    if groups > 1:
        whole.groups = books
    whole.theta = theta
    return whole


def _post(
    game: Game,
    book: Played,
    whole: Played,
    waiting: list[Ticket],
    theta: list[float],
    t: int,
    rng: random.Random,
    served: list[float],
    counts: list[int],
    last: int,
    peaks: Peaks,
) -> int:
    chosen = [waiting[i] for i in due(game, waiting, theta, t, rng)]
    for ticket in chosen if game.hold % 2 else reversed(chosen):
        stale = sum(other.mass for other in waiting if other.order <= last)
        crossing = ticket.mass + ticket.open_mass + served[ticket.group] - ticket.served_mass
        eta, lateness = ticket.eta, 1
        if ticket.weight > 0.0:
            lateness = peaks.post(ticket.cells, ticket.opened)
            whole.widest = max(whole.widest, dot(ticket.z, ticket.z))
            squared = whole.widest if game.structure == "features" and game.task != "elo" else 1.0
            eta = peaks.step(ticket.cells, eta, game.cap, ticket.weight, squared)
        for b in {id(book): book, id(whole): whole}.values():
            b.stale_mass = max(b.stale_mass, stale)
            b.delay = max(b.delay, counts[ticket.group] - ticket.count)
            b.crossing_mass = max(b.crossing_mass, crossing)
            b.lateness = max(b.lateness, lateness)
            if ticket.weight > 0.0:
                b.etas.append(eta)
            _book(b, ticket)
        for j, (g, s) in enumerate(zip(ticket.gradient, ticket.slope, strict=True)):
            theta[j] -= eta * (g + s)
        whole.farthest = max([whole.farthest, *(abs(x) for x in theta)])
        whole.farthest_norm = max(whole.farthest_norm, norm(theta))
        waiting.remove(ticket)
        last = t
    return last


def cells_of(game: Game, z: list[float]) -> tuple[int, ...]:
    """Where the lateness of a row is counted: its group, its players, or the whole layer."""
    if game.task == "elo" or game.structure == "disjoint":
        return tuple(j for j, x in enumerate(z) if x != 0.0)
    return (0,)


def _book(b: Played, ticket: Ticket) -> None:
    b.n += 1
    wide = len(b.total) > 1
    for j, g in enumerate(ticket.gradient if wide else [sum(ticket.gradient)]):
        b.total[j] += g
        b.counts[j] += 1 if not wide or ticket.z[j] != 0.0 else 0
    b.low, b.high = min(b.low, ticket.target), max(b.high, ticket.target)
    b.weight_sum += ticket.weight
    b.weight_max = max(b.weight_max, ticket.weight)
    b.square_sum += ticket.weight * ticket.target**2
    b.errors.append(ticket.error)
    b.margins.append(ticket.margin)
    b.targets.append(ticket.target)
    if b.game.task == "probability_logit":
        b.odds_sum += ticket.weight * math.exp(abs(ticket.base))
    if b.game.task == "multiplicative":
        b.bases.append(ticket.base)
        b.ratio.append(ticket.target / ticket.base)
        b.tops.append(ticket.target)


def _one(game: Game) -> Game:
    return Game(**{**game.__dict__, "structure": "scalar", "dimension": 1})


def _base(game: Game, rng: random.Random) -> float:
    if game.task == "probability_logit":
        top = clip_bound(game.clip)
        return {"up": -top, "down": top}.get(game.labels, rng.uniform(-top, top))
    if game.task == "multiplicative":
        return rng.uniform(0.5, 2.0)
    return 1.0 if game.task == "poisson" else 0.0


def _target(game: Game, base: float, margin: float, t: int, rng: random.Random) -> float:
    y = label(game, base, margin, t, rng)
    if game.task in ("probability_logit", "elo"):
        return min(1.0, max(0.0, y))
    return y


def _slope(game: Game, theta: list[float]) -> list[float]:
    if game.penalty == "lasso":
        return [game.strength * ((x > 0) - (x < 0)) for x in theta]
    if game.penalty == "ridge":
        return [game.strength * x for x in theta]
    return [0.0] * len(theta)


Rule = Callable[[float, int], float]


def descend(theta: float, eta: float, rounds: int, gradient: Rule) -> tuple[float, float]:
    """Constant-step descent in one dimension: the last iterate and the average gradient."""
    total = 0.0
    for t in range(1, rounds + 1):
        g = gradient(theta, t)
        total += g
        theta -= eta * g
    return theta, total / rounds
