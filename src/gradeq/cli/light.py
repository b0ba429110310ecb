"""Keep pandas and scipy out of short runs."""

from __future__ import annotations

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


def numba_without_scipy() -> None:
    """Have numba not find scipy's matrix products when it looks for them; no loop of ours has any.

    It looks when the first loop is compiled or read from the cache, and importing them takes half
    as long as importing numba.
    """
    sys.meta_path.insert(0, _Absent("scipy.linalg", _numba_is_looking))


def _numba_is_looking() -> bool:
    spec = getattr(sys.modules.get("numba.np.arraymath"), "__spec__", None)
    return bool(getattr(spec, "_initializing", False))
