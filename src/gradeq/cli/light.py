"""Keep pandas out of short runs."""

from __future__ import annotations

import sys
from typing import Any


class _Absent:
    """Answers for pandas that it is not installed; all else is left to others."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not needed here", name=name)


def arrow_without_pandas() -> None:
    """Have arrow look for pandas once, and not find it.

    Arrow imports pandas, where it is installed, at the first conversion to numpy, only to see
    whether the values are pandas' own. No command hands it such values, and the import takes
    longer than adjusting a small file.
    """
    if "pandas" in sys.modules:
        return
    import pyarrow as pa

    absent = _Absent()
    sys.meta_path.insert(0, absent)
    try:
        pa.array([0.0]).to_numpy()
    finally:
        sys.meta_path.remove(absent)
