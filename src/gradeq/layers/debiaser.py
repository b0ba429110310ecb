"""Debiasing: the average of what was served equals the average label, overall and in every group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from gradeq.certificate import Terms, harm_of
from gradeq.engine import checks
from gradeq.engine.names import Roster
from gradeq.errors import BadInput, StepTooLarge
from gradeq.kernels.account import COLUMNS
from gradeq.layers.bins import COLUMN, Bins
from gradeq.layers.layer import Id, Layer
from gradeq.layers.making import late_limit
from gradeq.ledger.values import Row, Ticket
from gradeq.links import Identity, Link, Logit, Multiplicative, Shift
from gradeq.losses import Squared
from gradeq.penalties import Penalty
from gradeq.rules.descent import Descent
from gradeq.schedules import Constant, Schedule

if TYPE_CHECKING:
    from gradeq.layers.run import Run
    from gradeq.layers.sweep import Frontier
    from gradeq.ledger.batch import Floats
    from gradeq.theory import HarmCap

Outcome = Literal["real", "binary"]
LinkName = Literal["identity", "exp", "logit", "shift"]

NOT_BINARY = "lies outside [0, 1]; a binary outcome needs probabilities and 0/1 labels"
DEFAULT_ETA = {"real": 0.01, "binary": 0.03}  # over c^2 (result B6)
TASKS = {
    "identity": "mean",
    "logit": "probability_logit",
    "shift": "probability_shift",
    "exp": "multiplicative",
}
CAP = {"real": 0.1, "binary": 0.5}  # c of the late-label cap


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
    step is required. ``eta="auto"`` mixes the raw prediction and running means of the residuals by their loss and
    lets one small constant step carry the certificate (result B5); it needs about 500 labels to pay.

    Guaranteed for any sequence: |average served error| <= b / (eta T) with one parameter or disjoint groups,
    O(1 / sqrt T) with overlapping groups or features. The bound is vacuous for short runs.
    Paper: alg:simple-debias-squared, alg:simple-debias-logistic, alg:multigroup-debias-squared (corrected).
    """

    kind = "debias"

    def __init__(
        self,
        eta: float | Literal["auto"] | None = None,
        *,
        outcome: Outcome = "real",
        link: LinkName | None = None,
        groups: Sequence[str] = (),
        features: Sequence[str] = (),
        schedule: Schedule | None = None,
        penalty: Penalty | None = None,
        late_cap: Literal["auto"] | float | None = "auto",
        in_flight: int = 1,
        ttl: float | None = None,
        clip: float = 1e-6,
        bins: Sequence[float] | None = None,
        shadow: bool = False,
    ) -> None:
        self.outcome, self.clip, self.shadow = outcome, clip, shadow
        self.link_name = link or ("identity" if outcome == "real" else "logit")
        self.link = made_link(outcome, self.link_name, clip)
        self.bins = None if bins is None else Bins(bins)
        self.late_cap, self.penalty = late_cap, penalty
        columns = [*groups, COLUMN] if bins is not None and not isinstance(groups, str) else groups
        names = Roster(columns, features, together=penalty is not None)
        self._last: tuple[str, ...] = ()
        self._limited = self.link_name == "identity"
        self.eta, self.schedule = self._chosen_step(eta, schedule, names)
        limit = late_limit(late_cap, CAP[outcome])
        self._build(self._made_rule(names), names, limit, in_flight, ttl)

    def _made_rule(self, names: Roster) -> Any:
        if self.schedule is not None:
            return self._descent(self.schedule, names)
        from gradeq.rules.mixed import Mixed

        final = self._descent(Constant(DEFAULT_ETA[self.outcome] / names.size), names)
        return Mixed(final, names.size if names.groups else 0.0)

    def _descent(self, schedule: Schedule, names: Roster) -> Descent:
        leash = self.link_name == "identity" and self.penalty is None
        totals = not names.scalar
        return Descent(self.link, Squared(), schedule, self.penalty, totals, leash)

    def open(
        self,
        f: Any,
        groups: Mapping[str, Any] | None = None,
        features: Mapping[str, Any] | None = None,
        weight: float = 1.0,
    ) -> Ticket:
        """Serve a prediction and leave its ticket with the caller; ``ticket.served`` is the adjusted value."""
        f = self._prediction(f)
        w = 1.0 if weight == 1.0 else checks.weight(weight)
        row = self._row(f, groups, features)
        self._last = row.names
        return self._open(row, f, w)

    def predict(
        self,
        f: Any,
        groups: Mapping[str, Any] | None = None,
        features: Mapping[str, Any] | None = None,
        weight: float = 1.0,
        id: Id | None = None,
        time: float | None = None,
    ) -> float:
        """The adjusted prediction; a ticket stays open until its label comes."""
        self._book.check_new(id)
        when = None if time is None else checks.number(time, "time")
        shown: float = self._kept(self.open(f, groups, features, weight), id, when)
        return shown

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
            base = self._base_column(predictions)
            groups = self.bins.added_columns(groups, self._names.groups, base)
        return run_layer(self, predictions, labels, groups, features, times, label_times, weights)

    def harm_cap(self) -> HarmCap:
        """Most that the step can cost in loss, whatever comes; its sentence says when nothing is proven."""
        return harm_of(self, "auto follows the best of its means, the raw prediction among them")

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
        sums, index = self._state.sums, self._names.index
        return tuple(name for name in self._last if not sums[index[name] * COLUMNS])

    def set_step(self, eta: float) -> None:
        """Use another constant step from now on; the certificate goes on with the exact sums."""
        if self.eta == "auto":
            raise BadInput("eta='auto' chooses its own steps; make a new layer with a fixed eta")
        self.eta, step = self._chosen_step(checks.number(eta, "eta"), None, self._names)
        assert isinstance(step, Constant)
        self.schedule = step
        self._take_step(step)

    @property
    def theta(self) -> dict[str, float]:
        """The parameters by name; with ``auto`` those of the final layer."""
        return dict(zip(self._names.index, self._state.u, strict=True))

    @property
    def _terms(self) -> Terms:
        names = self._names
        structure = "scalar" if names.scalar else "disjoint" if names.disjoint else "features"
        clip = self.clip if self.link_name == "logit" else None
        return Terms(
            TASKS[self.link_name],
            structure,
            "squared error",
            loss_scale=2.0,
            size=names.size,
            clip=clip,
        )

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments that make this layer anew."""
        names = self._names
        return {
            "eta": self.eta,
            "outcome": self.outcome,
            "link": self.link_name,
            "groups": [name for name in names.groups if self.bins is None or name != COLUMN],
            "features": list(names.features),
            "schedule": None if self.eta is not None else self.schedule,
            "penalty": self.penalty,
            "late_cap": self.late_cap,
            "in_flight": self._in_flight,
            "ttl": self._ttl,
            "clip": self.clip,
            "bins": None if self.bins is None else self.bins.edges,
            "shadow": self.shadow,
        }

    def _row(
        self, f: float, groups: Mapping[str, Any] | None, features: Mapping[str, Any] | None
    ) -> Row:
        if self.bins is not None:
            groups = self.bins.added(groups, f)
        row: Row = self._names.row(groups, features)
        return row

    def _prediction(self, f: Any) -> float:
        if self.outcome == "binary":
            return checks.probability(f, "prediction")
        if self.link_name == "exp":
            return checks.positive(f, "prediction")
        return checks.number(f, "prediction")

    def _label(self, y: Any) -> float:
        if self.outcome == "binary":
            return checks.probability(y, "label")
        return checks.number(y, "label")

    def _base_column(self, predictions: Any) -> Floats:
        from gradeq.layers import columns

        base = columns.numbers(predictions, "prediction")
        if self.outcome == "binary":
            columns.refuse((base < 0.0) | (base > 1.0), base, "prediction", NOT_BINARY)
        elif self.link_name == "exp":
            rule = "is not positive; link exp needs positive predictions"
            columns.refuse(base <= 0.0, base, "prediction", rule)
        return base

    def _label_column(self, labels: Any, n: int) -> Floats:
        from gradeq.layers import columns

        y = columns.labels(labels, n)
        if self.outcome == "binary":
            columns.refuse((y < 0.0) | (y > 1.0), y, "label", NOT_BINARY)
        return y

    def _chosen_step(
        self, eta: float | str | None, schedule: Schedule | None, names: Roster
    ) -> tuple[Any, Schedule | None]:
        if schedule is not None:
            if eta is not None:
                raise BadInput("give eta or a schedule, not both")
            self._check_step(schedule.step(1), names)
            return None, schedule
        if eta == "auto":
            if self.penalty is not None or names.features:
                raise BadInput("eta='auto' goes with neither a penalty nor features; give a number")
            if self.link_name not in ("identity", "logit"):
                raise BadInput(
                    f"eta='auto' is for the links identity and logit, not {self.link_name}"
                )
            return "auto", None
        if eta is None:
            if names.features:
                raise BadInput("eta is required with features: their size is not known in advance")
            eta = DEFAULT_ETA[self.outcome] / names.size
        step = checks.number(eta, "eta")
        constant = Constant(step)
        self._check_step(step, names)
        return step, constant

    def _check_step(self, step: float, names: Roster) -> None:
        """Squared error needs eta c^2 < 2, else some sequence diverges (results 3.2, 5.2)."""
        size = names.size if not names.features else 1.0
        if self._limited and step * size >= 2.0:
            raise StepTooLarge(
                f"eta {step:g} times c^2 {size:g} is {step * size:g}; the squared error is "
                f"stable below 2 only: use eta < {2.0 / size:g}"
            )


def made_link(outcome: str, name: str, clip: float) -> Link:
    """The link of this name, if it fits the outcome."""
    if outcome not in DEFAULT_ETA:
        raise BadInput(f"outcome={outcome!r}: must be real or binary")
    fitting: dict[str, dict[str, Link]] = {
        "real": {"identity": Identity(), "exp": Multiplicative()},
        "binary": {"logit": Logit(clip), "shift": Shift()},
    }
    if name not in fitting[outcome]:
        raise BadInput(
            f"link={name!r} does not fit outcome={outcome!r}: use one of {', '.join(fitting[outcome])}"
        )
    return fitting[outcome][name]
