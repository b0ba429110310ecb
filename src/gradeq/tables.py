"""Results as a data frame of the library that is at hand."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

LIBRARIES = ("pandas", "polars", "pyarrow")


def frame_of(columns: Mapping[str, Sequence[Any]]) -> Any:
    """A data frame of these columns, of pandas, polars or pyarrow: one that is imported before one that is not."""
    import narwhals as nw

    loaded = [name for name in LIBRARIES if name in sys.modules]
    there = [name for name in LIBRARIES if find_spec(name) is not None]
    backend: Any = [*[name for name in loaded if name != "pyarrow"], *there][0]
    return nw.from_dict(dict(columns), backend=backend).to_native()
