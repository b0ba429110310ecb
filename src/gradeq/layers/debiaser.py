"""Debiasing: the average of what was served equals the average label, overall and in every group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gradeq.engine.desk import Desk
from gradeq.engine.margin import Margin
from gradeq.engine.mix import Mix
from gradeq.errors import BadInput, StepTooLarge
from gradeq.kernels.lane import MOST
from gradeq.kernels.loops import COLUMNS
from gradeq.layers import door
from gradeq.layers.bins import COLUMN, Bins
from gradeq.layers.debias_parts import CAP, DEFAULT_ETA, made_link, made_mix
from gradeq.layers.layer import Layer, late_limit
from gradeq.layers.roster import Roster
from gradeq.losses import Squared
from gradeq.penalties import Penalty
from gradeq.schedules import Constant, Schedule

if TYPE_CHECKING:
    from gradeq.engine.batch import Floats
    from gradeq.engine.quick import Lane
    from gradeq.equilibrium import Equilibrium
    from gradeq.layers.run import Run
    from gradeq.layers.sweep import Frontier
    from gradeq.theory import HarmCap

TINY = 5e-324  # the smallest positive float
NOT_BINARY = "lies outside [0, 1]; a binary outcome needs probabilities and 0/1 labels"


class Debiaser(Layer):
    """Serves prediction + correction; in equilibrium the mean served value equals the mean label.

    >>> layer = Debiaser(eta=0.5)
    >>> layer.predict(10.0)
    10.0
    >>> layer.update(12.0)
    'applied'
    >>> layer.predict(10.0)
    11.0

    ``outcome="real"``: squared error, link identity (f + z'theta) or exp (f exp(z'theta), positive f).
    ``outcome="binary"``: probabilities and labels in [0, 1], link logit (stays in [0, 1]; default) or shift (the
    paper's). ``groups``: names of group columns; each value of each column is kept unbiased, columns may overlap.
    A group without labels yet is served with what is known and named in ``layer.cold``. ``bins``: edges that make the
    prediction itself one more group column. ``features``: numeric columns; the served error is made uncorrelated with
    each (and with all linear functions of them: multiaccuracy).

    ``eta`` left out: 0.01 / c^2 for real, 0.03 / c^2 for binary outcomes, c^2 the number of group columns. With
    labels at once this step can raise the squared error by at most 1 % (result B1), with link logit the log loss of
    0/1 labels by at most 0.62 % (result C4), whatever comes; ``harm_cap()`` says it for any step. With features the
    step is required. ``eta="auto"`` mixes the raw prediction and several steps by their loss and lets one small
    constant step carry the certificate (result B5); it needs about 500 labels to pay.

    Guaranteed for any sequence: |average served error| <= b / (eta T) with one parameter or disjoint groups,
    O(1 / sqrt T) with overlapping groups or features. The bound is vacuous for short runs.
    Paper: alg:simple-debias-squared, alg:simple-debias-logistic, alg:multigroup-debias-squared (corrected).
    """

    kind = "debias"

    def __init__(
        self,
        eta: float | str | None = None,
        *,
        outcome: str = "real",
        link: str | None = None,
        groups: Sequence[str] = (),
        features: Sequence[str] = (),
        schedule: Schedule | None = None,
        penalty: Penalty | None = None,
        late_cap: str | float | None = "auto",
        in_flight: int = 1,
        ttl: float | None = None,
        clip: float = 1e-6,
        bins: Sequence[float] | None = None,
        shadow: bool = False,
    ) -> None:
        self.outcome, self.clip, self.shadow = outcome, clip, shadow
        self._last: Sequence[int] = ()
        self.link_name = link or ("identity" if outcome == "real" else "logit")
        self.link = made_link(outcome, self.link_name, clip)
        self.bins = None if bins is None else Bins(bins)
        self.roster = Roster([*groups, COLUMN] if bins is not None else groups, features)
        self.late_cap, self.penalty = late_cap, penalty
        self.eta, self.schedule = self._chosen_step(eta, schedule)
        limit = late_limit(late_cap, CAP)
        step = self.schedule
        head: Margin | Mix
        if step is None:
            head = made_mix(outcome, self.roster.size, clip, self._margin)
        else:
            head = self._margin(step, limit or 0.0, penalty)
        self.desk = Desk(head, capped=limit is not None, in_flight=in_flight, ttl=ttl)
        self.desk.leashed = self.link_name == "identity" and step is not None
        self.desk.sized = self.link_name == "identity" and step is None and bool(features)
        if self.desk.sized:
            head.size = 1.0
        self.grow()
        if self.roster.scalar and not shadow:
            self._quick_lane()

    def predict(
        self,
        f: Any,
        groups: Mapping[str, Any] | None = None,
        features: Mapping[str, Any] | None = None,
        weight: float = 1.0,
        id: str | int | None = None,
        time: float | None = None,
    ) -> float:
        """The adjusted prediction; a ticket stays open until its label comes."""
        plain = (
            groups is None and features is None and weight == 1.0 and id is None and time is None
        )
        if plain and self.roster.scalar and not self.shadow:
            lane = self._lane or self._quick_lane()
            if lane is not None:
                return lane.predict(f)  # type: ignore[no-any-return]
        return self._predict(f, groups, features, weight, id, time)

    def _predict(
        self,
        f: Any,
        groups: Mapping[str, Any] | None = None,
        features: Mapping[str, Any] | None = None,
        weight: float = 1.0,
        id: str | int | None = None,
        time: float | None = None,
    ) -> float:
        f = self.prediction(f)
        if self.bins is not None:
            groups = self.bins.added(groups, f)
        row = self.roster.row(groups, features)
        self._last = row.params
        w = 1.0 if weight == 1.0 else door.weight(weight)
        if w != 1.0 or self.roster.features:  # else the step was checked when it was chosen
            self.check_rows(row.norm if self.roster.features else self.roster.size, w)
        desk = self.desk
        if len(self.roster.names) > len(desk.peaks):
            self.grow()
        served: float = desk.open(row, f, w, id, time)
        shown: float = self.shown(f, served)
        return shown

    def _quick_lane(self) -> Lane | None:
        binary = self.outcome == "binary"
        high = 1.0 if binary else MOST
        low = 0.0 if binary else TINY if self.link_name == "exp" else -MOST
        labels = (0.0, 1.0) if binary else (-MOST, MOST)
        again = Debiaser.predict.__get__(self)
        return self.enter_lane((low, high), labels, self.prediction, again, self._predict)

    def run(
        self,
        predictions: Any,
        labels: Any = None,
        groups: Any = None,
        features: Any = None,
        times: Any = None,
        label_times: Any = None,
        weights: Any = None,
    ) -> Run:
        """Serve and learn from whole columns, with the same bits as one event at a time.

        Labels at once unless ``label_times`` says when each came (then ``times`` is needed as well); a missing
        label is served but not learned from. Nothing has changed if this raises.
        """
        from gradeq.layers.run import run_layer

        if self.bins is not None:
            base = self.base_column(predictions)
            groups = self.bins.added_columns(groups, self.roster.groups, base)
        return run_layer(self, predictions, labels, groups, features, times, label_times, weights)

    def equilibrium(self) -> Equilibrium:
        """Exact averages per group, the certificate from the state, the proven bound, bias and loss."""
        from gradeq.layers.certify import certify

        return certify(self)

    def labels_until(self, bound: float) -> int | None:
        """How many more labels until the proven bound falls below this, if things go on as they were."""
        from gradeq.layers.certify import setting_of
        from gradeq.layers.promises import more_labels

        return more_labels(setting_of(self), bound)

    def harm_cap(self) -> HarmCap:
        """Most that the step can cost in loss, whatever comes; its sentence says when nothing is proven."""
        from gradeq.layers.certify import setting_of
        from gradeq.layers.promises import harm_of

        auto = "auto follows the best of its steps, the raw prediction among them"
        return harm_of(self.desk, self.schedule, setting_of(self), auto)

    def sweep(
        self,
        etas: Sequence[float],
        predictions: Any,
        labels: Any,
        groups: Any = None,
        features: Any = None,
        weights: Any = None,
    ) -> Frontier:
        """Bias and loss of many steps on the same rows, each from a fresh start, in one pass (in hindsight)."""
        from gradeq.layers.sweep import sweep

        return sweep(self, etas, predictions, labels, groups, features, weights)

    @property
    def cold(self) -> tuple[str, ...]:
        """The parameters of the last event that have seen no label yet: it was served without their correction."""
        sums, names = self.certified.sums, list(self.roster.names)
        return tuple(names[j] for j in self._last if not sums[j * COLUMNS])

    def prediction(self, f: Any) -> float:
        """The base prediction, checked."""
        if self.outcome == "binary":
            return door.probability(f, "prediction")
        return (
            door.positive(f, "prediction")
            if self.link_name == "exp"
            else door.number(f, "prediction")
        )

    def base_column(self, predictions: Any) -> Floats:
        """A column of base predictions, checked."""
        from gradeq.layers import columns

        base = columns.numbers(predictions, "prediction")
        if self.outcome == "binary":
            columns.refuse((base < 0.0) | (base > 1.0), base, "prediction", NOT_BINARY)
        elif self.link_name == "exp":
            rule = "is not positive; link exp needs positive predictions"
            columns.refuse(base <= 0.0, base, "prediction", rule)
        return base

    def label_column(self, labels: Any, n: int) -> Floats:
        """A column of labels, checked; nan where there is none."""
        from gradeq.layers import columns

        y = columns.labels(labels, n)
        if self.outcome == "binary":
            columns.refuse((y < 0.0) | (y > 1.0), y, "label", NOT_BINARY)
        return y

    def shown(self, f: Any, served: Any) -> Any:
        """What the user sees: the served value, or the raw one in shadow mode."""
        return f if self.shadow else served

    def label(self, y: Any) -> float:
        """The label, checked."""
        return door.probability(y, "label") if self.outcome == "binary" else door.number(y, "label")

    def set_step(self, eta: float) -> None:
        """Use another constant step from now on; the certificate goes on with the exact sums."""
        from gradeq.layers.promises import fixed_head, take_step

        head = fixed_head(self.desk)
        self.eta, self.schedule = self._chosen_step(eta, None)
        if self.schedule is not None:
            take_step(self.desk, head, self.schedule)

    @property
    def theta(self) -> dict[str, float]:
        """The parameters by name; with ``auto`` those of the final layer."""
        u = self.certified.u
        return {name: u[j] for name, j in self.roster.names.items()}

    @property
    def certified(self) -> Margin:
        """The head that carries the certificate."""
        head = self.desk.head
        return head.final if isinstance(head, Mix) else head  # type: ignore[return-value]

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments that make this layer anew."""
        return {
            "eta": self.eta,
            "outcome": self.outcome,
            "link": self.link_name,
            "groups": [name for name in self.roster.groups if self.bins is None or name != COLUMN],
            "features": list(self.roster.features),
            "schedule": None if self.eta is not None else self.schedule,
            "penalty": self.penalty,
            "late_cap": self.late_cap,
            "in_flight": self.desk.in_flight,
            "ttl": self.desk.ttl,
            "clip": self.clip,
            "bins": None if self.bins is None else self.bins.edges,
            "shadow": self.shadow,
        }

    def state(self) -> dict[str, Any]:
        """All that has changed since the layer was made."""
        return {"names": list(self.roster.names), **self.desk.state()}

    def restore(self, state: dict[str, Any]) -> None:
        """Take up a saved state."""
        self.roster.names = {name: j for j, name in enumerate(state["names"])}
        self.desk.restore(state)
        self.grow()

    def _chosen_step(
        self, eta: float | str | None, schedule: Schedule | None
    ) -> tuple[float | str | None, Schedule | None]:
        if schedule is not None:
            if eta is not None:
                raise BadInput("give eta or a schedule, not both")
            self._check_step(schedule.step(1))
            return None, schedule
        if eta == "auto":
            if self.penalty is not None:
                raise BadInput("eta='auto' does not go with a penalty; give a number for eta")
            if self.link_name not in ("identity", "logit"):
                raise BadInput(
                    f"eta='auto' is for the links identity and logit, not {self.link_name}"
                )
            return "auto", None
        if eta is None:
            if self.roster.features:
                raise BadInput(
                    "eta is required with features (their size is not known in advance), or 'auto'"
                )
            eta = DEFAULT_ETA[self.outcome] / self.roster.size
        step = door.number(eta, "eta")
        constant = Constant(step)
        self._check_step(step)
        return step, constant

    def _check_step(self, step: float) -> None:
        self.check_rows(self.roster.size if not self.roster.features else 1.0, 1.0, step)

    def check_rows(self, size: float, w: float, step: float | None = None) -> None:
        """Squared error needs eta w c^2 < 2, else some sequence diverges (result 3.2, 5.2, D3)."""
        if self.outcome != "real" or self.link_name != "identity":
            return
        if step is None:
            if self.schedule is None:
                return
            step = self.schedule.step(1)
        if step * w * size >= 2.0:
            raise StepTooLarge(
                f"eta {step:g} times weight {w:g} times c^2 {size:g} is {step * w * size:g}; the squared error is "
                f"stable below 2 only: use eta < {2.0 / (w * size):g}"
            )

    def _margin(self, schedule: Schedule, limit: float, penalty: Penalty | None = None) -> Margin:
        return Margin(self.link, Squared(), schedule, limit, penalty, totals=not self.roster.scalar)

    def grow(self) -> None:
        """Room for all groups seen so far."""
        self.desk.head.grow(len(self.roster.names))
        self.desk.grow(self.roster.clock_count(), self.roster.cell_count())
