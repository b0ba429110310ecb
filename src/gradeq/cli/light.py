"""Keep pandas and scipy out of short runs, and memory at hand in long ones."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any


class _Absent:
    """Answers for a package that it is not there, while ``asked`` is true; all else is left to others."""

    def __init__(self, package: str, asked: Callable[[], bool]) -> None:
        self.package, self.asked = package, asked

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name == self.package and self.asked():
            raise ModuleNotFoundError(f"{name} is not needed here", name=name)


def arrow_without_pandas() -> None:
    """Have arrow look for pandas once, and not find it.

    Arrow imports pandas, where it is installed, at the first conversion to numpy, only to see
    whether the values are pandas' own. No command hands it such values, and the import takes
    longer than adjusting a small file.
    """
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    absent = _Absent("pandas", lambda: True)
    sys.meta_path.insert(0, absent)
    try:
        pa.array([0.0]).to_numpy()
    finally:
        sys.meta_path.remove(absent)


def keep_freed_memory() -> None:
    """Have the C library keep as much freed memory as one piece of a file needs, for the next one.

    Of glibc: it keeps twice the largest block that was given back whole; what it does not keep the system
    has to clear again, page by page. A block that nobody touches costs nothing.
    """
    import numpy as np

    np.empty(2 << 20)  # 16 MB


def numpy_without_threads() -> None:
    """Have numpy start no threads for products of matrices, of which a pass over a file has none.

    They wait for work by looking for it, which takes as much CPU as reading a million rows.
    """
    if "numpy" not in sys.modules:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def numba_without_scipy() -> None:
    """Have numba not find scipy's matrix products when it looks for them; no loop of ours has any.

    It looks when the first loop is compiled or read from the cache, and importing them takes half
    as long as importing numba.
    """
    sys.meta_path.insert(0, _Absent("scipy.linalg", _numba_is_looking))


def _numba_is_looking() -> bool:
    spec = getattr(sys.modules.get("numba.np.arraymath"), "__spec__", None)
    return bool(getattr(spec, "_initializing", False))
