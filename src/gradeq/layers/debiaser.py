"""Debiasing: the average served value equals the average label, overall and in every group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Never

from gradeq.certificates.reading import Terms
from gradeq.engine import scalars
from gradeq.engine.lateness import BOUNDED, SQUARED
from gradeq.engine.names import NO_GROUP, Roster, as_names
from gradeq.errors import BadInput, StepTooLarge
from gradeq.inputs.arguments import as_shown
from gradeq.inputs.column_types import ColumnLike, ColumnsByName
from gradeq.kernels.account import COLUMNS
from gradeq.layers import columns
from gradeq.layers.locking import locked
from gradeq.layers.options import LateCap, LateLabels, Support, check_label, limits_of
from gradeq.layers.predicting import COLUMN, Bins, Grouped
from gradeq.layers.run import InputColumns
from gradeq.links import ClippedIdentity, ClippedLogit, ClippedShift, Identity, Link, Logit, Multiplicative, Shift
from gradeq.losses import Squared
from gradeq.penalties import Penalty
from gradeq.rules.descent import Descent
from gradeq.rules.rule import LARGEST_FINITE, Rule
from gradeq.rules.wrapped import Relative
from gradeq.schedules import Constant, Schedule
from gradeq.theory.harm import at_least, clip_cost

if TYPE_CHECKING:
    from gradeq.layers.sweep import Frontier
    from gradeq.ledger.batch import Floats

Outcome = Literal["real", "binary"]
LinkName = Literal["identity", "exp", "logit", "shift"]

NOT_BINARY = "lies outside [0, 1]; a binary outcome needs probabilities and 0/1 labels"
DEFAULT_ETA = {"real": 0.01, "binary": 0.03}  # over c^2 (result B6)
TASKS = {"identity": "mean", "logit": "probability_logit", "shift": "probability_shift", "exp": "poisson"}
SMALLEST = 5e-324  # the smallest positive float
CAP = {"real": 0.1, "binary": 0.5}  # c of the late-label cap


class Debiaser(Grouped[float, Never]):
    """Serves prediction + correction; in equilibrium the mean served value equals the mean label.

    >>> layer = Debiaser(eta=0.5)
    >>> layer.predict(10.0)
    10.0
    >>> layer.update(12.0)
    'applied'
    >>> layer.predict(10.0)
    11.0

    ``outcome="real"``: squared error, link identity (f + z'theta) or exp (f exp(z'theta) for positive f; error and
    certificate are relative to f, so that the step has no unit).
    ``outcome="binary"``: probabilities and labels in [0, 1], link logit (stays in [0, 1]; default) or shift (the
    paper's). ``groups``: names of group columns; every value of every column becomes unbiased, columns may overlap.
    A group without labels so far is named in ``layer.cold``. ``bins``: edges that make the prediction itself one more
    group column. ``features``: numeric columns; the served error becomes uncorrelated with each (and with all linear
    functions of them: multiaccuracy). ``support=(lo, hi)``: the limits of the labels (None: no limit on that side).
    Served values are clipped to them, certificate and bounds hold for the clipped values, and labels outside are
    refused.

    ``eta`` defaults to ``"auto"``: it mixes the raw prediction and running means of the residuals by their loss, and
    one small constant step carries the certificate (result B5); it follows drift and late labels, and needs about
    500 labels to pay off. ``eta="plain"``: that constant step alone, 0.01 / c^2 for real, 0.03 / c^2 for binary
    outcomes, c^2 the number of group columns. With labels known before the next prediction and link identity it can
    raise the squared error by at most 1.02 % (result B1), with link logit the log loss of 0/1 labels by at most
    0.62 % of that of the clipped prediction (result C4), whatever the data; clipping itself can cost -log(1 - clip).
    ``harm_cap()`` gives this for any step and clip, compared with the raw prediction. With a penalty or the links
    shift and exp, ``eta`` defaults to plain; with features it is required.

    Late labels (``late_cap`` to ``queue``): see ``gradeq.layers.options.LateLabels``.

    Guaranteed for any sequence: |average served error| <= b / (eta T) with one parameter or disjoint groups,
    O(1 / sqrt T) with overlapping groups or features. The bound is vacuous for short runs.
    Paper: alg:simple-debias-squared, alg:simple-debias-logistic, alg:multigroup-debias-squared (corrected).
    """

    kind = "debias"
    _as_served = True

    def __init__(
        self,
        eta: float | Literal["auto", "plain"] | None = None,
        *,
        outcome: Outcome = "real",
        link: LinkName | None = None,
        groups: Sequence[str] | str = (),
        features: Sequence[str] | str = (),
        schedule: Schedule | None = None,
        penalty: Penalty | None = None,
        late_cap: LateCap = "auto",
        in_flight: int = 1,
        ttl: float | str | None = None,
        maturity: float | str | None = None,
        missing_is: float | None = None,
        queue: bool = False,
        clip: float = 1e-6,
        bins: Sequence[float] | None = None,
        support: Support | None = None,
        shadow: bool = False,
    ) -> None:
        for what, word in (("outcome", outcome), ("link", "" if link is None else link)):
            if not isinstance(word, str):
                raise BadInput(f"{what}={as_shown(word)} is not a word; see help(gradeq.Debiaser) for those it knows")
        clip = scalars.as_number(clip, "clip")
        self.outcome, self.clip, self.shadow = outcome, clip, scalars.flag(shadow, "shadow")
        usual: LinkName = "identity" if outcome == "real" else "logit"
        self.link_name = usual if link is None else link
        self.bins = None if bins is None else Bins(bins)
        self.penalty = penalty
        group_columns = groups if bins is None else [*as_names(groups), COLUMN]
        names = Roster(group_columns, features, together=penalty is not None)
        self._last = NO_GROUP
        self._sizing = SQUARED if self.link_name == "identity" else BOUNDED
        if outcome == "binary":
            self._bases = self._labels = (0.0, 1.0)
            self._unit = NOT_BINARY
        elif self.link_name == "exp":
            self._bases = (SMALLEST, LARGEST_FINITE)
        if support is not None:
            self._limit_labels(support)
        self.link = link_of(outcome, self.link_name, clip, self.support)
        plain = DEFAULT_ETA[outcome] / names.size
        self.eta, self.schedule = self._chosen_step(eta, schedule, names, plain)
        late = LateLabels(late_cap, in_flight, ttl, maturity, missing_is, queue)
        ranged = self.link_name == "identity" and penalty is None
        steps = self.schedule or Constant(plain)
        descent = Descent(self.link, Squared(), steps, penalty, not names.scalar, ranged)
        rule: Rule = Relative(descent) if self.link_name == "exp" else descent
        if self.schedule is None:
            from gradeq.rules.mixed import Mixed

            rule = Mixed(descent, names.size if names.groups else 0.0)
        self._build(rule, names, late, CAP[outcome])

    @locked
    def sweep(
        self,
        etas: Sequence[float],
        predictions: ColumnLike,
        labels: ColumnLike,
        groups: ColumnsByName | None = None,
        features: ColumnsByName | None = None,
        weights: ColumnLike | None = None,
    ) -> Frontier:
        """Bias and loss of many steps on the same rows, each from a fresh start, in one pass (in hindsight)."""
        from gradeq.layers.sweep import sweep

        return sweep(self, etas, InputColumns(predictions, labels, groups, features, weights=weights))

    @property
    @locked
    def cold(self) -> tuple[str, ...]:
        """The parameters of the last prediction that have no label yet: it was served without their correction."""
        sums, index = self.internals.state.sums, self.internals.names.index
        return tuple(name for name in self._last.names if not sums[index[name] * COLUMNS])

    @property
    def terms(self) -> Terms:
        clip = self.clip if self.link_name == "logit" else None
        exp = self.link_name == "exp"
        loss = "squared relative error" if exp else "squared error"
        return Terms(
            TASKS[self.link_name], self._structure, loss, loss_scale=2.0, size=self.internals.names.size,
            clip=clip, centre=1.0 if exp else 0.0,
        )  # fmt: skip

    def validate_prediction(self, f: object) -> float:
        if self.outcome == "binary":
            return scalars.probability(f, "prediction")
        if self.link_name == "exp":
            return scalars.positive(f, "prediction")
        return scalars.as_number(f, "prediction")

    @property
    def _auto_harm(self) -> str:
        if self.link_name != "logit":
            return "auto follows the best of its means, the raw prediction among them"
        return (
            f"auto follows the best of its means, the prediction clipped to [{self.clip:g}, 1 - {self.clip:g}] among "
            f"them; clipping itself can raise the mean log loss by {at_least(clip_cost(self.clip))}"
        )

    def validate_label(self, y: object) -> float:
        if self.outcome == "binary":
            return check_label(scalars.probability(y, "label"), self.support)
        return float(super().validate_label(y))

    def prediction_column(self, predictions: ColumnLike) -> Floats:
        base = columns.floats(predictions, "prediction")
        if self.outcome == "binary":
            columns.refuse((base < 0.0) | (base > 1.0), base, "prediction", NOT_BINARY)
        elif self.link_name == "exp":
            columns.refuse(base <= 0.0, base, "prediction", "is not positive; link exp needs positive predictions")
        return base

    def _check_step(self, schedule: Schedule, names: Roster) -> None:
        """Squared error needs eta c^2 < 2, else some sequence diverges (results 3.2, 5.2)."""
        step, size = schedule.step(1), names.size if not names.features else 1.0
        if self._sizing == SQUARED and step * size >= 2.0:
            many = f" with {size:g} group columns" if size > 1.0 else ""
            raise StepTooLarge(
                f"eta {step:g} is too large{many}: from {2.0 / size:g} on the squared error need "
                f"not be stable; use eta < {2.0 / size:g}"
            )


def link_of(outcome: str, name: str, clip: float, support: Support | None = None) -> Link:
    if outcome not in DEFAULT_ETA:
        raise BadInput(f"outcome={outcome!r}: must be real or binary")
    ends = limits_of(support)
    links: dict[str, dict[str, tuple[Link, Link]]] = {  # each without a support and with one
        "real": {"identity": (Identity(), ClippedIdentity(*ends)), "exp": (Multiplicative(), Multiplicative())},
        "binary": {"logit": (Logit(clip), ClippedLogit(clip, *ends)), "shift": (Shift(), ClippedShift(*ends))},
    }
    if name not in links[outcome]:
        raise BadInput(f"link={name!r} does not fit outcome={outcome!r}: use one of {', '.join(links[outcome])}")
    return links[outcome][name][support is not None]
