"""The plotted series as CSV, and numbers as a person reads them."""

from __future__ import annotations

import csv
import io
import math
from typing import Any

import numpy as np

from gradeq.experiments.sheet import Sheet

RAISED = str.maketrans("0123456789-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁻")


def csv_of(sheet: Sheet) -> str:
    """One row per plotted point: panel, series, x, y; floats with all their digits."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("panel", "series", "x", "y"))
    for panel, series in sheet.series():
        xs, ys = np.asarray(series.x), np.asarray(series.y)
        for x, y in zip(
            xs.tolist() if xs.dtype.kind != "M" else xs.astype(str), ys.tolist(), strict=True
        ):
            writer.writerow((panel, series.name, _cell(x), _cell(y)))
    return out.getvalue()


def numeral(value: float | None) -> str:
    """Up to six significant digits, thousands with commas, a real minus sign, nothing for a number that there is not.

    >>> numeral(-0.112877555), numeral(6787.0), numeral(None), numeral(3.5e-5)
    ('\u22120.112878', '6,787', '', '3.5 × 10⁻⁵')
    """
    if value is None:
        return ""
    if not math.isfinite(value):
        return "∞" if value > 0 else "−∞" if value < 0 else "not a number"
    if value != 0.0 and not 1e-4 <= float(f"{abs(value):.6g}") < 1e6:
        digits, power = f"{value:.3e}".split("e")
        raised = str(int(power)).translate(RAISED)
        return f"{digits.rstrip('0').rstrip('.')} × 10{raised}".replace("-", "−")
    return f"{value:,.6g}".replace("-", "−")


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "" if math.isnan(value) else repr(value)
    return str(value)
