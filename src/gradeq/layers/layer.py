"""The verbs that every layer shares: labels, corrections, expiry, freezing, a new step, saving."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Self

from gradeq import codec
from gradeq.engine.desk import Desk
from gradeq.engine.quick import Lane, enter, fits
from gradeq.errors import BadInput, OtherSettings, StateError

if TYPE_CHECKING:
    from gradeq.equilibrium import Equilibrium
    from gradeq.layers.window import Window


class Layer(ABC):
    """A layer has a desk with its head; subclasses say how rows are built, checked and certified."""

    kind: str
    shadow: bool
    _desk: Desk
    _lane: Lane | None = None

    @property
    def desk(self) -> Desk:
        """Tickets and state; events in the quick lane are brought home first."""
        if self._lane is not None:
            lane, self._lane = self._lane, None
            del self.__dict__["predict"], self.__dict__["update"]
            lane.settle()
        return self._desk

    @desk.setter
    def desk(self, desk: Desk) -> None:
        self._desk = desk

    def enter_lane(
        self,
        f_range: tuple[float, float],
        y_range: tuple[float, float],
        check: Callable[[Any], float],
        predict: Callable[[Any], Any],
        slow_predict: Callable[..., Any],
    ) -> Lane | None:
        """Serve further events from the quick lane, if this layer's state fits it."""
        if not fits(self.desk):
            return None
        others = (
            lambda f: predict(check(f)),
            lambda y: Layer.update(self, self.label(y)),
        )
        slow = (slow_predict, self._update)
        self._lane = lane = enter(self._desk, f_range, y_range, (check, self.label), others, slow)
        self.__dict__["predict"], self.__dict__["update"] = lane.predict, lane.update
        return lane

    def __getstate__(self) -> dict[str, Any]:
        self.desk  # noqa: B018  copies and pickles see the state at home
        return self.__dict__

    @property
    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """The arguments that make this layer anew."""

    @abstractmethod
    def equilibrium(self) -> Equilibrium:
        """Exact averages, the certificate, the proven bound, and whether it is vacuous."""

    @abstractmethod
    def label(self, y: Any) -> float:
        """The label, checked."""

    def update(self, y: Any, id: str | int | None = None) -> str:
        """Learn from a label: of the ticket with this id, or of the oldest open one.

        Returns ``applied``, or ``duplicate`` when the same label of the same id was posted before; another value
        for the same id raises ``LabelConflict``.
        """
        if id is None and self._lane is not None:
            return self._lane.update(y)  # type: ignore[no-any-return]
        return self._update(y, id)

    def _update(self, y: Any, id: str | int | None = None) -> str:
        return self.desk.post(self.label(y), id)

    def correct(self, id: str | int, y: Any) -> str:
        """Replace the posted label of this id: the difference of the two gradients is posted."""
        return self.desk.correct(self.label(y), id)

    def expire(self, now: float) -> int:
        """Drop tickets older than ``ttl``; later labels for them are refused. Returns how many were dropped."""
        return len(self.desk.expire(now))

    def reset_in_flight(self) -> None:
        """Count the most tickets ever open anew from now (logged); the late-label cap relaxes."""
        self.desk.reset_in_flight()

    def freeze(self) -> None:
        """Stop learning: labels close their tickets but move nothing, until ``resume``."""
        self.desk.frozen = True
        self.desk.log.append(("freeze", self.desk.served))

    def resume(self) -> None:
        """Learn again."""
        self.desk.frozen = False
        self.desk.log.append(("resume", self.desk.served))

    @property
    def in_flight(self) -> dict[str, float]:
        """Open tickets now, the most ever open at once, and how late labels came (in predictions served since)."""
        desk = self.desk
        return {
            "open": desk.open_count,
            "peak": max(desk.peaks, default=1),
            "served": desk.served,
            "labelled": desk.posted,
            "mean_delay": desk.delay_sum / desk.posted if desk.posted else 0.0,
            "longest_delay": desk.delay_most,
        }

    def since(self, earlier: Self) -> Window:
        """The averages over the labels posted since an earlier state of this layer, exactly, from the two states."""
        from gradeq.layers.window import window

        return window(earlier, self)

    def to_json(self) -> str:
        """The whole layer as one line of JSON: settings, state, open tickets, checksum."""
        return codec.dump(self.kind, self.settings, self.state())

    def state(self) -> dict[str, Any]:
        """All that has changed since the layer was made."""
        return self.desk.state()

    def restore(self, state: dict[str, Any]) -> None:
        """Take up a saved state."""
        self.desk.restore(state)

    def copy(self) -> Self:
        """An independent copy, state included."""
        return deepcopy(self)


def revive(make: Callable[[], Layer], state: dict[str, Any]) -> Layer:
    """A layer made afresh, with a saved state."""
    try:
        layer = make()
        layer.restore(state)
    except StateError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise StateError(f"the state is damaged: {reason[:160]}") from None
    return layer


def check_same_settings(layer: Layer, other: Layer) -> None:
    """Refuse to go on from a state that was made with other settings."""
    mine, theirs = codec.plain(layer.settings), codec.plain(other.settings)
    if layer.kind != other.kind:
        raise OtherSettings(
            f"the state is of a {other.kind} layer, this is {layer.kind}; use another file"
        )
    for name in mine:
        if mine[name] != theirs.get(name):
            raise OtherSettings(
                f"the state was made with {name}={theirs.get(name)!r}, this run has {mine[name]!r}; "
                "use the same settings, or another state file"
            )


def late_limit(late_cap: Any, default: float) -> float | None:
    """c of the late-label cap: "auto" is the task's default, None no cap, a number itself."""
    if late_cap == "auto":
        return default
    if late_cap is None:
        return None
    if (
        isinstance(late_cap, (int, float))
        and not isinstance(late_cap, bool)
        and 0.0 < late_cap <= 1.0
    ):
        return float(late_cap)
    raise BadInput(f"late_cap={late_cap!r}: give 'auto', None, or a number in (0, 1]")
