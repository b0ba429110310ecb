"""`Equilibrium`: the exact average gradients, their proven bound, and their table."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Any, NotRequired, TypedDict, TypeVar

import numpy as np

from gradeq.certificates.figures import HIDDEN, NO_GUARANTEE, agreement_in_words, no_guarantee
from gradeq.engine.learner_state import DIRECTIONS, OWN_GRADIENTS
from gradeq.errors import BadInput
from gradeq.inputs.arguments import split_name
from gradeq.numerics import over, raised
from gradeq.tables import LazySequence, aligned_table, frame_of, html_table, some

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gradeq.certificates.figures import Learning
    from gradeq.engine.learner import Learner
    from gradeq.engine.learner_state import LearnerState


Value = TypeVar("Value")
BALANCED = 1e-8  # allowed difference between state and sums, relative to the averages
ROUNDING = 1e-12  # allowed difference between two sums of the same losses, relative to them
HARM = 0.02  # a loss that rose by more of the raw loss is reported with the percentage
LARGEST = "largest average gradient"
WORST_GROUP = "worst group's mean error over all rows"
FARTHEST = "coverage less level, where farthest off,"  # the largest average gradient of quantiles
ERROR_LOSSES = ("squared error", "log loss")  # their gradients are errors, served minus label
RELATIVE = "relative"  # each weight divided by the mean of the positive ones served so far, its own included
MIXED = "as given by an earlier version, relative since"
SHOWN = 20  # rows of a printed table


@dataclass(frozen=True)
class Coordinate:
    """One parameter (a group, a feature, a player, a level): its averages, certificate and bound.

    ``rows`` counts its labelled rows, and ``weight`` is their total weight. Averages are over the labelled rows of
    all parameters, bias and loss over its own. ``moved`` is u_1 - u, how far the parameter moved.
    ``average_normal`` is what a constraint took back. None: not known.
    """

    name: str
    rows: int
    average_gradient: float
    average_penalty: float = 0.0
    from_state: float = 0.0
    average_normal: float = 0.0
    bias_before: float | None = None
    bias_after: float | None = None
    loss_before: float | None = None
    loss_after: float | None = None
    bound: float | None = None
    vacuous: bool | None = None
    weight: float = 0.0
    moved: float = 0.0

    @property
    def residual(self) -> float:
        """What must vanish: gradient, penalty and normal part together."""
        return self.average_gradient + self.average_penalty + self.average_normal


class Coordinates(LazySequence[Coordinate]):
    """Many coordinates, created on access; columns that are known are read without creating any."""

    def __init__(
        self,
        length: int,
        make: Callable[[int], Coordinate],
        known: Mapping[str, Sequence[str] | NDArray[np.generic] | float],
    ) -> None:
        super().__init__(length, cache(make))
        self._known = known

    def column(self, name: str) -> list[Any]:
        """One number of every coordinate."""
        if name not in self._known:
            return [getattr(c, name) for c in self]
        values = self._known[name]
        return list(values if isinstance(values, list) else np.broadcast_to(values, len(self)).tolist())


class CertificateDict(TypedDict):
    """``Equilibrium.certificate``."""

    average_gradient: dict[str, float | None]
    average_penalty: dict[str, float | None]
    average_normal: dict[str, float | None]
    from_state: dict[str, float | None]
    rows: int
    norm: float | None
    gap: float | None
    bound: float | None
    bound_on: str
    bound_from: str
    labels_needed: int | None
    vacuous: bool | None
    exact: bool
    certified: NotRequired[str]
    weights: NotRequired[str]


class EquilibriumDict(TypedDict):
    """``Equilibrium.as_dict()``."""

    rows: int
    bias: dict[str, float | None]
    loss: dict[str, str | float | None]
    not_known: dict[str, str]
    coordinates: list[dict[str, str | float | bool | None]]
    certificate: CertificateDict
    learning: dict[str, str | float | None] | None


@dataclass(frozen=True)
class Equilibrium:
    """What was reached so far: averages, their certificate from the state, bias and loss before and after, the bound.

    ``gap`` is the largest difference between the summed averages and the state: 0 but for rounding. ``exact``: the
    step was constant, so the averages follow from two states alone. ``bound`` limits the largest average gradient, by
    the result named ``bound_from``, or what ``bounded`` names. ``vacuous``: the bound is not smaller than the raw
    error (``certificates.figures``); None without a bound. ``needed``: about how many labels a useful one takes.
    ``learning``: the current step, how late labels came, how long ``auto`` remembers, rows without a label.
    ``rounding``: how much of the gap rounding can explain; ``hidden``: the figures that it makes unknown;
    ``negligible``: a rise of the loss that it can explain. ``certified``: what is averaged, if not the slopes.
    ``measured``: what was measured, in words, if neither bias nor coverage. ``doubt``: why the figures may mislead.
    ``weights``: the weights of the averages, if not all equal: ``RELATIVE``, or ``MIXED`` in a state of an earlier
    version.

    >>> print(Equilibrium(rows=3, coordinates=(Coordinate("(all)", 3, -0.9, from_state=-0.9),)))
    largest average gradient -0.9 over 3 rows; certificate exact (gap 0); no bound applies
    """

    rows: int
    coordinates: Sequence[Coordinate]
    bias_before: float | None = None
    bias_after: float | None = None
    loss_name: str = "loss"
    loss_before: float | None = None
    loss_after: float | None = None
    gap: float = 0.0
    bound: float | None = None
    bound_from: str = ""
    vacuous: bool | None = None
    exact: bool = True
    learning: Learning | None = None
    rounding: float = 0.0
    hidden: tuple[str, ...] = ()
    bias_name: str = "bias"
    needed: int | None = None
    certified: str = ""
    negligible: float = 0.0
    measured: str = ""
    doubt: str = ""
    weights: str = ""
    bounded: str = ""

    @property
    def largest(self) -> float:
        """The known average gradient that is largest in size, with its sign; 0 without parameters."""
        known = (g for g in column_of(self.coordinates, "average_gradient") if not math.isnan(g))
        return max(known, key=abs, default=0.0)

    @property
    def by_weight(self) -> str:
        """How averages are weighted, in words; empty without weights."""
        if not self.weights:
            return ""
        return ", by relative weight" if self.weights == RELATIVE else f", by weight ({self.weights})"

    @property
    def balance(self) -> str:
        """Whether sums and state agree: "even", "rounded" (a large label explains it) or "broken"."""
        if self.gap <= BALANCED:
            return "even"
        averages = column_of(self.coordinates, "from_state")
        typical = math.sqrt(max(0.0, self.loss_after or 0.0))
        size = max(1.0, typical, *(abs(average) for average in averages if not math.isnan(average)))
        if self.gap <= BALANCED * size:
            return "even"
        return "rounded" if self.gap <= 2.0 * self.rounding else "broken"

    @property
    def norm(self) -> float:
        """||avg g||: no unit combination z'a of the parameters' rows has a larger |average of error times z'a|."""
        return math.hypot(*column_of(self.coordinates, "average_gradient"))

    @property
    def residual(self) -> float:
        """||avg(g + penalty + n)||, the constrained residual that a greedy geometry drives to zero."""
        return math.hypot(*(c.residual for c in self.coordinates))

    @property
    def loss_got_worse(self) -> bool:
        """Whether what was served had a larger loss than the raw predictions."""
        if self.loss_before is None or self.loss_after is None:
            return False
        return self.loss_after - self.loss_before > max(ROUNDING * abs(self.loss_before), self.negligible)

    def verdict(self, measured: str = "") -> str:
        """The whole in one sentence: bias (or what was ``measured``), loss, certificate and bound."""
        if self.rows == 0:
            return "no labels yet: nothing to certify"
        certified = f" of {self.certified}" if self.certified else ""
        learning = self.learning
        parts = [
            f"{self._average_in_words(measured)} over {some(self.rows, 'row')}{self.by_weight}",
            self._loss_in_words(),
            f"certificate{certified} {agreement_in_words(self.balance, self.exact, figure(self.gap))}",
            self.bound_in_words(),
            f"labels: {learning.gaps}" if learning is not None and learning.gaps else "",
            learning.replacements if learning is not None and learning.replaced else "",
            self.doubt,
        ]
        return "; ".join(filter(None, parts))

    def _average_in_words(self, measured: str) -> str:
        if measured or self.measured:
            return measured or self.measured
        if self.bias_after is not None:
            return f"{self.bias_name} {before_and_after(self.bias_before, self.bias_after)}"
        if "bias" in self.hidden:
            return "bias not known"
        name = FARTHEST if self.loss_name == "pinball loss" else self.largest_name
        return f"{name} {figure(self.largest)}"

    def _loss_in_words(self) -> str:
        if self.loss_after is None or self.measured:
            return f"{self.loss_name} not known: {HIDDEN}" if self.loss_name in self.hidden else ""
        worse = " (worse)" if self.loss_got_worse else ""
        raw, automatic = self.loss_before or 0.0, self.learning is not None and self.learning.memory is not None
        if worse and automatic and 0.0 < (1.0 + HARM) * raw < self.loss_after:
            percent = 100.0 * (self.loss_after / raw - 1.0)
            worse = f" (worse than raw by {percent:.0f} %: eta='plain' moves less)"
        return f"{self.loss_name} {before_and_after(self.loss_before, self.loss_after)}{worse}"

    def bound_in_words(self, format: BoundFormat | None = None) -> str:
        """The bound, next to the average that it limits unless that is the bias; or why there is none."""
        bias, largest = self.bias_after, self.largest
        is_bias = bias is None or math.isclose(bias, largest, abs_tol=1e-12)
        return self._limit_in_words(format or BoundFormat(), None if is_bias else largest)

    def largest_in_words(self, format: BoundFormat | None = None) -> str:
        """The largest average gradient and its bound."""
        format = format or BoundFormat()
        words = self._limit_in_words(format, self.largest)
        if self.bound is not None and math.isfinite(self.bound) and not self.vacuous:
            return words
        return f"{self.largest_name} {format.figure(self.largest)}, {words}"

    @property
    def largest_name(self) -> str:
        """What ``largest`` is called: an error where errors of groups are averaged."""
        if self.loss_name in ERROR_LOSSES and self.coordinates:
            at = np.argmax(np.abs(column_of(self.coordinates, "average_gradient")))
            if split_name(self.coordinates[int(at)].name)[1]:
                return WORST_GROUP
        return LARGEST

    def _limit_in_words(self, format: BoundFormat, average: float | None) -> str:
        quantity = self.bounded
        if self.bound is None or not math.isfinite(self.bound):
            known = format.reasons and self.bound_from not in ("", "no theorem fits")
            return f"no bound applies{quantity and ' to '}{quantity}{f': {self.bound_from}' if known else ''}"
        if self.vacuous:
            return no_guarantee(self.needed, "label" if self.bias_name == "bias" else "game", quantity)
        limit = f"proven limit {format.limit(self.bound)}{quantity and ' on '}{quantity}"
        source = f"result {self.bound_from}" if format.reasons and self.bound_from else ""
        if average is None:
            return f"{limit} ({source})" if source else limit
        return f"{self.largest_name} {format.figure(average)} ({', '.join(filter(None, (limit, source)))})"

    def __str__(self) -> str:
        if len(self.coordinates) < 2:
            return self.verdict()
        head, rows, rest = table_cells(self.coordinates)
        return "\n".join((self.verdict(), *aligned_table([head, *rows]), *filter(None, [rest])))

    def _repr_html_(self) -> str:
        return html_table(self.verdict(), *table_cells(self.coordinates))

    def as_dict(self) -> EquilibriumDict:
        """Everything as JSON takes it: numbers, names, null for what is not known or not finite."""
        loss = {"before": json_value(self.loss_before), "after": json_value(self.loss_after)}
        return {
            "rows": self.rows,
            "bias": {"before": json_value(self.bias_before), "after": json_value(self.bias_after)},
            "loss": {"name": self.loss_name, **loss},
            "not_known": {word: HIDDEN for word in self.hidden},
            "coordinates": [{k: json_value(v) for k, v in asdict(c).items()} for c in self.coordinates],
            "certificate": self.certificate,
            "learning": None if self.learning is None else asdict(self.learning),
        }

    def to_frame(self) -> Any:
        """One row for each parameter, as a data frame of pandas, polars or pyarrow, whichever is there."""
        return frame_of({f.name: column_of(self.coordinates, f.name) for f in fields(Coordinate)})

    @property
    def certificate(self) -> CertificateDict:
        """The averages by parameter, from the labels and from the state, and the bound, as JSON takes them."""
        names = column_of(self.coordinates, "name")

        def by_name(column: str) -> dict[str, float | None]:
            values = map(json_value, column_of(self.coordinates, column))
            return dict(zip(names, values, strict=True))

        certificate: CertificateDict = {
            "average_gradient": by_name("average_gradient"),
            "average_penalty": by_name("average_penalty"),
            "average_normal": by_name("average_normal"),
            "from_state": by_name("from_state"),
            "rows": self.rows,
            "norm": json_value(self.norm),
            "gap": json_value(self.gap),
            "bound": json_value(self.bound),
            "bound_on": self.bounded or LARGEST,
            "bound_from": self.bound_from,
            "labels_needed": self.needed,
            "vacuous": None if json_value(self.bound) is None else self.vacuous,
            "exact": self.exact,
        }
        if self.certified:
            certificate["certified"] = self.certified
        if self.weights:
            certificate["weights"] = self.weights
        return certificate


def certificate(
    learner: Learner,
    state: LearnerState,
    names: Sequence[str] | None = None,
    *,
    bound: float | None = None,
    bound_from: str = "",
    vacuous: bool | None = None,
    lipschitz: float | None = None,
    kappa: float | None = None,
) -> Equilibrium:
    """The equilibrium of a learner since it started, with the smallest bound that is proven for the data it saw.

    ``lipschitz`` and ``kappa`` are guarantees of your own loss or gradients: |slope| <= lipschitz, and slope times
    margin >= -kappa, with the margin measured from the start. ``bound`` replaces the computed bound by yours.

    >>> from gradeq import Learner, Squared
    >>> learner = Learner(Squared(), 0.1)
    >>> run = learner.run(learner.start(), None, [1.0, 1.0, 1.0])
    >>> found = certificate(learner, run.state)
    >>> round(found.largest, 4), round(found.bound, 4), found.bound_from
    (-0.9033, 1.3245, '5.2')
    """
    if bound is None:
        from gradeq.certificates.learner_bound import learner_bound

        # Without a raw prediction there is nothing to compare a bound with, so vacuous stays as it was passed.
        proven = learner_bound(learner, state, lipschitz, kappa)
        bound, bound_from = proven.value, proven.result
    return window(learner, None, state, names, bound=bound, bound_from=bound_from, vacuous=vacuous)


def window(
    learner: Learner,
    earlier: LearnerState | None,
    later: LearnerState,
    names: Sequence[str] | None = None,
    *,
    bound: float | None = None,
    bound_from: str = "",
    vacuous: bool | None = None,
) -> Equilibrium:
    """The equilibrium over the rows between two states of one learner; None is the very beginning."""
    d = later.dimension
    labels = list(names) if names is not None else [f"theta_{j + 1}" for j in range(d)] if d > 1 else ["(all)"]
    if len(labels) != d:
        raise BadInput(f"names: {len(labels)} for {d} parameters; give one each")
    if earlier is not None and (earlier.n > later.n or list(earlier.first) != list(later.first)):
        raise BadInput("window: these are not an earlier and a later state of one run")

    def since(name: str) -> Any:
        return getattr(later, name) - (0 if earlier is None else getattr(earlier, name))

    moves = (later.first if earlier is None else earlier.u) - later.u
    rows, weight = since("n"), since("weight")
    sums = zip(*(since(name).tolist() for name in ("gradients", "penalties", "normals", "moves")), strict=True)
    observed = later.internals.observed
    exact = learner.exact and not observed[DIRECTIONS]
    certified = "the gradients given to descend" if observed[OWN_GRADIENTS] else ""
    if observed[DIRECTIONS]:
        certified = "the gradients given to descend, from their sum; steps went along other directions"
    eta = later.step if exact else None
    gap, coordinates = 0.0, []
    for name, (gradient, penalty, normal, applied), moved in zip(labels, sums, moves.tolist(), strict=True):
        average = averages_from_sums(gradient, penalty, normal, applied, moved, weight, eta)
        averages = (average.gradient, average.penalty, average.from_state, average.normal)
        coordinates.append(
            Coordinate(name, rows, *averages, bound=bound, vacuous=vacuous, weight=weight, moved=moved)
        )
        gap = max(gap, average.gap)
    return Equilibrium(
        rows=rows,
        coordinates=tuple(coordinates),
        gap=gap,
        bound=bound,
        bound_from=bound_from,
        vacuous=vacuous,
        exact=exact,
        certified=certified,
    )


@dataclass(frozen=True)
class Average:
    """An average gradient, from sums over rows and from the state, how far the two differ, and u_1 - u."""

    gradient: float
    penalty: float
    normal: float
    from_state: float
    gap: float
    moved: float


def averages_from_sums(
    gradient: float, penalty: float, normal: float, applied: float, moved: float, weight: float, eta: float | None
) -> Average:
    """Averages from sums of gradients, of the penalty's slopes and of normal parts, over rows of this total weight.

    u moved by eta times their sum (prop:gd_simple, prop:pmd_simple). With one step ``eta`` for all rows the average
    follows from the state; where steps varied (None), the move is compared with ``applied``, the sum of the moves.
    """
    total = gradient + penalty + normal
    if eta is None:
        from_state, gap = over(total, weight), abs(applied - moved)
    else:
        from_state = over(moved, eta * weight)
        gap = abs(over(total, weight) - from_state)
    return Average(over(gradient, weight), over(penalty, weight), over(normal, weight), from_state, gap, moved)


def figure(x: float | None) -> str:
    """A number with four digits.

    >>> figure(-0.0074561), figure(1e-17), figure(None), figure(math.inf)
    ('-0.007456', '1e-17', '', '-')
    """
    if x is None:
        return ""
    return f"{x:.4g}" if math.isfinite(x) else "-"  # a mean of squares may overflow


def before_and_after(before: float | None, after: float) -> str:
    """Two figures with an arrow, or one if there is none before."""
    return figure(after) if before is None else f"{figure(before)} -> {figure(after)}"


def bound_figure(x: float) -> str:
    """A bound with four digits, rounded up."""
    return figure(raised(x, ".4g"))


@dataclass(frozen=True)
class BoundFormat:
    """How a bound is written: its numbers, and whether to name the result behind it or the reason for having none."""

    figure: Callable[[float], str] = figure
    limit: Callable[[float], str] = bound_figure
    reasons: bool = True


def json_value(value: Value) -> Value | None:
    """A value as JSON takes it."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def column_of(coordinates: Sequence[Coordinate], name: str) -> list[Any]:
    """One number of every coordinate."""
    if isinstance(coordinates, Coordinates):
        return coordinates.column(name)
    return [getattr(c, name) for c in coordinates]


def table_cells(coordinates: Sequence[Coordinate]) -> tuple[list[str], list[list[str]], str]:
    """Head and rows of a table of the coordinates with the largest biases, without empty columns; a last line."""
    biases = column_of(coordinates, "bias_after")
    biases = [coordinates[i].residual if bias is None else bias for i, bias in enumerate(biases)]
    order = heapq.nsmallest(SHOWN, range(len(biases)), key=lambda i: -abs(biases[i]))

    def limit(c: Coordinate) -> str:
        return "" if c.bound is None else NO_GUARANTEE if c.vacuous else bound_figure(c.bound)

    columns: list[tuple[str, Callable[[Coordinate], str]]] = [
        ("", lambda c: c.name[:32]),
        ("rows", lambda c: f"{c.rows:,}"),
        ("average gradient", lambda c: figure(c.average_gradient)),
        ("penalty", lambda c: figure(c.average_penalty or None)),
        ("normal", lambda c: figure(c.average_normal or None)),
        ("bias before", lambda c: figure(c.bias_before)),
        ("after", lambda c: figure(c.bias_after)),
        ("loss before", lambda c: figure(c.loss_before)),
        ("after", lambda c: figure(c.loss_after)),
        ("bound", limit),
    ]
    cells = [(head, [text(coordinates[i]) for i in order]) for head, text in columns]
    cells = [(head, column) for head, column in cells if any(column)]
    rows = [list(row) for row in zip(*(column for _, column in cells), strict=True)]
    more = len(biases) - SHOWN
    return [head for head, _ in cells], rows, f"... and {more:,} with less" if more > 0 else ""
