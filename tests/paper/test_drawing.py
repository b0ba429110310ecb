"""What is drawn can be seen: nothing off the axes, nothing below zero on a logarithmic one, ticks that read well."""

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gradeq.paper import experiments, plot
from gradeq.paper.draw import pictures


def drawn(panel: plot.Panel) -> Iterator[Any]:
    """The heights of everything that is drawn over x, breaks left out."""
    for mark in panel.marks:
        if isinstance(mark, plot.Line | plot.Dots | plot.Band):
            for series in mark.series():
                heights = np.asarray(series.y, dtype=float)
                yield heights[~np.isnan(heights)]


@pytest.mark.parametrize("name", experiments())
def test_every_drawn_point_lies_on_the_axes(found, name) -> None:
    for sheet in found(name).sheets.values():
        for panel in sheet.panels:
            low, high = panel.y_limits or (None, None)
            for heights in drawn(panel):
                assert low is None or heights.min() >= low, panel.title
                assert high is None or heights.max() <= high, panel.title
                assert panel.y_scale != "log" or heights.min() > 0.0, panel.title


def ticks_of(x: tuple[float, float], scale: str = "linear") -> list[str]:
    """The tick labels of an axis from one number to another."""
    panel = plot.Panel("", "", "", [plot.Line(np.array(x), np.array([0.0, 1.0]))], x_scale=scale)
    svg = pictures(plot.Sheet([replace(panel, y_limits=(0.0, 1.0))], (1, 1), (4, 2)))["svg"].decode()
    return re.findall(r"<text[^>]*>([^<]*)</text>", svg.partition('id="matplotlib.axis_2"')[0])


def test_thousands_have_commas() -> None:
    assert "50,000" in ticks_of((0.0, 100_000.0))
    assert "1,000" in ticks_of((0.0, 2_000.0))
    assert not any(re.fullmatch(r"\d{4,}", tick) for tick in ticks_of((0.0, 2_000.0)))


def test_a_short_logarithmic_axis_has_plain_numbers() -> None:
    ticks = [tick for tick in ticks_of((0.3, 12.0), "log") if tick]
    assert {"0.5", "1", "2", "5", "10"} <= set(ticks)
    assert all(math.isfinite(float(tick)) for tick in ticks)
