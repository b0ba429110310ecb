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


BALANCED = 1e-8  # of the averages: state and sums may differ by as much, and by what is known to be rounding
Value = TypeVar("Value")
ROUNDING = 1e-12  # of a loss: two sums of the same losses may differ by as much
HARM = 0.02  # of the raw loss: more is said
LARGEST = "largest average gradient"
WORST_GROUP = "worst group's mean error over all rows"
ERROR_LOSSES = ("squared error", "log loss")  # their gradients are errors, served less label
RELATIVE = "relative"  # each weight over the mean of the positive ones served so far, its own included
MIXED = "as given by an earlier version, relative since"
FARTHEST = "coverage less level, where farthest off,"  # what the same is for quantiles


@dataclass(frozen=True)
class Coordinate:
    """One parameter (a group, a feature, a player, a level): its averages, certificate and bound.

    ``rows`` counts the labelled rows it took part in. Averages run over all labelled rows of the whole, bias and
    loss over its own, whose weights add up to ``weight``. ``moved`` is u_1 - u, how far its state went.
    ``average_normal`` is what a constraint took back. None where it is not known.
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
    """Many coordinates, made on access; known columns are read without making any."""

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
        own = self._known[name]
        return list(own if isinstance(own, list) else np.broadcast_to(own, len(self)).tolist())


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

    ``gap`` is the largest disagreement between the summed averages and the state; rounding apart it is 0. ``exact``:
    one constant step, so the averages follow from two states alone. ``bound`` bounds the largest average gradient
    by the result named ``bound_from``; ``vacuous`` when it is not smaller than the
    raw error (``certificates.figures``), None without a bound; ``needed``: about how many labels it would take.
    ``learning``: the step in force, how late labels came, how long ``auto`` remembers, rows without a label.
    ``rounding``: how much of the gap rounding alone may explain; ``hidden``: the figures that it leaves unknown.
    ``certified``: what the averages are of, where that is not the slopes of the loss.
    ``negligible``: a rise of the loss that rounding alone may explain. ``measured``: what was measured, in words,
    where it is neither bias nor coverage; ``doubt``: why the figures may not mean what they should. ``weights``:
    those that all averages are over, where they are not all equal: ``RELATIVE``, or ``MIXED`` in a state of an
    earlier version. ``bounded``: what ``bound`` is on, where that is not the largest average gradient.

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
        """The average gradient that is largest in size, with its sign, of those known; 0 without parameters."""
        known = (g for g in column_of(self.coordinates, "average_gradient") if not math.isnan(g))
        return max(known, key=abs, default=0.0)

    @property
    def by_weight(self) -> str:
        """How averages are weighted, in words; empty without weights."""
        if not self.weights:
            return ""
        return ", by relative weight" if self.weights == RELATIVE else f", by weight ({self.weights})"

    @property
    def counted(self) -> str:
        """What labels are called."""
        return "game" if self.bias_name != "bias" else "label"

    @property
    def largest_apart(self) -> float | None:
        """``largest``, which ``bound`` is about, where a bias is shown that is another number (and may exceed it)."""
        bias, of = self.bias_after, self.largest
        return None if bias is None or math.isclose(bias, of, abs_tol=1e-12) else of

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
        rows = f"{some(self.rows, 'row')}{self.by_weight}"
        measured = measured or self.measured
        if measured:
            parts = [f"{measured} over {rows}"]
        elif self.bias_after is not None:
            before = "" if self.bias_before is None else f"{figure(self.bias_before)} -> "
            parts = [f"{self.bias_name} {before}{figure(self.bias_after)} over {rows}"]
        elif "bias" in self.hidden:
            parts = [f"bias not known over {rows}"]
        else:
            off = FARTHEST if self.loss_name == "pinball loss" else self.largest_name
            parts = [f"{off} {figure(self.largest)} over {rows}"]
        if self.loss_after is not None and not self.measured:
            before = "" if self.loss_before is None else f"{figure(self.loss_before)} -> "
            worse = ""
            if self.loss_got_worse:
                raw, auto = self.loss_before or 0.0, self.learning is not None and self.learning.memory is not None
                worse = " (worse)"
                if auto and 0.0 < (1.0 + HARM) * raw < self.loss_after:
                    much = 100.0 * (self.loss_after / raw - 1.0)
                    worse = f" (worse than raw by {much:.0f} %: eta='plain' moves less)"
            parts.append(f"{self.loss_name} {before}{figure(self.loss_after)}{worse}")
        elif self.loss_name in self.hidden:
            parts.append(f"{self.loss_name} not known: {HIDDEN}")
        of = f" of {self.certified}" if self.certified else ""
        parts.append(f"certificate{of} {agreement_in_words(self.balance, self.exact, figure(self.gap))}")
        parts.append(self.bound_in_words())
        if self.learning is not None and self.learning.gaps:
            parts.append(f"labels: {self.learning.gaps}")
        if self.learning is not None and self.learning.replaced:
            parts.append(self.learning.replacements)
        if self.doubt:
            parts.append(self.doubt)
        return "; ".join(parts)

    def bound_in_words(self, format: BoundFormat | None = None) -> str:
        """The bound, beside the average it limits where that is not the bias; or why there is none."""
        return self._limited(format or BoundFormat(), self.largest_apart)

    def largest_in_words(self, format: BoundFormat | None = None) -> str:
        """The largest average gradient and its bound."""
        format = format or BoundFormat()
        words = self._limited(format, self.largest)
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

    def _limited(self, format: BoundFormat, average: float | None) -> str:
        of = self.bounded
        if self.bound is None or not math.isfinite(self.bound):
            known = format.reasons and self.bound_from not in ("", "no theorem fits")
            return f"no bound applies{of and ' to '}{of}{f': {self.bound_from}' if known else ''}"
        if self.vacuous:
            return no_guarantee(self.needed, self.counted, of)
        limited = f"proven limit {format.limit(self.bound)}{of and ' on '}{of}"
        source = f"result {self.bound_from}" if format.reasons and self.bound_from else ""
        if average is None:
            return f"{limited} ({source})" if source else limited
        inside = ", ".join(filter(None, (limited, source)))
        return f"{self.largest_name} {format.figure(average)} ({inside})"

    def __str__(self) -> str:
        if len(self.coordinates) < 2:
            return self.verdict()
        head, rows, rest = table_cells(self.coordinates)
        return "\n".join((self.verdict(), *aligned_table([head, *rows]), *filter(None, [rest])))

    def _repr_html_(self) -> str:
        return html_table(self.verdict(), *table_cells(self.coordinates))

    def as_dict(self) -> EquilibriumDict:
        """Everything as JSON takes it: numbers, names, null for what is not known or not finite."""
        return {
            "rows": self.rows,
            "bias": {"before": json_value(self.bias_before), "after": json_value(self.bias_after)},
            "loss": {
                "name": self.loss_name,
                "before": json_value(self.loss_before),
                "after": json_value(self.loss_after),
            },
            "not_known": {word: HIDDEN for word in self.hidden},
            "coordinates": [{k: json_value(v) for k, v in asdict(c).items()} for c in self.coordinates],
            "certificate": self.certificate,
            "learning": None if self.learning is None else asdict(self.learning),
        }

    def to_frame(self) -> Any:
        """One row for each parameter, as a data frame of pandas, polars or pyarrow, whichever is there."""
        return frame_of({f.name: [getattr(c, f.name) for c in self.coordinates] for f in fields(Coordinate)})

    @property
    def certificate(self) -> CertificateDict:
        """The averages by parameter, from the labels and from the state, and the bound, as JSON takes them."""
        names = column_of(self.coordinates, "name")

        def by_name(column: str) -> dict[str, float | None]:
            values = map(json_value, column_of(self.coordinates, column))
            return dict(zip(names, values, strict=True))

        found: CertificateDict = {
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
            found["certified"] = self.certified
        if self.weights:
            found["weights"] = self.weights
        return found


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
    """The equilibrium of a learner since it started, with the smallest bound that is proven for what it saw.

    ``lipschitz`` and ``kappa`` are what a loss (or gradients) of your own promises: |slope| <= lipschitz, and slope
    times margin >= -kappa, the margin measured from the start. ``bound``: one that you know yourself, instead.

    >>> from gradeq import Learner, Squared
    >>> learner = Learner(Squared(), 0.1)
    >>> run = learner.run(learner.start(), None, [1.0, 1.0, 1.0])
    >>> found = certificate(learner, run.state)
    >>> round(found.largest, 4), round(found.bound, 4), found.bound_from
    (-0.9033, 1.3245, '5.2')
    """
    if bound is None:
        from gradeq.certificates.learner_bound import learner_bound

        # Without a raw prediction there is nothing to judge a bound against: its number is said.
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
    labels = [f"theta_{j + 1}" for j in range(d)] if d > 1 else ["(all)"]
    labels = labels if names is None else list(names)
    if len(labels) != d:
        raise BadInput(f"names: {len(labels)} for {d} parameters; give one each")
    if earlier is not None and (earlier.n > later.n or list(earlier.first) != list(later.first)):
        raise BadInput("window: these are not an earlier and a later state of one run")
    begin = later.first if earlier is None else earlier.u
    rows = later.n - (0 if earlier is None else earlier.n)
    weight = later.weight - (0.0 if earlier is None else earlier.weight)

    def since(name: str) -> list[float]:
        sums = getattr(later, name) - (0.0 if earlier is None else getattr(earlier, name))
        return [float(x) for x in sums]

    sums = zip(*(since(k) for k in ("gradients", "penalties", "normals", "moves")), strict=True)
    gap, coordinates = 0.0, []
    observed = later.internals.observed
    exact = learner.exact and not observed[DIRECTIONS]
    certified = "the gradients given to descend" if observed[OWN_GRADIENTS] else ""
    if observed[DIRECTIONS]:
        certified = "the gradients given to descend, from their sum; steps went along other directions"
    eta = later.step if exact else None
    for j, (gradient, penalty, normal, applied) in enumerate(sums):
        moved = float(begin[j] - later.u[j])
        own = averages_from_sums(gradient, penalty, normal, applied, moved, weight, eta)
        gap = max(gap, own.gap)
        averages = (own.gradient, own.penalty, own.from_state, own.normal)
        coordinates.append(
            Coordinate(labels[j], rows, *averages, bound=bound, vacuous=vacuous, weight=weight, moved=own.moved)
        )
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
    """An average gradient, summed row by row and read off the state, how far the two disagree, and u_1 - u."""

    gradient: float
    penalty: float
    normal: float
    from_state: float
    gap: float
    moved: float


def averages_from_sums(
    gradient: float, penalty: float, normal: float, applied: float, moved: float, weight: float, eta: float | None
) -> Average:
    """Averages from sums: of gradients, of the penalty's slopes and of normal parts, over rows of this weight.

    u moved by eta times their sum (prop:gd_simple, prop:pmd_simple). With one step ``eta`` for all rows the average
    is read off the state; where steps varied (None), the move is held against ``applied``, the sum as applied.
    """
    total = gradient + penalty + normal
    if eta is None:
        from_state, gap = over(total, weight), abs(applied - moved)
    else:
        from_state = over(moved, eta * weight)
        gap = abs(over(total, weight) - from_state)
    return Average(over(gradient, weight), over(penalty, weight), over(normal, weight), from_state, gap, moved)


def figure(x: float | None) -> str:
    """A number with four digits, as a person reads it.

    >>> figure(-0.0074561), figure(1e-17), figure(None), figure(math.inf)
    ('-0.007456', '1e-17', '', '-')
    """
    if x is None:
        return ""
    # A mean of squares may be too large for a number.
    return f"{x:.4g}" if math.isfinite(x) else "-"


def bound_figure(x: float) -> str:
    """A bound with four digits, rounded up."""
    return figure(raised(x, ".4g"))


@dataclass(frozen=True)
class BoundFormat:
    """How a bound is written: its numbers, and whether the result behind it or the reason against it is named."""

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


SHOWN = 20  # rows of a printed table


def table_cells(coordinates: Sequence[Coordinate]) -> tuple[list[str], list[list[str]], str]:
    """Head and rows of a table of the coordinates that are farthest off, without empty columns; what is left out."""
    known = coordinates if isinstance(coordinates, Coordinates) else None
    if known is not None:
        left = known.column("bias_after")
    else:
        left = [c.residual if c.bias_after is None else c.bias_after for c in coordinates]
    order = heapq.nsmallest(SHOWN, range(len(left)), key=lambda i: -abs(left[i]))
    worst = [coordinates[i] for i in order]

    def limit(c: Coordinate) -> str:
        return "" if c.bound is None else NO_GUARANTEE if c.vacuous else bound_figure(c.bound)

    columns: list[tuple[str, Callable[[Coordinate], str], str]] = [
        ("", lambda c: c.name[:32], "name"),
        ("rows", lambda c: f"{c.rows:,}", ""),
        ("average gradient", lambda c: figure(c.average_gradient), ""),
        ("penalty", lambda c: figure(c.average_penalty or None), "average_penalty"),
        ("normal", lambda c: figure(c.average_normal or None), "average_normal"),
        ("bias before", lambda c: figure(c.bias_before), ""),
        ("after", lambda c: figure(c.bias_after), ""),
        ("loss before", lambda c: figure(c.loss_before), ""),
        ("after", lambda c: figure(c.loss_after), ""),
        ("bound", limit, ""),
    ]
    filled = []
    for head, text, name in columns:
        cells = [text(c) for c in worst]
        others = known.column(name) if known and name else map(text, () if known else coordinates)
        if any(cells) or any(others):
            filled.append((head, cells))
    rows = [[cells[i] for _, cells in filled] for i in range(len(worst))]
    more = len(left) - SHOWN
    return [head for head, _ in filled], rows, f"... and {more:,} with less" if more > 0 else ""
