"""Run a loop: compiled on arrays where that is quicker (``choice``), else interpreted, with the same result."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gradeq.kernels import choice
from gradeq.kernels.compile import fields


def run_loop(
    loop: Callable[..., Any], parts: tuple[object, ...], arrays: tuple[Any, ...], rows: int
) -> Any:
    """Call ``loop(*parts, *arrays)``; arrays that the loop writes are written in place either way.

    Arrays may come together in records, named tuples, among the parts.

    Interpreted, columns become lists, since Python reads those quickest; an array much longer than the
    batch (the state of a million keys) is read and written where it lies. A part that the compiler refuses (a
    user's own loss that looks something up) is interpreted from then on.
    """
    fast = choice.kernel(loop, parts, rows)
    if fast is not None:
        try:
            return fast(*(fields(part) for part in parts), *arrays)
        except Exception as error:
            if not is_refusal(error):
                raise
            choice.refuse(loop, parts)
    start, short = choice.clock(), 4 * rows + 1024
    values = (*parts, *arrays)
    plain = [_readable(a, short) for a in values]
    result = loop(*plain)
    _write_back(values, plain)
    choice.note(loop, tuple(map(_kind, parts)), choice.clock() - start)
    return result


def unsigned(*indices: NDArray[np.int64]) -> tuple[NDArray[np.uint64], ...]:
    """Indices as unsigned: compiled, a signed one could count from the end, and looking for that costs a third."""
    return tuple(index.view(np.uint64) for index in indices)


def is_refusal(error: Exception) -> bool:
    """Whether the compiler refused the text, which is before any of it ran."""
    return type(error).__module__.split(".")[0] == "numba"


def _kind(part: Any) -> Any:
    """What is remembered of a part: not the arrays of a record."""
    return part._make(part._fields) if isinstance(part, tuple) else part  # type: ignore[attr-defined]


def _write_back(arrays: Any, plain: Any) -> None:
    for array, values in zip(arrays, plain, strict=True):
        if isinstance(array, tuple):
            _write_back(array, values)
        elif isinstance(values, list) and array.flags.writeable:
            array[...] = values


def _readable(array: Any, short: int) -> Any:
    if isinstance(array, tuple):  # a record of arrays
        return array._make(_readable(each, short) for each in array)  # type: ignore[attr-defined]
    if not isinstance(array, np.ndarray):
        return array
    return array.tolist() if array.size <= short or array.ndim > 1 else array.data
