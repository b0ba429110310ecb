"""The certificate of Elo: each player's exact bias, the same from the rating, and what is proven beforehand."""

from __future__ import annotations

import math
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gradeq.engine.pairs import Pairs
from gradeq.equilibrium import Coordinate, Equilibrium, over
from gradeq.kernels.rating import (
    ALL_GAMES,
    ALL_WEIGHT,
    BEFORE,
    COLUMNS,
    DECIDED,
    ERROR,
    GAMES,
    GRADIENT,
    LOSS,
    MOVED,
    REACH,
    TIED,
    WEIGHT,
    WINS,
    surprise,
)
from gradeq.layers.players import HOME
from gradeq.penalties import Lasso, Ridge
from gradeq.schedules import Constant, Power
from gradeq.theory import (
    Bound,
    HarmCap,
    Setting,
    best_bound,
    group_bounds,
    harm_cap,
    labels_until,
)
from gradeq.theory.late import capped_open_mass

if TYPE_CHECKING:
    from gradeq.layers.elo import Elo

LN2 = math.log(2.0)


def certify(elo: Elo) -> Equilibrium:
    """Everything that can be said about the games so far; "before" is a coin, p = 1/2."""
    head = deepcopy(elo.certified)
    head.write_out()
    total = head.total
    divisor = total[ALL_WEIGHT]
    setting = setting_of(elo)
    bound = whole_bound(elo, setting)
    own_bounds = player_bounds(elo, setting)
    named = list(elo.players.names.items())
    if elo.players.home:
        named = [(HOME, 0), *named]
        own_bounds = (bound, *own_bounds)
    constant = isinstance(head.schedule, Constant) and head.pace.constant
    coordinates, gap = [], 0.0
    for (name, j), own_bound in zip(named, own_bounds, strict=True):
        own = head.sums[j * COLUMNS : (j + 1) * COLUMNS]
        average, pulled = over(own[GRADIENT], divisor), over(head.pulls[j], divisor)
        if constant:
            from_state = over(0.0 - head.u[j], head.pace.high * divisor)
            gap = max(gap, abs(average + pulled - from_state))
        else:
            from_state = average + pulled
            gap = max(gap, abs(own[MOVED] + head.drags[j] - (0.0 - head.u[j])))
        coordinates.append(
            Coordinate(
                name=name,
                rows=int(own[GAMES]),
                average_gradient=average,
                average_penalty=0.0 if elo.proximal is not None else pulled,
                average_normal=pulled if elo.proximal is not None else 0.0,
                from_state=from_state,
                bias_before=coin_bias(own) if j else over(total[BEFORE], divisor),
                bias_after=over(own[GRADIENT], own[WEIGHT]),
                bound=own_bound.value,
                vacuous=own_bound.vacuous,
            )
        )
    return Equilibrium(
        rows=int(total[ALL_GAMES]),
        coordinates=tuple(coordinates),
        bias_before=over(total[BEFORE], divisor),
        bias_after=over(total[ERROR], divisor),
        loss_name="log loss",
        loss_before=LN2 if divisor else 0.0,
        loss_after=over(log_loss(head), divisor),
        gap=gap,
        bound=bound.value,
        bound_from=bound.result,
        vacuous=bound.vacuous,
        exact=constant,
    )


def coin_bias(own: Any) -> float:
    """What the bias of a player would be had every game been called even."""
    return 0.5 - own[WINS] / own[WEIGHT] if own[WEIGHT] else 0.0


def log_loss(head: Pairs) -> float:
    """The sum of log losses of the probabilities served."""
    return float(head.total[LOSS] - surprise(head.total[DECIDED], head.total[TIED]))


def setting_of(elo: Elo) -> Setting:
    """What the theory needs to know: how many players, games of each, steps, weights, lateness."""
    head, desk = elo.certified, elo.desk
    total = head.total
    players = len(elo.players.names)
    counts = tuple(head.sums[j * COLUMNS + WEIGHT] for j in range(1, players + 1))
    first = 1.0 / head.path[2] if head.path[2] > 0.0 else head.schedule.step(1)
    low = head.pace.low if math.isfinite(head.pace.low) else first
    high = head.pace.high or first
    most = max(desk.peaks, default=1)
    facts: dict[str, Any] = {
        "task": "elo",
        "structure": "features",
        "n": total[ALL_GAMES],
        "counts": counts,
        "dimension": max(players, 2),
        "size": 2.0,
        "eta": first,
        "eta_last": 1.0 / head.path[0] if head.path[0] > 0.0 else first,
        "eta_min": low,
        "eta_max": high,
        "inverse_variation": head.path[1],
        "weight_max": desk.heaviest,
        "weight_sum": total[ALL_WEIGHT],
    }
    if isinstance(head.schedule, Power):
        facts["decay"] = head.schedule.alpha
    if most > 1:
        # A game shares a player with at most the open games of its two players (all games share the first side).
        mass = 2.0 * capped_open_mass(high, head.limit, most) if desk.capped else math.inf
        facts["late"] = True
        facts["most_open"] = most if elo.players.home else 2 * most - 1
        facts["open_mass"] = desk.heaviest * min(mass, facts["most_open"] * high)
    if isinstance(elo.penalty, (Lasso, Ridge)):
        facts["penalty"] = "lasso" if isinstance(elo.penalty, Lasso) else "ridge"
        facts["strength"] = elo.penalty.strength
    if elo.players.home or elo.proximal is not None:
        # The sum of the ratings is no longer conserved, so only the norm argument holds: that of any features.
        facts.update(task="glm", low=0.0, high=1.0, size=3.0 if elo.players.home else 2.0)
    if elo.eta == "auto":
        clip = 1.0 / (1.0 + math.exp(total[REACH])) if total[REACH] > 0.0 else 0.49
        facts.update(task="probability_logit", clip=clip, size=3.0 if elo.players.home else 2.0)
    return Setting(**facts)


def whole_bound(elo: Elo, setting: Setting) -> Bound:
    """The bound on the largest average over all games."""
    return with_threshold(elo, best_bound(setting), 1.0)


def player_bounds(elo: Elo, setting: Setting | None = None) -> tuple[Bound, ...]:
    """The bound on each player's bias over that player's own games."""
    setting = setting_of(elo) if setting is None else setting
    whole = setting.weights
    return tuple(
        with_threshold(elo, bound, whole / count if count else 1.0)
        for bound, count in zip(group_bounds(setting), setting.counts, strict=True)
    )


def with_threshold(elo: Elo, bound: Bound, share: float) -> Bound:
    """The proximal lasso adds at most its strength a game: soft thresholds never lengthen the ratings (7.1)."""
    if elo.proximal is None or bound.value is None:
        return bound
    value = bound.value + elo.proximal * share
    return bound._replace(
        value=value, result=f"{bound.result} with 7.1", vacuous=not value < bound.trivial
    )


def games_until(elo: Elo, target: float) -> int | None:
    """More games until the bound of the player with the fewest is below ``target``; None if that is never."""
    setting = setting_of(elo)
    shares = [count / setting.weights for count in setting.counts if count]
    if not shares or elo.proximal is not None:
        return None
    # A player's bound is the whole's divided by the player's share of the games.
    needed = labels_until(replace(setting, counts=()), target * min(shares))
    return None if needed is None else max(0, needed - int(setting.n))


def capped_harm(elo: Elo) -> HarmCap:
    """What the step can cost at most against p = 1/2 (result B2: constant step, scores at once)."""
    if elo.eta == "auto":
        return HarmCap(None, None, "B5", "auto follows the best of its steps to within ln 7 in all")
    if elo.proximal is not None:
        return HarmCap(None, None, "", "no harm cap is proven with a penalty")
    setting = setting_of(elo)
    if not isinstance(elo.schedule, Constant):
        setting = replace(setting, inverse_variation=math.inf)
    return harm_cap(setting)
