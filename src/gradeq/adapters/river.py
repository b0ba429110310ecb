"""river models that keep any river model honest: ``predict_one`` serves, ``learn_one`` brings the label."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from gradeq.adapters.serving import Served
from gradeq.errors import BadInput, missing_extra
from gradeq.layers.debiaser import Debiaser
from gradeq.layers.quantile import IntervalTracker

try:
    from river import base, conf
except ImportError as error:
    raise missing_extra("river", "the river adapters") from error

if TYPE_CHECKING:
    from gradeq.adapters.pairing import Mode
    from gradeq.layers.tracker import LateCap, Step
    from gradeq.penalties import Penalty
    from gradeq.schedules import Schedule

__all__ = ["DebiasedClassifier", "DebiasedRegressor", "TrackedInterval"]


class Forecaster(Served, base.Wrapper[Any], base.Regressor):
    """A river regressor below, a layer above."""

    regressor: Any

    def learn_one(self, x: Any, y: Any, id: str | int | None = None, **kwargs: Any) -> None:
        """Post the label of a served row to the layer, then let the model learn from it."""
        self._serving.answer(x, y, id, lambda: self._forecast(x, {}))
        self.regressor.learn_one(x, y, **kwargs)

    def _forecast(self, x: Any, kwargs: dict[str, Any]) -> Any:
        """The regressor's word; one that has nothing to say yet is taken to say 0."""
        prediction = self.regressor.predict_one(x, **kwargs)
        return 0.0 if prediction is None else prediction

    @property
    def _wrapped_model(self) -> Any:
        return self.regressor

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        from river import linear_model, preprocessing

        yield {"regressor": preprocessing.StandardScaler() | linear_model.LinearRegression()}


class DebiasedRegressor(Forecaster):
    """Any river regressor, debiased online: in equilibrium the mean prediction equals the mean label.

    >>> from river import datasets, evaluate, linear_model, metrics, preprocessing
    >>> model = DebiasedRegressor(
    ...     preprocessing.StandardScaler() | linear_model.LinearRegression(), eta=0.1
    ... )
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    MAE: 1.128525
    >>> round(model.equilibrium_.bias_before, 4), round(model.equilibrium_.bias_after, 4)
    (-0.3038, 0.0002)

    **Late labels.** ``predict_one(x)`` opens a ticket, ``learn_one(x, y)`` posts the label against the value that was
    served then, and lets the model learn. With an id both are exact: ``predict_one(x, id=7)``,
    ``learn_one(x, y, id=7)`` (a data set of ``(x, y, {"id": 7})`` passes it through river's own evaluation and
    pipelines). Without, the label goes to the row of the same content as x (same keys and values; not the same
    object, since river copies), the oldest first if there are several. ``pairing`` says what becomes of a label whose
    x was never served in this form: "auto" gives it to the oldest open row of the same groups, because a scaler
    before this model changes x between the two calls (the right row when labels come in the order of the rows, as
    with a constant delay; else another row of the group, whose sum of served minus label comes out the same);
    "content" serves the row now and learns at once, right for data that were never asked about; "order" looks at
    no content and always takes the oldest row. A pipeline inside the wrapper, as above, sees x unchanged: best.

    Rows that never get a label stay open and take memory; ``ttl`` drops those older than so many predictions.
    ``groups`` and ``features`` name keys of x (an absent group is "(missing)", an absent feature 0), ``weight`` the
    key of the row's weight in the layer; other keyword arguments of ``learn_one`` (``w``) go to the model. A model
    that says None is taken to say 0. Other settings and the guarantee: ``gradeq.Debiaser``.

    ``layer_`` is the ``Debiaser``: ``layer_.to_json()`` saves it, open rows included; assign
    ``gradeq.from_json(text)`` to take it up again.
    """

    def __init__(
        self,
        regressor: Any,
        eta: Step = None,
        groups: Sequence[Any] | None = None,
        features: Sequence[Any] | None = None,
        weight: Any = None,
        pairing: Mode = "auto",
        link: Literal["identity", "exp"] = "identity",
        schedule: Schedule | None = None,
        penalty: Penalty | None = None,
        late_cap: LateCap = "auto",
        ttl: float | None = None,
        shadow: bool = False,
    ) -> None:
        self._make(Debiaser, locals())

    def predict_one(self, x: Any, id: str | int | None = None, **kwargs: Any) -> float:
        """The adjusted prediction; its row waits for a label."""
        served: float = self._serving.ask(x, self._forecast(x, kwargs), id, "predict")
        return served


class DebiasedClassifier(Served, base.Wrapper[Any], base.Classifier):
    """Any binary river classifier, debiased online: in equilibrium the mean probability is the share of positives.

    >>> from river import datasets, evaluate, linear_model, metrics, preprocessing
    >>> model = DebiasedClassifier(
    ...     preprocessing.StandardScaler() | linear_model.LogisticRegression()
    ... )
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.LogLoss(), delay=10)
    LogLoss: 0.3339083928211059
    >>> round(model.equilibrium_.bias_before, 4), round(model.equilibrium_.bias_after, 4)
    (0.0291, -0.0028)

    ``labels``: the negative and the positive one. The model needs ``predict_proba_one``; while it knows nothing the
    probability is 1/2. ``predict_one`` right after ``predict_proba_one`` for the same row, or the other way round,
    is the same question and opens no second ticket. ``link``: "logit" stays in [0, 1], "shift" is the paper's. All
    else, late labels included, as for ``DebiasedRegressor``.
    """

    classifier: Any
    labels: tuple[Any, Any]

    def __init__(
        self,
        classifier: Any,
        eta: Step = None,
        groups: Sequence[Any] | None = None,
        features: Sequence[Any] | None = None,
        weight: Any = None,
        pairing: Mode = "auto",
        labels: tuple[Any, Any] = (False, True),
        link: Literal["logit", "shift"] = "logit",
        schedule: Schedule | None = None,
        penalty: Penalty | None = None,
        late_cap: LateCap = "auto",
        ttl: float | None = None,
        shadow: bool = False,
    ) -> None:
        self._make(Debiaser, locals(), outcome="binary")

    def predict_proba_one(
        self, x: Any, id: str | int | None = None, **kwargs: Any
    ) -> dict[Any, float]:
        """The adjusted probability of each label; the row waits for its label."""
        return self._probabilities(x, id, "probability", kwargs)

    def predict_one(self, x: Any, id: str | int | None = None, **kwargs: Any) -> Any:
        """The more probable label, the negative one at exactly one half; the row waits for its label."""
        probabilities = self._probabilities(x, id, "label", kwargs)
        return max(probabilities, key=lambda label: probabilities[label])

    def learn_one(self, x: Any, y: Any, id: str | int | None = None, **kwargs: Any) -> None:
        """Post the label of a served row to the layer, then let the model learn from it."""
        if y not in self.labels:
            raise BadInput(f"label {y!r} is neither of {self.labels}; name both with labels=")
        truth = float(y == self.labels[1])
        self._serving.answer(x, truth, id, lambda: self._forecast(x, {}))
        self.classifier.learn_one(x, y, **kwargs)

    def _probabilities(
        self, x: Any, id: str | int | None, verb: str, kwargs: dict[str, Any]
    ) -> dict[Any, float]:
        p = self._serving.ask(x, self._forecast(x, kwargs), id, verb)
        negative, positive = self.labels
        return {negative: 1.0 - p, positive: p}

    def _forecast(self, x: Any, kwargs: dict[str, Any]) -> float:
        known = self.classifier.predict_proba_one(x, **kwargs)
        p = float(known.get(self.labels[1], 0.0)) if known else 0.5
        # Probabilities that were normalised may pass 1 by a rounding.
        return 1.0 if 1.0 < p < 1.0 + 1e-9 else p

    @property
    def _wrapped_model(self) -> Any:
        return self.classifier

    @property
    def _multiclass(self) -> bool:
        return False

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        from river import linear_model, preprocessing

        yield {"classifier": preprocessing.StandardScaler() | linear_model.LogisticRegression()}


class TrackedInterval(Forecaster):
    """Any river regressor with intervals that hold the label with frequency ``coverage``, whatever the data.

    >>> from river import datasets, linear_model, preprocessing
    >>> model = TrackedInterval(
    ...     preprocessing.StandardScaler() | linear_model.LinearRegression(), 0.8
    ... )
    >>> covered = 0
    >>> for x, y in datasets.TrumpApproval():
    ...     interval = model.predict_one(x, with_interval=True)
    ...     covered += interval.lower < y <= interval.upper
    ...     model.learn_one(x, y)
    >>> round(covered / 1001, 3)
    0.799

    ``predict_one(x)`` is the model's own forecast, ``predict_one(x, with_interval=True)`` a ``river.conf.Interval``;
    either opens the row's ticket, and one right after the other is the same question. Late labels, ``groups``,
    ``features``, ``weight``, ``pairing`` and ``ttl`` as for ``DebiasedRegressor`` (here a label that goes to another
    row of its groups is judged by that row's interval); other settings and the guarantee: ``gradeq.IntervalTracker``.
    """

    def __init__(
        self,
        regressor: Any,
        coverage: float = 0.9,
        eta: Step = None,
        groups: Sequence[Any] | None = None,
        features: Sequence[Any] | None = None,
        weight: Any = None,
        pairing: Mode = "auto",
        link: Literal["sinh", "linear"] = "sinh",
        schedule: Schedule | None = None,
        penalty: Penalty | None = None,
        late_cap: LateCap = "auto",
        ttl: float | None = None,
        shadow: bool = False,
    ) -> None:
        self._make(IntervalTracker, locals())

    def predict_one(
        self, x: Any, with_interval: bool = False, id: str | int | None = None, **kwargs: Any
    ) -> Any:
        """The model's forecast, or the adjusted interval around it; the row waits for its label."""
        point = self._forecast(x, kwargs)
        ends = self._serving.ask(x, point, id, "interval" if with_interval else "point")
        return conf.Interval(*ends) if with_interval else point
