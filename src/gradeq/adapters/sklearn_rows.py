"""Group and feature columns of whatever scikit-learn calls X, under the names that the layer knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gradeq import frames
from gradeq.errors import BadInput


class Rows(NamedTuple):
    """The group columns and the feature columns of X, by the layer's names; None where there are none."""

    groups: dict[str, Any] | None
    features: dict[str, Any] | None


def named(keys: Sequence[str | int] | None, known: Any) -> list[str]:
    """The layer's names of these columns: their own, or x0, x1, ... as scikit-learn counts them."""
    if isinstance(keys, str):
        raise BadInput(f"{keys!r} is one name; give a list of columns, [{keys!r}]")
    listed = [] if known is None else [str(name) for name in known]
    names = []
    for key in keys or ():
        if isinstance(key, str):
            names.append(key)
        elif listed:
            names.append(listed[key])
        else:
            names.append(f"x{int(key)}")
    return names


def rows_of(
    X: Any, groups: Sequence[str | int] | None, features: Sequence[str | int] | None, known: Any
) -> Rows:
    """The columns of X that the layer looks at."""
    found = [
        {name: column(X, key) for name, key in zip(named(keys, known), keys or (), strict=True)}
        for keys in (groups, features)
    ]
    return Rows(found[0] or None, found[1] or None)


def column(X: Any, key: str | int) -> Any:
    """One column of a dataframe by name or place, of an array or list of rows by place."""
    if hasattr(X, "columns"):
        names = list(X.columns)
        if isinstance(key, str) and key not in names:
            raise BadInput(f"X has no column {key!r}; it has {', '.join(map(str, names))}")
        return X[key if isinstance(key, str) else names[key]]
    if isinstance(key, str):
        raise BadInput(f"X has no column names; give the place of {key!r} as a number, or a frame")
    if hasattr(X, "tocsc"):
        return X.tocsc()[:, [key]].toarray().ravel()
    return np.asarray(X)[:, key]


def cells(rows: Rows, n: int) -> list[tuple[dict[str, Any] | None, dict[str, Any] | None]]:
    """Groups and features row by row, named as in a pass over whole columns."""
    groups = {
        name: [found.names[code] for code in found.codes]
        for name, values in (rows.groups or {}).items()
        for found in [frames.codes(values, name)]
    }
    features = {
        name: frames.floats(values, f"feature {name}").tolist()
        for name, values in (rows.features or {}).items()
    }
    return [
        (
            {name: values[i] for name, values in groups.items()} or None,
            {name: values[i] for name, values in features.items()} or None,
        )
        for i in range(n)
    ]
