"""Types of the columns and numbers that users pass to a layer and get back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, SupportsFloat, TypeVar

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


class ColumnLike(Protocol):
    """A list, a tuple, an array, a Series, an Arrow array, or a data frame."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[object]: ...


class ColumnsByName(Protocol):
    """Several columns by name: a mapping or a data frame."""

    def __getitem__(self, name: str, /) -> object: ...


Column = TypeVar("Column", bound=ColumnLike)  # served values come back in the type of the predictions
OrArray = TypeVar("OrArray", bound=ColumnLike)  # FloatArray where they may be an array; else Never

Forecast = SupportsFloat | Iterable[SupportsFloat]  # one number, or one for each level
