"""Protocols of layers, runs and tables: the members that certificates and reports read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gradeq.certificates.reading import Terms
    from gradeq.engine.columns import RowColumns
    from gradeq.engine.lateness import Lateness
    from gradeq.engine.tickets import TicketBook
    from gradeq.equilibrium import Equilibrium
    from gradeq.leaderboard.ranks import Board
    from gradeq.ledger.state import State
    from gradeq.penalties import Penalty


class LayerParts(Protocol):
    """The parts of a layer: ``layer.internals``."""

    kind: str
    names: Any
    state: State
    lateness: Lateness
    tickets: TicketBook
    supports_auto: bool

    @property
    def rule(self) -> Any: ...


class LayerLike(Protocol):
    """Any layer."""

    @property
    def kind(self) -> str: ...
    @property
    def shadow(self) -> bool: ...
    @property
    def internals(self) -> LayerParts: ...
    @property
    def settings(self) -> dict[str, Any]: ...
    @property
    def traffic(self) -> dict[str, float]: ...
    @property
    def step(self) -> float: ...
    @property
    def steps(self) -> dict[str, float]: ...
    @property
    def log(self) -> list[tuple[str, int]]: ...
    @property
    def terms(self) -> Terms: ...
    def equilibrium(self) -> Equilibrium: ...


class EloLayer(LayerLike, Protocol):
    """A layer that rates players."""

    @property
    def eta(self) -> float | str | None: ...
    @property
    def penalty(self) -> Penalty | None: ...
    @property
    def proximal(self) -> float | None: ...
    def board(self) -> Board: ...


class SeriesTable(Protocol):
    """The table of a keyed layer: one row of figures for each series."""

    @property
    def keys(self) -> Sequence[object]: ...
    @property
    def rows(self) -> NDArray[np.int64]: ...
    @property
    def error(self) -> NDArray[np.float64]: ...
    @property
    def error_before(self) -> NDArray[np.float64]: ...
    @property
    def loss(self) -> NDArray[np.float64]: ...
    @property
    def loss_before(self) -> NDArray[np.float64]: ...
    @property
    def loss_after(self) -> NDArray[np.float64]: ...
    @property
    def farthest(self) -> NDArray[np.int64]: ...
    @property
    def levels(self) -> Sequence[float]: ...
    @property
    def target(self) -> float | None: ...
    @property
    def relative(self) -> bool: ...
    def columns(self) -> dict[str, NDArray[np.float64] | NDArray[np.int64] | list[str]]: ...


class KeyedLayer(LayerLike, Protocol):
    """A layer that learns separately for each key."""

    @property
    def layer(self) -> LayerLike: ...
    @property
    def pool(self) -> bool: ...
    def table(self) -> SeriesTable: ...
    def equilibrium(self, key: Any = None) -> Equilibrium: ...


class RunTrace(Protocol):
    """The parameters along a run."""

    @property
    def rows(self) -> NDArray[np.int64]: ...
    @property
    def theta(self) -> NDArray[np.float64]: ...
    @property
    def names(self) -> Sequence[str]: ...


class LayerRun(Protocol):
    """The result of ``layer.run``."""

    @property
    def values(self) -> NDArray[np.float64]: ...
    @property
    def columns(self) -> RowColumns | None: ...
    @property
    def trace(self) -> RunTrace: ...
