"""What the layers on top of a prediction share: what they take, the arguments that made them, and one pass."""

from __future__ import annotations

from abc import abstractmethod
from functools import cache
from inspect import signature
from typing import TYPE_CHECKING, Any, Self

from gradeq import codec
from gradeq.engine import checks
from gradeq.engine.early_labels import EarlyLabels
from gradeq.engine.names import ALONE
from gradeq.engine.sound import check_kind
from gradeq.errors import BadInput
from gradeq.layers import columns
from gradeq.layers.layer import ANY, Layer
from gradeq.layers.making import revive
from gradeq.layers.maturity import age_of_maturity, check_maturity
from gradeq.layers.run import Run, run_layer
from gradeq.layers.support import Support, check_label, check_labels, checked_support, limits_of
from gradeq.ledger.values import Ticket

if TYPE_CHECKING:
    from gradeq.ledger.batch import Floats


WATCHED = ("debias", "quantile", "quantiles", "interval")  # kinds whose labels are numbers
OPTIONAL = ("maturity", "missing_is")  # settings that states without them do not name


class Predicting(Layer):
    """A layer on top of a prediction; predictions and labels are numbers, unless it says otherwise.

    ``_bases``: floats from the first to the second are good predictions; all others are for ``_prediction`` to judge.
    ``support``: the limits of labels and of what is shown, if it has any.
    """

    _bases = ANY
    _labels = ANY
    support: Support | None = None

    @abstractmethod
    def open(self, *args: Any, **kwargs: Any) -> Ticket:
        """Serve a row and leave its ticket with the caller."""

    @property
    def queue(self) -> bool:
        """Whether predictions without ids queue for their labels; else each replaces the one before it."""
        return self._book.queue

    def _prediction(self, f: Any) -> Any:
        return checks.number(f, "prediction")

    def _label(self, y: Any) -> Any:
        return check_label(checks.number(y, "label"), self.support)

    def _base_column(self, predictions: Any) -> Floats:
        return columns.numbers(predictions, "prediction")

    def _label_column(self, labels: Any, n: int) -> Floats:
        y = columns.labels(labels, n)
        check_labels(y, self.support)
        return y

    def _keep_to(self, support: Any) -> None:
        """Take limits, checked: from now on labels outside are refused."""
        self.support = checked_support(support)
        if self.support is not None:
            (low, high), own = self._labels, limits_of(self.support)
            self._labels = (max(low, own[0]), min(high, own[1]))
            self._as_served = False

    def shown(self, ticket: Ticket) -> Any:
        """What to show of a ticket that you keep: inside the support, and the raw prediction in shadow mode."""
        check_kind(ticket, Ticket)
        return self._shown(ticket.base, ticket.served)

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments that make this layer anew."""
        held = self._held
        return {
            name: held[name] if name in held else getattr(self, name)
            for name in arguments(type(self))
            if name not in OPTIONAL or held.get(name) is not None
        }

    @property
    def _held(self) -> dict[str, Any]:
        """The arguments that are not kept under their own names."""
        book = self._book
        return {
            "in_flight": self._flight.in_flight,
            "ttl": book.ttl,
            "maturity": book.maturity,
            "missing_is": book.missing_is,
            "queue": book.queue,
        }

    def _mature_after(self, maturity: float | str | None, missing_is: Any) -> None:
        """Learn from a label only when its row is that old; ``missing_is`` then stands for one that has not come."""
        book = self._book
        book.maturity = age_of_maturity(maturity)
        if missing_is is not None:
            book.missing_is = self._label(missing_is)
        check_maturity(book)
        if maturity is None and self.kind in WATCHED:
            book.early = EarlyLabels(self.kind == "debias")

    @classmethod
    def _revived(cls, text: str | bytes, **function: Any) -> Self:
        """A saved layer, with the function that it was saved without."""
        kind, settings, state = codec.load(text)
        if kind != cls.kind:
            raise BadInput(f"the state is of a {kind} layer, not {cls.kind}; use gradeq.from_json")
        layer = revive(lambda own: cls(**{**own, **function}), kind, settings, state)
        assert isinstance(layer, cls)
        return layer


class Single(Predicting):
    """A layer of one parameter: no groups, no features."""

    def open(self, f: Any, weight: float = 1.0) -> Ticket:
        """Serve a prediction and leave its ticket with the caller; ``ticket.served`` is what was served."""
        return self._ticket(*ALONE, self._prediction(f), checks.weight(weight))

    def peek(self, f: Any) -> Any:
        """What ``predict`` would serve now; nothing is counted or kept."""
        return self._peek(*ALONE, self._prediction(f))

    def run(
        self,
        predictions: Any,
        labels: Any = None,
        times: Any = None,
        label_times: Any = None,
        weights: Any = None,
        ids: Any = None,
    ) -> Run:
        """Serve and learn from whole columns, bit-for-bit identical to one event at a time.

        With ``ids`` a row without a label keeps its ticket, and ``update(y, id)`` brings its label later.
        """
        given = (None, None, times, label_times, weights)
        return run_layer(self, predictions, labels, *given, ids=ids)

    def predict_many(
        self, predictions: Any, weights: Any = None, ids: Any = None, times: Any = None
    ) -> Any:
        """What is served for whole columns, as ``predict`` gives it one by one; every ticket stays open.

        A frame with a column ``prediction`` (and ``id``, ``weight``, ``time``) comes back with what was served.
        """
        from gradeq.layers.many import serve_many

        own = {"weights": weights, "ids": ids, "times": times}
        return serve_many(self, predictions, groups=None, features=None, **own)


@cache
def arguments(cls: type[Layer]) -> tuple[str, ...]:
    """The names of what a layer is made from."""
    return tuple(signature(cls).parameters)
