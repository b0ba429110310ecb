"""Equilibrium: how far the average gradient is from zero, exactly, and the same read off the state.

The average gradient is summed row by row. The state moved by eta times that sum, so (u_1 - u) / (eta n) must give
the same number (prop:gd_simple, prop:pmd_simple); the gap between the two says whether anything was half done or
damaged on the way. What is proven beforehand is the ``bound``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gradeq.engine.observed import DIRECTIONS, OWN_GRADIENTS
from gradeq.errors import BadInput
from gradeq.informative import no_guarantee
from gradeq.numerics import over
from gradeq.rounding import HIDDEN, balance, trusted
from gradeq.tables import Lazily, frame_of, in_html
from gradeq.upward import raised

if TYPE_CHECKING:
    from gradeq.engine.learned import State
    from gradeq.engine.learner import Learner
    from gradeq.learning import Learning

ROUNDING = 1e-12  # of a loss: two sums of the same losses may differ by as much
HARM = 0.02  # of the raw loss: more is said
LARGEST = "largest average gradient"
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


class Coordinates(Lazily[Coordinate]):
    """Many coordinates, made when they are looked at; columns that are known need none to be made."""

    def __init__(
        self, length: int, make: Callable[[int], Coordinate], known: Mapping[str, Any]
    ) -> None:
        super().__init__(length, cache(make))
        self._known = known

    def column(self, name: str) -> list[Any]:
        """One number of every coordinate."""
        if name not in self._known:
            return [getattr(c, name) for c in self]
        own = self._known[name]
        return list(own if isinstance(own, list) else np.broadcast_to(own, len(self)).tolist())


@dataclass(frozen=True)
class Equilibrium:
    """What was reached so far: averages, their certificate from the state, bias and loss before and after, the bound.

    ``gap`` is the largest disagreement between the summed averages and the state; rounding apart it is 0. ``exact``:
    one constant step, so the averages follow from two states alone. ``bound`` bounds the largest average gradient
    by the result named ``bound_from``; ``vacuous`` when it is no smaller than the
    raw error (``gradeq.informative``), None without a bound; ``needed``: about how many labels it would take.
    ``learning``: the step in force, how late labels came, how long ``auto`` remembers, rows without a label.
    ``rounding``: how much of the gap rounding alone may explain; ``hidden``: the figures that it leaves unknown.
    ``certified``: what the averages are of, where that is not the slopes of the loss.
    ``negligible``: a rise of the loss that rounding alone may explain. ``measured``: what was measured, in words,
    where it is neither bias nor coverage; ``doubt``: why the figures may not mean what they should.

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

    @property
    def largest(self) -> float:
        """The average gradient that is largest in size, with its sign, of those known; 0 without parameters."""
        known = (g for g in column_of(self.coordinates, "average_gradient") if not math.isnan(g))
        return max(known, key=abs, default=0.0)

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
        averages = column_of(self.coordinates, "from_state")
        return balance(self.gap, averages, self.loss_after, self.rounding)

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
        return self.loss_after - self.loss_before > max(
            ROUNDING * abs(self.loss_before), self.negligible
        )

    def verdict(self, measured: str = "") -> str:
        """The whole in one sentence: bias (or what was ``measured``), loss, certificate and bound."""
        if self.rows == 0:
            return "no labels yet: nothing to certify"
        rows = f"{self.rows:,} row{'' if self.rows == 1 else 's'}"
        measured = measured or self.measured
        if measured:
            parts = [f"{measured} over {rows}"]
        elif self.bias_after is not None:
            before = "" if self.bias_before is None else f"{figure(self.bias_before)} -> "
            parts = [f"{self.bias_name} {before}{figure(self.bias_after)} over {rows}"]
        elif "bias" in self.hidden:
            parts = [f"bias not known over {rows}"]
        else:
            off = FARTHEST if self.loss_name == "pinball loss" else LARGEST
            parts = [f"{off} {figure(self.largest)} over {rows}"]
        if self.loss_after is not None and not self.measured:
            before = "" if self.loss_before is None else f"{figure(self.loss_before)} -> "
            worse = f" ({self._worse})" if self.loss_got_worse else ""
            parts.append(f"{self.loss_name} {before}{figure(self.loss_after)}{worse}")
        elif self.loss_name in self.hidden:
            parts.append(f"{self.loss_name} not known: {HIDDEN}")
        of = f" of {self.certified}" if self.certified else ""
        parts.append(f"certificate{of} {trusted(self.balance, self.exact, figure(self.gap))}")
        parts.append(self._bound_in_words())
        if self.learning is not None and self.learning.gaps:
            parts.append(f"labels: {self.learning.gaps}")
        if self.learning is not None and self.learning.replaced:
            parts.append(self.learning.replacements)
        if self.doubt:
            parts.append(self.doubt)
        return "; ".join(parts)

    @property
    def _worse(self) -> str:
        """That the loss got worse; how much, and what moves less, where ``auto`` costs over 2 %."""
        auto = self.learning is not None and self.learning.method == "auto"
        before, after = self.loss_before or 0.0, self.loss_after or 0.0
        if not auto or before <= 0.0 or after <= (1.0 + HARM) * before:
            return "worse"
        return f"worse than raw by {100.0 * (after / before - 1.0):.0f} %: eta='plain' moves less"

    def _bound_in_words(self) -> str:
        if self.bound is None or not math.isfinite(self.bound):
            why = "" if self.bound_from in ("", "no theorem fits") else f": {self.bound_from}"
            return f"no bound applies{why}"
        source = f" (result {self.bound_from})" if self.bound_from else ""
        apart = self.largest_apart
        of = "" if apart is None else f"{LARGEST} {figure(apart)}, "
        if self.vacuous:
            return no_guarantee(self.needed, self.counted)
        return f"{of}bound {limit(self.bound)}{source}"

    def __str__(self) -> str:
        from gradeq.equilibrium_table import table_lines

        if len(self.coordinates) < 2:
            return self.verdict()
        return "\n".join((self.verdict(), *table_lines(self.coordinates)))

    def _repr_html_(self) -> str:
        """The same as a table for notebooks."""
        from gradeq.equilibrium_table import cells_of

        return in_html(self.verdict(), *cells_of(self.coordinates))

    def as_dict(self) -> dict[str, Any]:
        """Everything as JSON takes it: numbers, names, null for what is not known or not finite."""
        return {
            "rows": self.rows,
            "bias": {"before": plain(self.bias_before), "after": plain(self.bias_after)},
            "loss": {
                "name": self.loss_name,
                "before": plain(self.loss_before),
                "after": plain(self.loss_after),
            },
            "not_known": {word: HIDDEN for word in self.hidden},
            "coordinates": [{k: plain(v) for k, v in asdict(c).items()} for c in self.coordinates],
            "certificate": self.certificate,
            "learning": None if self.learning is None else self.learning._asdict(),
        }

    def to_frame(self) -> Any:
        """One row for each parameter, as a data frame of pandas, polars or pyarrow, whichever is there."""
        return frame_of(
            {f.name: [getattr(c, f.name) for c in self.coordinates] for f in fields(Coordinate)}
        )

    @property
    def certificate(self) -> dict[str, Any]:
        """The averages by parameter, from the labels and from the state, and the bound, as JSON takes them."""
        names = column_of(self.coordinates, "name")
        columns = ("average_gradient", "average_penalty", "average_normal", "from_state")
        return {
            **{
                name: dict(zip(names, map(plain, column_of(self.coordinates, name)), strict=True))
                for name in columns
            },
            "rows": self.rows,
            "norm": plain(self.norm),
            "gap": plain(self.gap),
            "bound": plain(self.bound),
            "bound_from": self.bound_from,
            "labels_needed": self.needed,
            "vacuous": None if plain(self.bound) is None else self.vacuous,
            "exact": self.exact,
            **({"certified": self.certified} if self.certified else {}),
        }


def certificate(
    learner: Learner,
    state: State,
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
        from gradeq.learner_bound import learner_bound

        # Without a raw prediction there is nothing to judge a bound against: its number is said.
        bound, bound_from, *_ = learner_bound(learner, state, lipschitz, kappa)
    return window(learner, None, state, names, bound=bound, bound_from=bound_from, vacuous=vacuous)


def window(
    learner: Learner,
    earlier: State | None,
    later: State,
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
    directed = bool(later._columns.observed[DIRECTIONS])
    exact = learner.exact and not directed
    eta = later.step if exact else None
    for j, (gradient, penalty, normal, applied) in enumerate(sums):
        moved = float(begin[j] - later.u[j])
        own = averaged(gradient, penalty, normal, applied, moved, weight, eta)
        gap = max(gap, own.gap)
        averages = (own.gradient, own.penalty, own.from_state, own.normal)
        coordinates.append(
            Coordinate(
                labels[j],
                rows,
                *averages,
                bound=bound,
                vacuous=vacuous,
                weight=weight,
                moved=own.moved,
            )
        )
    return Equilibrium(
        rows=rows,
        coordinates=tuple(coordinates),
        gap=gap,
        bound=bound,
        bound_from=bound_from,
        vacuous=vacuous,
        exact=exact,
        certified=certified_gradients(later),
    )


def certified_gradients(state: State) -> str:
    """What the averages of a learner are of, where that is not the slopes of its loss."""
    observed = state._columns.observed
    if observed[DIRECTIONS]:
        return "the gradients given to descend, from their sum; steps went along other directions"
    return "the gradients given to descend" if observed[OWN_GRADIENTS] else ""


class Average(NamedTuple):
    """An average gradient, summed row by row and read off the state, how far the two disagree, and u_1 - u."""

    gradient: float
    penalty: float
    normal: float
    from_state: float
    gap: float
    moved: float


def averaged(
    gradient: float,
    penalty: float,
    normal: float,
    applied: float,
    moved: float,
    weight: float,
    eta: float | None,
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
    return Average(
        over(gradient, weight), over(penalty, weight), over(normal, weight), from_state, gap, moved
    )


def figure(x: float | None) -> str:
    """A number with four digits, as a person reads it.

    >>> figure(-0.0074561), figure(1e-17), figure(None)
    ('-0.007456', '1e-17', '')
    """
    return "" if x is None else f"{x:.4g}"


def limit(x: float) -> str:
    """A bound with four digits, rounded up."""
    return figure(raised(x, ".4g"))


def plain(value: Any) -> Any:
    """A value as JSON takes it."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def column_of(coordinates: Sequence[Coordinate], name: str) -> list[Any]:
    """One number of every coordinate."""
    if isinstance(coordinates, Coordinates):
        return coordinates.column(name)
    return [getattr(c, name) for c in coordinates]
