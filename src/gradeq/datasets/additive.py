"""A small base model: a mean plus one effect per category, shrunk towards zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


def fit_additive(
    categories: Sequence[npt.NDArray[Any]],
    target: npt.NDArray[np.float64],
    training: npt.NDArray[np.bool_],
    shrinkage: float = 50.0,
) -> npt.NDArray[np.float64]:
    """Predictions for all rows of the ridge regression on indicators, fitted on some of them.

    ``shrinkage`` is the ridge penalty: an effect seen in that many rows is halved. A value not
    seen in training has no effect. Rounded to a thousandth, so that machines agree on every bit.
    """
    codes = []
    width = 0
    for column in categories:
        values, code = np.unique(column, return_inverse=True)
        codes.append(code + width)
        width += len(values)
    rows = np.stack([code[training] for code in codes], axis=1)
    mean = float(np.mean(target[training]))
    gram = np.zeros((width, width))
    for left in rows.T:
        for right in rows.T:
            pairs = np.bincount(left * width + right, minlength=width * width)
            gram += pairs.reshape(width, width)
    residual = target[training] - mean
    moment = sum(np.bincount(column, residual, minlength=width) for column in rows.T)
    effects = np.linalg.solve(gram + shrinkage * np.eye(width), moment)
    prediction: npt.NDArray[np.float64] = np.round(mean + sum(effects[c] for c in codes), 3)
    return prediction
