"""The certificate of Elo: its sums and facts in the form that the one builder reads, players as coordinates.

"Before" is a coin, p = 1/2. What is averaged is the SIGNED error from the player's own side (result 8.5).
"""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from gradeq import certificate
from gradeq.certificate_reading import Reading, Terms, setting_of
from gradeq.equilibrium import Equilibrium
from gradeq.informative import rate_error
from gradeq.kernels.account import (
    COLUMNS,
    HIGH,
    LOSS_AFTER,
    LOSS_BEFORE,
    LOW,
    WEIGHT,
)
from gradeq.kernels.rating import LOSS, OFFSET, STRIDE
from gradeq.ledger import facts as fact
from gradeq.theory import HarmCap, labels_until

LN2 = math.log(2.0)


class EloReading(Reading):
    """Refuses a bound where the lateness of players is not what a theorem needs: that of all games."""

    __slots__ = ()
    of_rates = of_players = True

    @property
    def refusal(self) -> str | None:
        """Why no theorem covers what happened."""
        late = self.state.facts[fact.LATEST] > 1.0
        if late and self.terms.task != "elo":
            return "no bound is proven for late scores with a home advantage, a penalty or auto"
        return super().refusal


def reading_of(elo: Any) -> EloReading:
    """What the certificate is read from: ratings written out, the first side left out where it has no parameter."""
    names, rule = elo._names, elo._rule
    state = rule.written(elo._state)
    penalised = elo.penalty is not None or elo.proximal is not None
    skip = 0 if names.home else 1
    sums = state.view("sums").reshape(-1, STRIDE)[skip:]
    read = SimpleNamespace(
        u=state.u[skip:],
        sums=accounts(sums).ravel().tolist(),
        total=accounts(np.array([state.total[:STRIDE]]), state.total[LOSS]).ravel().tolist(),
        facts=state.facts,
        late=state.late,
        heaviest_step=state.heaviest_step,
        total_path=state.total_path,
        total_steps=state.total_steps,
        pulls=state.pulls[skip:] if penalised else [],
        drags=state.drags[skip:] if penalised else [],
    )
    penalty = elo.penalty if elo.proximal is None else elo.proximal
    parts: Any = (rule.schedule, penalty, elo._flight.limit, elo._flight)
    read_as: Any = read
    return EloReading(terms_of(elo, state.total[OFFSET]), names.names[skip:], read_as, *parts)


def accounts(own: Any, loss: float = 0.0) -> Any:
    """Accounts of Elo as all other layers keep them; scores lie in [0, 1]."""
    made = np.zeros((len(own), COLUMNS))
    made[:, :STRIDE] = own
    made[:, LOW], made[:, HIGH] = 0.0, 1.0
    made[:, LOSS_BEFORE], made[:, LOSS_AFTER] = LN2 * made[:, WEIGHT], loss
    return made


def terms_of(elo: Any, reach: float) -> Terms:
    """As Elo where the sum of the ratings is conserved; else only the norm argument holds, that of any features."""
    home = elo._names.home
    size = 2.0 + elo._names.scale**2 if home else 2.0
    if elo.eta == "auto":
        clip = 1.0 / (1.0 + math.exp(min(reach, 700.0))) if reach > 0.0 else 0.49
        return Terms("probability_logit", "features", "log loss", size=size, clip=clip)
    task = "glm" if home or elo.proximal is not None else "elo"
    return Terms(task, "features", "log loss", size=size)


def certify(elo: Any) -> Equilibrium:
    """Everything that can be said about the games so far."""
    found = certificate.certificate(reading_of(elo))
    coordinates = []
    for own in found.coordinates:
        new: dict[str, Any] = {"loss_before": None, "loss_after": None}
        if elo.proximal is not None:
            new |= {"average_penalty": 0.0, "average_normal": own.average_penalty}
        coordinates.append(replace(own, **new))
    before = LN2 if found.rows else 0.0
    said: dict[str, Any] = {"bias_name": "bias of the first side", "loss_before": before}
    return replace(found, coordinates=tuple(coordinates), **said)


def player_bounds(elo: Any, weights: Any, win_rates: Any) -> tuple[Any, Any]:
    """The bound on the bias of players with so much weight of games, and whether it is vacuous; None: not proven."""
    reading = reading_of(elo)
    setting = replace(setting_of(reading), counts=(1.0,))
    one = certificate.coordinate_bounds(reading, setting)[0]  # of a player with one game
    if one.value is None:
        return np.full(len(weights), None), np.full(len(weights), None)
    values = one.value / weights
    return values, ~(values < rate_error(win_rates - 0.5))


def more_games(elo: Any, target: float) -> int | None:
    """More games until the bound of the player with the fewest is below ``target``; None if that is never."""
    reading = reading_of(elo)
    setting = setting_of(reading)
    shares = [own / setting.weights for own in setting.counts[int(elo._names.home) :] if own]
    if not shares or reading.refusal is not None:
        return None
    # A player's bound is the whole's divided by the player's share of the games.
    needed = labels_until(replace(setting, counts=()), target * min(shares))
    return None if needed is None else max(0, needed - int(setting.n))


def harm(elo: Any) -> HarmCap:
    """What the step can cost at most against p = 1/2 (result B2: constant step, scores at once)."""
    if elo.proximal is not None:
        return HarmCap(None, None, "no theorem fits", "no harm cap is proven with a penalty")
    return certificate.harm_of(
        elo, "auto follows the best of its forecasters to within ln 10 in all"
    )
