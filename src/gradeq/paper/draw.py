"""Sheets as pictures. Only this module uses matplotlib, and imports it when the first figure is drawn."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gradeq.errors import missing_extra
from gradeq.paper import plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure

Style = dict[str, Any]  # keyword arguments of matplotlib
STYLE = Path(__file__).with_name("figures.mplstyle")
FINE, COARSE = 200, 100  # dots per inch of the picture files, and of the pictures on the page
LONGEST = 40  # label in a legend
SHORT = 60.0  # logarithmic axes with a smaller ratio of their ends have plain numbers, not powers of ten


def require_matplotlib() -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise missing_extra("report", "drawing the figures") from None


def pictures(sheet: plot.Sheet) -> dict[str, bytes]:
    """The bytes of a png, an svg and a pdf file, and of a smaller png as "page"; always equal for equal sheets."""
    require_matplotlib()
    from matplotlib import rc_context

    forms = (
        ("png", "png", FINE, {"Software": None}),
        ("page", "png", COARSE, {"Software": None}),
        ("svg", "svg", FINE, {"Date": None}),
        ("pdf", "pdf", FINE, {"CreationDate": None, "Creator": None, "Producer": None}),
    )
    files = {}
    with rc_context(fname=STYLE):
        figure = figure_of(sheet)
        for name, form, dots, stamp in forms:
            out = io.BytesIO()
            figure.savefig(out, format=form, dpi=dots, facecolor="white", metadata=stamp)
            files[name] = out.getvalue()
    return files


def figure_of(sheet: plot.Sheet) -> Figure:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = Figure(figsize=sheet.size, layout=ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08))
    FigureCanvasAgg(figure)
    if sheet.title:
        figure.suptitle(_plain(sheet.title), x=0.01, ha="left", fontsize=11)
    grid = figure.add_gridspec(*sheet.grid)
    for number, panel in enumerate(sheet.panels):
        row, column, rows, columns = panel.cells or (*divmod(number, sheet.grid[1]), 1, 1)
        axes = figure.add_subplot(grid[row : row + rows, column : column + columns])
        draw(axes, panel)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure


def draw(axes: Axes, panel: plot.Panel) -> None:
    from matplotlib import dates

    untyped: Any = dates
    axes.set_title(_plain(panel.title))
    axes.set_xlabel(_plain(panel.x))
    axes.set_ylabel(_plain(panel.y))
    axes.set_xscale(panel.x_scale)
    axes.set_yscale(panel.y_scale)
    for mark in panel.marks:
        put(axes, mark)
    wide = panel.cells is not None and panel.cells[3] > 2
    dated = any(np.asarray(getattr(mark, "x", 0)).dtype.kind == "M" for mark in panel.marks)
    if dated:
        locator = untyped.AutoDateLocator(minticks=3, maxticks=12 if wide else 6)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(untyped.ConciseDateFormatter(locator))
    if panel.ticks is not None:
        axes.set_xticks(panel.ticks[0], [_plain(name) for name in panel.ticks[1]])
    if panel.square:
        axes.set_aspect("equal")
    if panel.x_limits is not None:
        axes.set_xlim(*panel.x_limits)
    if panel.y_limits is not None:
        axes.set_ylim(*panel.y_limits)
    if panel.ticks is None and not dated:
        _set_ticks(axes.xaxis, 9 if wide else 5)
    _set_ticks(axes.yaxis, 9)
    if panel.legend and axes.get_legend_handles_labels()[1]:
        outside: Style = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0)}
        inside: Style = {"loc": panel.legend, "handlelength": 2.6}
        axes.legend(**(outside if panel.legend == "outside" else inside))


def put(axes: Axes, mark: plot.Mark) -> None:
    if isinstance(mark, plot.Heat):
        _heat(axes, mark)
        return
    if isinstance(mark, plot.Stack):
        names, colours = ([_short(name) for name in mark.labels], [look.colour for look in mark.looks])
        axes.stackplot(mark.x, mark.table.T, labels=names, colors=colours, edgecolor="white", linewidth=0.3)
        return
    look, label = mark.look, _short(mark.label) or None
    stroke: Style = {"linewidth": look.width, "linestyle": look.dash, "color": look.colour}
    if isinstance(mark, plot.Line):
        every = (max(1, len(mark.x) // 16), max(1, len(mark.x) // 8))
        stroke |= {"marker": look.marker or None, "markevery": every if len(mark.x) > 16 else None}
        axes.plot(mark.x, mark.y, label=None if mark.quiet else label, markersize=4.0, **stroke)
    elif isinstance(mark, plot.Band):
        shade: Style = {"color": look.colour, "alpha": 0.35, "linewidth": 0.8}
        axes.fill_between(mark.x, mark.low, mark.high, label=label, **shade)
    elif isinstance(mark, plot.Dots):
        stroke |= {"linestyle": "none", "marker": look.marker or "o"}
        axes.plot(mark.x, mark.y, label=label, markersize=5.0, **stroke)
        for x, y, name in zip(mark.x, mark.y, mark.names, strict=False):
            offset: Style = {"textcoords": "offset points", "xytext": (-6, 3)}
            axes.annotate(_short(name), (x, y), ha="right", fontsize=8, **offset)
    elif isinstance(mark, plot.Bars):
        hatch = {"-": None, "--": "////", ":": "....", "-.": "xxxx"}[look.dash]
        fill: Style = {"color": look.colour, "hatch": hatch, "edgecolor": "white", "linewidth": 0.0}
        axes.bar(mark.x, mark.y, mark.width, label=label, **fill)
    elif isinstance(mark, plot.Arrows):
        style: Style = {"color": look.colour, "angles": "xy", "scale_units": "xy", "scale": 1.0, "width": 0.0045}
        axes.quiver(mark.x, mark.y, mark.dx, mark.dy, **style)
    elif isinstance(mark, plot.Level):
        axes.axhline(mark.y, label=label, **stroke)


def _set_ticks(axis: Axis, most: int) -> None:
    """Commas in thousands, and no powers of ten on a short logarithmic axis."""
    from matplotlib import ticker

    numerals = ticker.StrMethodFormatter("{x:,g}")
    if isinstance(axis.get_major_formatter(), ticker.FixedFormatter):
        return
    low, high = sorted(axis.get_view_interval())
    if axis.get_scale() == "log":
        if high / low < SHORT:
            steps = (1, 1.5, 2, 3, 5, 7) if high / low < SHORT**0.5 else (1, 2, 5)
            axis.set_major_locator(ticker.LogLocator(subs=steps))
            axis.set_major_formatter(numerals)
            axis.set_minor_formatter(ticker.NullFormatter())
    elif max(-low, high) >= 1000.0:
        axis.set_major_formatter(numerals)
        axis.set_major_locator(ticker.MaxNLocator(most, steps=(1, 2, 2.5, 5, 10)))


def _short(label: str) -> str:
    return _plain(label if len(label) <= LONGEST else f"{label[: LONGEST - 1]}…")


def _plain(text: str) -> str:
    """Text in which a dollar sign does not begin a formula."""
    return text.replace("$", r"\$")


def _heat(axes: Axes, mark: plot.Heat) -> None:
    table = np.asarray(mark.table, dtype=float)
    low, colours = (-mark.top, "RdBu") if np.nanmin(table) < 0.0 else (0.0, "Blues")
    axes.imshow(table, cmap=colours, vmin=low, vmax=mark.top, aspect="auto")
    axes.grid(False)
    columns, rows = [_short(c) for c in mark.columns], [_short(r) for r in mark.rows]
    slant: Style = {"rotation": 20, "ha": "right"} if max(map(len, mark.columns)) > 8 else {}
    axes.set_xticks(range(len(columns)), columns, **slant)
    axes.set_yticks(range(len(rows)), rows)
    size = 9.0 if len(columns) <= 10 else 7.0
    for (i, j), value in np.ndenumerate(table):
        if value == value:
            ink = "white" if abs(value) > 0.6 * mark.top else "#191c20"
            text = f"{round(value, mark.digits) + 0.0:.{mark.digits}f}".replace("-", "−")
            axes.text(j, i, text, ha="center", va="center", color=ink, fontsize=size)
