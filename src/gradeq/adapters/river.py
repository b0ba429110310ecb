"""river models with a layer on top of any river model: `predict_one` serves, `learn_one` posts the label."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from hashlib import blake2b
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from gradeq.engine import scalars
from gradeq.errors import BadInput, missing_extra
from gradeq.layers.debiaser import Debiaser
from gradeq.layers.quantile import IntervalTracker
from gradeq.layers.serialization import check_same_settings

try:
    from river import base, conf
    from river.base.typing import ClfTarget
except ImportError as error:
    raise missing_extra("river", "the river adapters") from error

if TYPE_CHECKING:
    from gradeq.equilibrium import Equilibrium
    from gradeq.layers.options import LateCap
    from gradeq.layers.quantile import Step
    from gradeq.penalties import Penalty
    from gradeq.schedules import Schedule

__all__ = ["DebiasedClassifier", "DebiasedRegressor", "TrackedInterval"]

LayerOnForecasts = Debiaser | IntervalTracker
LayerArguments = tuple[float, dict[str, object] | None, dict[str, float] | None, float]
REMEMBERED = 10_000  # expired rows whose labels are still recognised, as the layer does
PairBy = Literal["auto", "content", "order"]
Id = str | int
Keys = Sequence[Hashable]  # of rows
Example = Mapping[Hashable, Any]  # the features of a row, as river passes them
ALL = ""  # the key under which every row waits


def content(x: object) -> str:
    """A short fingerprint of a row's content.

    >>> content({"a": 1, "b": "u"}) == content({"b": "u", "a": 1.0})
    True
    >>> content({"a": 1}) == content({"a": "1"})
    False
    """
    cells = x.items() if isinstance(x, dict) else [("", x)]
    text = repr(sorted((spelled(key), spelled(value)) for key, value in cells))
    return blake2b(text.encode(), digest_size=10).hexdigest()


def spelled(value: object) -> str:
    """One value as text: equal numbers alike, arrays in full."""
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        number = float(value)
        return str(int(number)) if number.is_integer() else repr(number)
    return repr(value.tolist() if hasattr(value, "tolist") else value)


class OpenIds:
    """Ids of rows that wait for a label, by content and by family (rows of the same groups).

    The ids made here are "row", content, family and number; ids that a user chose are ignored. ``ids``: those that a
    layer remembers, and whether each is open or expired.
    """

    def __init__(self, ids: Mapping[Id, str] | None = None) -> None:
        self.waiting: dict[str, OrderedDict[Id, None]] = {}
        self.expired: OrderedDict[str, bool] = OrderedDict()
        for id, status in (ids or {}).items():
            if status == "open":
                self.add(id)
            elif status == "expired":
                self._remember_expired(id)

    def add(self, id: Id) -> None:
        for key in keys_of(id):
            self.waiting.setdefault(key, OrderedDict())[id] = None

    def oldest(self, key: str) -> Id | None:
        return next(iter(self.waiting.get(key, ())), None)

    def close(self, id: Id) -> None:
        for key in keys_of(id):
            ids = self.waiting[key]
            del ids[id]
            if not ids:
                del self.waiting[key]

    def expire(self, before: float) -> None:
        """Close the rows numbered below this; their labels, if they come, are recognised and ignored."""
        while (id := self.oldest(ALL)) is not None and int(str(id).split(" ")[3]) < before:
            self.close(id)
            self._remember_expired(id)

    def _remember_expired(self, id: Id) -> None:
        for row in keys_of(id)[:1]:
            self.expired[row] = True
            if len(self.expired) > REMEMBERED:
                self.expired.popitem(last=False)


def keys_of(id: Id) -> tuple[str, ...]:
    """Content, family and ALL of an id made here; empty for an id that a user chose."""
    parts = id.split(" ") if isinstance(id, str) else []
    return (parts[1], parts[2], ALL) if len(parts) == 4 and parts[0] == "row" else ()


class OpenRows:
    """A layer, its rows that wait for a label, and the rule that finds the row of a label."""

    def __init__(self, model: RiverModel, make_layer: Callable[..., LayerOnForecasts]) -> None:
        for names in (model.groups, model.features):
            if isinstance(names, str):
                raise BadInput(f"{names!r} is one name; give a list of keys, [{names!r}]")
        if model.pairing not in get_args(PairBy):
            raise BadInput(f"pairing={model.pairing!r}: must be one of {', '.join(get_args(PairBy))}")
        self.groups, self.features = list(model.groups or ()), list(model.features or ())
        self.weight, self.pairing = model.weight, model.pairing
        self.use(make_layer(groups=list(map(str, self.groups)), features=list(map(str, self.features))))

    def use(self, layer: LayerOnForecasts) -> None:
        """Continue with this layer and its open rows."""
        self.layer = layer
        self.last: tuple[Id, str, float | tuple[float, float]] | None = None
        self.ttl, self.served = layer.settings["ttl"], layer.traffic["served"]
        self.open = OpenIds(layer.ids)

    def serve(self, x: Example, f: float, id: Id | None, verb: str) -> float | tuple[float, float]:
        """Serve a row; another verb right after it, for the same row, returns the same value."""
        row = self._content(x)
        key = row if id is None else id
        if self.last is not None and self.last[0] == key and self.last[1] != verb:
            served, self.last = self.last[2], None
            return served
        ticket = f"row {row} {self._family(x)} {self.served}" if id is None else id
        now = None if self.ttl is None else float(self.served)
        served = self.layer.predict(*self._arguments(x, f), ticket, now)
        self.open.add(ticket)
        if self.ttl is not None:
            self.open.expire(self.served - self.ttl)
        self.served += 1
        self.last = (key, verb, served)
        return served

    def learn(self, x: Example, y: object, id: Id | None, forecast: Callable[[], float]) -> None:
        """Learn from the label of a row; a row that was never served is served first."""
        self.last = None
        y = scalars.as_number(y, "label")
        if id is not None:
            self.layer.update(y, id=id)
            return
        row = self._content(x)
        ticket = self.open.oldest(row)
        if ticket is None and self.pairing != "order" and self.open.expired.pop(row, False):
            return
        if ticket is None and self.pairing == "auto":
            ticket = self.open.oldest(self._family(x))
        if ticket is None:
            label = self.layer.validate_label(y)  # refused before the row is served
            self.layer.post(self.layer.open(*self._arguments(x, forecast())), label)
            self.served += 1
            return
        self.layer.update(y, id=ticket)
        self.layer.forget(ticket)  # the ids made here never come twice
        self.open.close(ticket)

    def _arguments(self, x: Example, f: float) -> LayerArguments:
        groups = {str(name): x.get(name) for name in self.groups} or None
        features = {str(name): x.get(name, 0.0) for name in self.features} or None
        return f, groups, features, 1.0 if self.weight is None else x[self.weight]

    def _content(self, x: Example) -> str:
        return "all" if self.pairing == "order" else content(x)

    def _family(self, x: Example) -> str:
        return "family" + content({name: x.get(name) for name in self.groups})


@dataclass(eq=False, repr=False)  # river compares and prints models in its own way
class RiverModel(base.Wrapper[base.Estimator]):
    """A model whose predictions go through a layer; the fields are the constructor's arguments after the model."""

    _model_name: ClassVar[str] = "regressor"
    _make_layer: ClassVar[Callable[..., LayerOnForecasts]]

    eta: Step = None
    groups: Keys | None = None
    features: Keys | None = None
    weight: Hashable | None = None
    pairing: PairBy = "auto"
    link: str = ""
    schedule: Schedule | None = None
    penalty: Penalty | None = None
    late_cap: LateCap = "auto"
    ttl: float | None = None
    shadow: bool = False

    def __post_init__(self) -> None:
        settings = {f.name: getattr(self, f.name) for f in fields(self)}
        for name in (self._model_name, "groups", "features", "weight", "pairing", "labels"):
            settings.pop(name, None)
        self._rows = OpenRows(self, partial(type(self)._make_layer, **settings))

    @property
    def layer_(self) -> LayerOnForecasts:
        """The layer: state, certificate, saving."""
        return self._rows.layer

    @layer_.setter
    def layer_(self, layer: LayerOnForecasts) -> None:
        check_same_settings(self._rows.layer, layer)
        self._rows.use(layer)

    @property
    def equilibrium_(self) -> Equilibrium:
        """The certificate: exact averages, bias and loss before and after, the proven bound."""
        return self.layer_.equilibrium()

    @property
    def _wrapped_model(self) -> base.Estimator:
        model: base.Estimator = getattr(self, self._model_name)
        return model

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, base.Estimator]]:
        from river import linear_model, preprocessing

        kind = linear_model.LogisticRegression if cls._model_name == "classifier" else linear_model.LinearRegression
        yield {cls._model_name: preprocessing.StandardScaler() | kind()}


# Data classes put the fields of their last base first: the model becomes the constructor's first argument.
@dataclass(eq=False, repr=False)
class _Regressor:
    regressor: Any  # any model with predict_one, which need not be a base.Regressor: a pipeline


@dataclass(eq=False, repr=False)
class _RegressorAndCoverage(_Regressor):
    coverage: float = 0.9


@dataclass(eq=False, repr=False)
class _Classifier:
    classifier: Any


class RiverForecaster(RiverModel, base.Regressor):
    """A river regressor with a layer on top."""

    regressor: Any

    def learn_one(self, x: Example, y: object, id: Id | None = None, **kwargs: object) -> None:
        """Post the label of a served row to the layer, then let the model learn from it."""
        self._rows.learn(x, y, id, lambda: self._forecast(x, {}))
        self.regressor.learn_one(x, y, **kwargs)

    def _forecast(self, x: Example, options: dict[str, object]) -> float:
        """The regressor's forecast; 0 while it has none."""
        prediction: float | None = self.regressor.predict_one(x, **options)
        return 0.0 if prediction is None else prediction


@dataclass(eq=False, repr=False)
class RiverDebiasedRegressor(RiverForecaster, _Regressor):
    """Any river regressor, debiased online: in equilibrium the mean prediction equals the mean label.

    >>> from river import datasets, evaluate, linear_model, metrics, preprocessing
    >>> model = DebiasedRegressor(preprocessing.StandardScaler() | linear_model.LinearRegression(), eta=0.1)
    >>> evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    MAE: 1.128525
    >>> round(model.equilibrium_.bias_before, 4), round(model.equilibrium_.bias_after, 4)
    (-0.3038, 0.0002)

    **Late labels.** ``predict_one(x)`` opens a ticket; ``learn_one(x, y)`` posts the label against the value served
    then, and lets the model learn. With an id the match is exact: ``predict_one(x, id=7)``, ``learn_one(x, y, id=7)``
    (a data set of ``(x, y, {"id": 7})`` passes the id through river's evaluation and pipelines). Without an id the
    label goes to the oldest open row with the same content as x (same keys and values; river copies the object).
    ``pairing`` decides where a label goes if no open row has the content of x, for example because a scaler before
    this model changed x between the two calls. "auto": to the oldest open row of the same groups. This is the right
    row if labels come in the order of the rows, as with a constant delay; otherwise it is another row of the group,
    and the sum of served minus label is the same. "content": the row is served now and learned from at once, for data
    that were never predicted. "order": content is ignored, and the oldest row is taken. It is best to put the
    pipeline inside the wrapper, as above: then x stays unchanged.

    Rows that never get a label stay open and take memory; ``ttl`` drops those older than that many predictions.
    ``groups`` and ``features`` name keys of x (an absent group is "(missing)", an absent feature 0), ``weight`` the
    key of the row's weight in the layer; other keyword arguments of ``learn_one`` (``w``) go to the model. A
    prediction of None counts as 0. Other settings and the guarantee: ``gradeq.Debiaser``.

    ``layer_`` is the ``Debiaser``: ``layer_.to_json()`` saves it with its open rows; assign
    ``gradeq.from_json(text)`` to continue from there.
    """

    _make_layer = Debiaser
    link: Literal["identity", "exp"] = "identity"

    def predict_one(self, x: Example, id: Id | None = None, **kwargs: object) -> float:
        """The adjusted prediction; its row waits for a label."""
        served = self._rows.serve(x, self._forecast(x, kwargs), id, "predict")
        assert not isinstance(served, tuple)
        return served


@dataclass(eq=False, repr=False)
class RiverDebiasedClassifier(RiverModel, base.Classifier, _Classifier):
    """Any binary river classifier, debiased online: in equilibrium the mean probability is the share of positives.

    >>> from river import datasets, evaluate, linear_model, metrics, preprocessing
    >>> model = DebiasedClassifier(preprocessing.StandardScaler() | linear_model.LogisticRegression())
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.LogLoss(), delay=10)
    LogLoss: 0.3339083928211059
    >>> round(model.equilibrium_.bias_before, 4), round(model.equilibrium_.bias_after, 4)
    (0.0291, -0.0028)

    ``labels``: the negative and the positive label. The model needs ``predict_proba_one``; while it has no estimate,
    the probability is 1/2. ``predict_one`` right after ``predict_proba_one`` for the same row, or the other way
    round, uses the same ticket. ``link``: "logit" stays in [0, 1], "shift" is the paper's. Everything else, including
    late labels, works as for ``DebiasedRegressor``.
    """

    _model_name = "classifier"
    _make_layer = partial(Debiaser, outcome="binary")
    labels: tuple[ClfTarget, ClfTarget] = field(default=(False, True), kw_only=True)
    link: Literal["logit", "shift"] = "logit"

    def predict_proba_one(self, x: Example, id: Id | None = None, **kwargs: object) -> dict[ClfTarget, float]:
        """The adjusted probability of each label; the row waits for its label."""
        return self._probabilities(x, id, "probability", kwargs)

    def predict_one(self, x: Example, id: Id | None = None, **kwargs: object) -> ClfTarget:
        """The more probable label, the negative one at exactly one half; the row waits for its label."""
        probabilities = self._probabilities(x, id, "label", kwargs)
        return max(probabilities, key=lambda label: probabilities[label])

    def learn_one(self, x: Example, y: ClfTarget, id: Id | None = None, **kwargs: object) -> None:
        """Post the label of a served row to the layer, then let the model learn from it."""
        if y not in self.labels:
            raise BadInput(f"label {y!r} is neither of {self.labels}; name both with labels=")
        truth = float(y == self.labels[1])
        self._rows.learn(x, truth, id, lambda: self._forecast(x, {}))
        self.classifier.learn_one(x, y, **kwargs)

    def _probabilities(
        self, x: Example, id: Id | None, verb: str, options: dict[str, object]
    ) -> dict[ClfTarget, float]:
        p = self._rows.serve(x, self._forecast(x, options), id, verb)
        assert not isinstance(p, tuple)
        negative, positive = self.labels
        return {negative: 1.0 - p, positive: p}

    def _forecast(self, x: Example, options: dict[str, object]) -> float:
        known = self.classifier.predict_proba_one(x, **options)
        p = float(known.get(self.labels[1], 0.0)) if known else 0.5
        # Probabilities that were normalised may pass 1 by a rounding.
        return 1.0 if 1.0 < p < 1.0 + 1e-9 else p

    @property
    def _multiclass(self) -> bool:
        return False


@dataclass(eq=False, repr=False)
class RiverTrackedInterval(RiverForecaster, _RegressorAndCoverage):
    """Any river regressor with intervals that contain the label with frequency ``coverage``, whatever the data.

    >>> from river import datasets, linear_model, preprocessing
    >>> model = TrackedInterval(preprocessing.StandardScaler() | linear_model.LinearRegression(), 0.8)
    >>> covered = 0
    >>> for x, y in datasets.TrumpApproval():
    ...     interval = model.predict_one(x, with_interval=True)
    ...     covered += interval.lower < y <= interval.upper
    ...     model.learn_one(x, y)
    >>> round(covered / 1001, 3)
    0.799

    ``predict_one(x)`` is the model's own forecast, ``predict_one(x, with_interval=True)`` a ``river.conf.Interval``;
    either opens the row's ticket, and one right after the other uses the same ticket. Late labels, ``groups``,
    ``features``, ``weight``, ``pairing`` and ``ttl`` work as for ``DebiasedRegressor`` (here a label that goes to
    another row of its groups is judged by that row's interval). Other settings and the guarantee:
    ``gradeq.IntervalTracker``.
    """

    _make_layer = IntervalTracker
    link: Literal["sinh", "linear"] = "sinh"

    def predict_one(  # type: ignore[override]
        self, x: Example, with_interval: bool = False, id: Id | None = None, **kwargs: object
    ) -> float | conf.Interval:
        """The model's forecast, or the adjusted interval around it; the row waits for its label."""
        point = self._forecast(x, kwargs)
        ends = self._rows.serve(x, point, id, "interval" if with_interval else "point")
        assert isinstance(ends, tuple)
        return conf.Interval(*ends) if with_interval else point


# The public names, which river also gives to the steps of a pipeline.
DebiasedClassifier = RiverDebiasedClassifier
DebiasedRegressor = RiverDebiasedRegressor
TrackedInterval = RiverTrackedInterval
for name in __all__:
    globals()[name].__name__ = globals()[name].__qualname__ = name
