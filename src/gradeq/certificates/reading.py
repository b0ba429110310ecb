"""What a certificate is read from: a layer's state, names and settings, translated for theory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from gradeq.engine.lateness import Lateness
from gradeq.kernels import account as col
from gradeq.kernels.flight import LATENESS
from gradeq.kernels.flight import LATEST as LATEST_OF_CELL
from gradeq.kernels.rating import LOSS, OFFSET, STRIDE
from gradeq.ledger import facts as fact
from gradeq.ledger.state import State
from gradeq.penalties import Lasso, Penalty, Ridge
from gradeq.schedules import Constant, Power, Schedule
from gradeq.theory import OwnSteps, Setting
from gradeq.theory.setting import ORDERED, Groups

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gradeq.certificates.contracts import EloLayer, LayerLike
    from gradeq.certificates.figures import Account


MANY = 1000  # coordinates; so many are made when they are looked at
LN2 = math.log(2.0)

Arguments = dict[str, Any]  # of a Setting


@dataclass(frozen=True)
class Terms:
    """How a layer's sums are to be read.

    ``task``: what theory calls it; ``levels``: of quantiles; ``structure``: "scalar", "disjoint" groups or "features"
    (overlapping groups too); ``start``: u_1 of each level; ``loss_scale``: what a mean loss is multiplied by (the
    value of ``Squared`` is half the squared error); ``size``: squared norm of a row without features; ``centre``:
    where residuals are measured from; ``certified``: whether u sums up the errors (in an ensemble alone none does).
    """

    task: str
    structure: str
    loss_name: str
    levels: tuple[float, ...] = ()
    start: tuple[float, ...] = (0.0,)
    loss_scale: float = 1.0
    size: float = 1.0
    clip: float | None = None
    sinh: bool = False
    centre: float = 0.0
    certified: bool = True


@dataclass(frozen=True)
class Reading:
    """All that a certificate is read from: a state (of one layer, or of one series), its names and its settings.

    ``penalty``: a number is the strength of a proximal lasso. ``of_players``: coordinates are players, whose errors
    cancel in all games.
    """

    terms: Terms
    names: list[str]
    state: State
    schedule: Schedule
    penalty: Penalty | float | None
    flight: Lateness
    of_players: bool = False

    @property
    def width(self) -> int:
        """Coordinates of a parameter: its levels."""
        return len(self.terms.start)

    def account(self, c: int) -> Account:
        sums: Account = self.state.sums[c * col.COLUMNS : (c + 1) * col.COLUMNS]
        return sums

    @property
    def totals(self) -> list[Account]:
        whole: Sequence[float] | None = getattr(self.state, "total", None)
        if whole is None and len(self.names) == 1:
            whole = self.state.sums
        elif whole is None:
            table = self.state.view("sums").reshape(len(self.names), -1)
            sums = table.sum(axis=0)
            sums[col.LOW :: col.COLUMNS] = table[:, col.LOW :: col.COLUMNS].min(axis=0, initial=math.inf)
            sums[col.HIGH :: col.COLUMNS] = table[:, col.HIGH :: col.COLUMNS].max(axis=0, initial=-math.inf)
            whole = sums.tolist()
        return [whole[k * col.COLUMNS : (k + 1) * col.COLUMNS] for k in range(self.width)]

    def limited(self, k: int) -> float | None:
        """The weight that clipping adds to the coverage of level k; None without limits."""
        found = getattr(self.state, "total_limited", getattr(self.state, "limited", None))
        return None if found is None else math.fsum(found[col.CHANGES * k :: col.CHANGES * self.width])

    @property
    def constant(self) -> bool:
        """Whether every label was given the same step, so that two states alone give the average."""
        facts = self.state.facts
        return self.terms.certified and bool(facts[fact.STEP_LOW] >= facts[fact.STEP_HIGH])

    @property
    def refusal(self) -> str | None:
        """Why no theorem covers what happened, whatever the settings."""
        facts = self.state.facts
        if self.of_players and facts[fact.LATEST] > 1.0 and self.terms.task != "elo":
            # The lateness of players is not what a theorem needs: that of all games.
            return "no bound is proven for late scores with a home advantage, a penalty or auto"
        reasons = (
            (facts[fact.CORRECTED], "labels were corrected after others had been served"),
            (not self.terms.certified, "weights in equilibrium say nothing about coverage; add a final tracker"),
            (facts[fact.MERGED], "partitions that had learned about the same parameters were merged"),
        )
        return next((reason for holds, reason in reasons if holds), None)


def reading_of(layer: LayerLike) -> Reading:
    if layer.kind == "elo":
        return elo_reading(cast("EloLayer", layer))
    parts = layer.internals
    names, rule = parts.names.names, parts.rule
    return Reading(layer.terms, names, parts.state, rule.schedule, rule.penalty, parts.lateness)


def elo_reading(elo: EloLayer) -> Reading:
    """The reading of a leaderboard; without a home advantage its parameter is left out.

    Where ratings keep their sum the task is Elo, otherwise only the norm argument for features holds.
    """
    names, rule, lateness = elo.internals.names, elo.internals.rule, elo.internals.lateness
    state = rule.written(elo.internals.state)
    penalised = elo.penalty is not None or elo.proximal is not None
    skip = 0 if names.home else 1
    total = np.array([state.total[:STRIDE]])

    def accounts(sums: NDArray[np.float64], loss: float = 0.0) -> list[float]:
        """As all other layers keep them; scores lie in [0, 1]."""
        table = np.zeros((len(sums), col.COLUMNS))
        table[:, :STRIDE] = sums
        table[:, col.LOW], table[:, col.HIGH] = 0.0, 1.0
        table[:, col.LOSS_BEFORE], table[:, col.LOSS_AFTER] = LN2 * table[:, col.WEIGHT], loss
        return table.ravel().tolist()

    read = SimpleNamespace(
        u=state.u[skip:],
        sums=accounts(state.view("sums").reshape(-1, STRIDE)[skip:]),
        total=accounts(total, state.total[LOSS]),
        facts=state.facts,
        late=state.late,
        heaviest_step=state.heaviest_step,
        total_path=state.total_path,
        total_steps=state.total_steps,
        pulls=state.pulls[skip:] if penalised else [],
        drags=state.drags[skip:] if penalised else [],
    )
    size, clip = 2.0 + names.scale**2 if names.home else 2.0, None
    task = "glm" if names.home or elo.proximal is not None else "elo"
    if elo.eta == "auto":
        task, reach = "probability_logit", state.total[OFFSET]
        clip = 1.0 / (1.0 + math.exp(min(reach, 700.0))) if reach > 0.0 else 0.49
    terms = Terms(task, "features", "log loss", size=size, clip=clip)
    penalty = elo.penalty if elo.proximal is None else elo.proximal
    return Reading(terms, names.names[skip:], cast(State, read), rule.schedule, penalty, lateness, of_players=True)


def setting_of(reading: Reading) -> Setting:
    """The setting for theory: the task, the ranges, the steps, the lateness."""
    terms, state, width = reading.terms, reading.state, reading.width
    facts, count = state.facts, len(reading.names)
    common: Arguments = {
        "task": terms.task,
        "clip": terms.clip,
        "weight_max": facts[fact.HEAVIEST],
        "heaviest_step": state.heaviest_step[0] if len(state.heaviest_step) else None,
        "cap": reading.flight.limit,
        "decay": reading.schedule.alpha if isinstance(reading.schedule, Power) else 0.0,
    }
    if terms.levels:
        common["level"] = terms.levels[0]
        common["levels"] = terms.levels if width > 1 else ()
    if isinstance(reading.penalty, (Lasso, Ridge)):
        common["penalty"] = "lasso" if isinstance(reading.penalty, Lasso) else "ridge"
        common["strength"] = reading.penalty.strength
    elif isinstance(reading.penalty, float):
        common |= {"penalty": "proximal lasso", "strength": reading.penalty}

    def one(row: list[float]) -> Setting:
        """The setting of one group, from its row of ``group_facts``."""
        ends = [(-low, high) for low, high in zip(row[:width], row[width : 2 * width], strict=True)]
        numbers, rest = row[2 * width : 2 * width + len(NUMBERS)], row[2 * width + len(NUMBERS) :]
        latest, gaps, steps = int(rest[0]), tuple(rest[1:width]), rest[width:]
        squares = steps.pop() if hasattr(state, "mix_squares") else None
        structure = "scalar" if width == 1 else "isotonic"
        path, ranges = steps_of(reading, steps[: col.PATH], steps[col.PATH :]), (ends, numbers, gaps, squares)
        return Setting(structure=structure, lateness=latest, **common, **path, **ranges_of(reading, *ranges))

    if terms.structure == "scalar" and count == 1:
        return one(group_facts(reading)[0][0].tolist())
    squares, totals = None, reading.totals
    if hasattr(state, "mix_squares"):
        squares = math.fsum(getattr(state, "total_mix_squares", state.mix_squares))
    ends, numbers = [(t[col.LOW], t[col.HIGH]) for t in totals], [totals[0][c] for c in NUMBERS]
    layer: Arguments = {
        **common,
        **steps_of(reading, state.total_path, state.total_steps),
        **ranges_of(reading, ends, numbers, (), squares),
        "lateness": int(facts[fact.LATEST]),
        "dimension": count * width,
    }
    if terms.structure == "disjoint":
        rows, kinds = group_facts(reading)
        groups: Sequence[Setting]
        if count >= MANY and terms.task in ORDERED:
            groups = Groups(rows, kinds, one)
        else:
            groups = tuple(map(one, rows.tolist()))
        return Setting(structure="disjoint", groups=groups, **layer)
    featured = reading.flight.featured
    return Setting(
        structure="features" if featured else "overlapping",
        counts=tuple(state.sums[col.WEIGHT :: col.COLUMNS * width]),
        size=max(facts[fact.NORM], terms.size) if featured else terms.size,
        largest=facts[fact.LARGEST] if featured else 1.0,
        own_steps=own_steps_of(reading),
        **layer,
    )


SUMMED = ("step_mass", "step_squares", "mass_changes", "square_changes")
NUMBERS = [col.ROWS, col.WEIGHT, col.LOSS_BEFORE, col.REACH]  # of the first level


def group_facts(reading: Reading) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """What tells the settings of groups apart, a row for each: the larger a number, the less is promised.

    Both ends of the residuals of each level (the lower one with the other sign), NUMBERS, lateness, the gaps between
    levels, and how steps varied, if they did. And the kind of each group (``theory.setting.Groups``).
    """
    state, width, terms = reading.state, reading.width, reading.terms
    sums = state.view("sums").reshape(-1, width, col.COLUMNS)
    late = np.full(len(sums), float(int(state.facts[fact.LATEST])))
    if reading.flight.per != "key" and len(state.late):
        late = state.view("late").reshape(-1, LATENESS)[:, LATEST_OF_CELL]
    columns = [-sums[:, :, col.LOW], sums[:, :, col.HIGH], sums[:, 0, NUMBERS], late[:, None]]
    if width > 1:
        columns.append(state.view("gaps").reshape(-1, width - 1))
    if len(state.path):
        columns.append(state.view("path").reshape(-1, col.PATH))
        unknown = np.full((len(sums), col.STEPS), math.inf)
        columns.append(state.view("steps").reshape(-1, col.STEPS) if len(state.steps) else unknown)
    if hasattr(state, "mix_squares"):
        columns.append(state.view("mix_squares")[:, None])
    origin = terms.start[0] * terms.size - terms.centre
    zero = terms.task == "poisson" and sums[:, 0, col.LOW] <= origin
    return np.concatenate(columns, axis=1), 2 * np.asarray(zero) + (late >= 2.0)


def own_steps_of(reading: Reading) -> OwnSteps | None:
    """The steps of each parameter's own labels, once steps have varied; None before, and for players."""
    state, terms = reading.state, reading.terms
    if reading.of_players or not len(state.path):
        return None
    accounts = np.asarray(state.view("sums")).reshape(-1, reading.width, col.COLUMNS)[:, 0]
    path = state.view("path").reshape(-1, col.PATH)
    unknown = np.full((len(path), col.STEPS), math.inf)
    sums = state.view("steps").reshape(-1, col.STEPS) if len(state.steps) else unknown
    errors = np.full(len(path), math.inf)
    if terms.loss_name == "squared error":
        errors = terms.loss_scale * accounts[:, col.LOSS_AFTER]
    return OwnSteps(
        weights=accounts[:, col.WEIGHT].copy(),
        first=path[:, col.FIRST].copy(),
        last=path[:, col.LAST].copy(),
        variation=path[:, col.VARIATION].copy(),
        mass=sums[:, col.MASS].copy(),
        squares=sums[:, col.SQUARES].copy(),
        errors=errors.copy(),
    )


def steps_of(reading: Reading, path: Sequence[float], sums: Sequence[float]) -> Arguments:
    """The steps of a path of steps and their sums, which are empty where they never varied (or were not added up)."""
    facts = reading.state.facts
    high = facts[fact.STEP_HIGH]
    if not high:
        return {"eta": reading.schedule.step(1)}
    if not len(path) or not path[col.FIRST]:
        # They were not followed, also where a cap made all of them one and the same.
        same = type(reading.schedule) is Constant and facts[fact.STEP_LOW] >= high
        return {"eta": high, "inverse_variation": 0.0} if same else {"eta": high}
    return {
        "eta": 1.0 / path[col.FIRST],
        "eta_last": 1.0 / path[col.LAST],
        "eta_min": facts[fact.STEP_LOW],
        "eta_max": high,
        "inverse_variation": path[col.VARIATION],
        **dict(zip(SUMMED, sums, strict=False)),
    }


def ranges_of(
    reading: Reading,
    ends: Sequence[tuple[float, float]],
    numbers: Sequence[float],
    gaps: tuple[float, ...],
    mix_squares: float | None,
) -> Arguments:
    """Counts and ranges of one parameter or of all rows, measured from u_1.

    ``ends``: the range of the residuals of each level. ``numbers``: NUMBERS of the first level. ``gaps``: between the
    levels, which bound them (8.6).
    """
    terms, (rows, weight, loss, reach) = reading.terms, numbers
    origins = [start * terms.size - terms.centre for start in terms.start]
    lows = [low - at if low <= high else 0.0 for (low, high), at in zip(ends, origins, strict=True)]
    highs = [high - at if low <= high else 0.0 for (low, high), at in zip(ends, origins, strict=True)]
    low, high = min(lows), max(highs)
    facts: Arguments = {"n": rows, "weight_sum": weight}
    if terms.task == "probability_logit":  # its accounts hold the range of labels
        facts |= {"label_low": max(0.0, low) if rows else 0.0, "label_high": min(1.0, high) if rows else 1.0}
    # Ranges are widened by rounding; some ends are known exactly.
    if terms.task == "poisson" and -1e-9 < low < 0.0:
        low = 0.0
    if terms.task == "probability_shift":
        low, high = max(-1.0, low), min(1.0, high)
    facts |= {"low": low, "high": high}
    if not terms.levels:
        # Under auto the final layer moves a mix: the losses here are those of the raw prediction.
        auto = hasattr(reading.state, "losses")
        return {**facts, "square_sum": mix_squares if auto else 2.0 * loss, "odds_sum": reach}
    if terms.sinh:
        facts["zero_scale_rounds"] = reach
    if len(ends) > 1:
        facts |= {"lows": tuple(lows), "highs": tuple(highs), "gaps": gaps}
    return facts
