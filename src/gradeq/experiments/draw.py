"""Sheets as pictures: the one place that knows matplotlib, imported when the first figure is drawn."""

from __future__ import annotations

import io
from typing import Any

from gradeq.errors import missing_extra
from gradeq.experiments.sheet import (
    Arrows,
    Band,
    Bars,
    Dots,
    Heat,
    Level,
    Line,
    Look,
    Mark,
    Panel,
    Sheet,
    Stack,
)

STYLE: Any = {
    "font.size": 9.0,
    "axes.titlesize": 9.5,
    "axes.titlelocation": "left",
    "axes.labelsize": 9.0,
    "axes.edgecolor": "#cfcfc8",
    "axes.labelcolor": "#454b54",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.formatter.useoffset": False,
    "grid.color": "#e4e4df",
    "grid.linewidth": 0.7,
    "xtick.color": "#646b76",
    "ytick.color": "#646b76",
    "text.color": "#191c20",
    "legend.frameon": True,
    "legend.framealpha": 0.85,
    "legend.edgecolor": "none",
    "legend.fontsize": 8.0,
    "svg.hashsalt": "gradeq",
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "figure.dpi": 100.0,
}
FINE, COARSE = 200, 100  # dots per inch of the picture beside the page, and of the one on it
LONGEST = 40  # of a label in a legend
SHORT = 60.0  # times its beginning: a logarithmic axis that ends before has plain numbers, not powers of ten


def require_matplotlib() -> None:
    """Refuse in one line where figures cannot be drawn."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise missing_extra("report", "drawing the figures") from None


def pictures(sheet: Sheet) -> dict[str, bytes]:
    """The sheet as the bytes of a png, an svg and a pdf file, and of a smaller png for a page, under "page".

    The same sheet always gives the same bytes.
    """
    require_matplotlib()
    from matplotlib import rc_context

    forms = (
        ("png", "png", FINE, {"Software": None}),
        ("page", "png", COARSE, {"Software": None}),
        ("svg", "svg", FINE, {"Date": None}),
        ("pdf", "pdf", FINE, {"CreationDate": None, "Creator": None, "Producer": None}),
    )
    made = {}
    with rc_context(STYLE):
        figure = figure_of(sheet)
        for name, form, dots, stamp in forms:
            out = io.BytesIO()
            figure.savefig(out, format=form, dpi=dots, facecolor="white", metadata=stamp)
            made[name] = out.getvalue()
    return made


def figure_of(sheet: Sheet) -> Any:
    """The sheet as a figure of matplotlib, everything in its place."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=sheet.size, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.08, h_pad=0.08)
    FigureCanvasAgg(figure)
    if sheet.title:
        figure.suptitle(_plain(sheet.title), x=0.01, ha="left", fontsize=11)
    grid = figure.add_gridspec(*sheet.grid)
    for place, panel in enumerate(sheet.panels):
        row, column, rows, columns = panel.cells or (*divmod(place, sheet.grid[1]), 1, 1)
        axes = figure.add_subplot(grid[row : row + rows, column : column + columns])
        draw(axes, panel)
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    return figure


def draw(axes: Any, panel: Panel) -> None:
    """One panel with its marks, scales, limits and legend."""
    axes.set_title(_plain(panel.title))
    axes.set_xlabel(_plain(panel.x))
    axes.set_ylabel(_plain(panel.y))
    axes.set_xscale(panel.x_scale)
    axes.set_yscale(panel.y_scale)
    for mark in panel.marks:
        put(axes, mark)
    if any(_dated(mark) for mark in panel.marks):
        _few_dates(axes, 12 if panel.cells is not None and panel.cells[3] > 2 else 6)
    if panel.ticks is not None:
        axes.set_xticks(panel.ticks[0], [_plain(name) for name in panel.ticks[1]])
    if panel.square:
        axes.set_aspect("equal")
    if panel.x_limits is not None:
        axes.set_xlim(*panel.x_limits)
    if panel.y_limits is not None:
        axes.set_ylim(*panel.y_limits)
    if panel.ticks is None and not any(_dated(mark) for mark in panel.marks):
        _numbered(axes.xaxis, 5 if panel.cells is None or panel.cells[3] < 3 else 9)
    _numbered(axes.yaxis, 9)
    if panel.legend and axes.get_legend_handles_labels()[1]:
        if panel.legend == "outside":
            axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
        else:
            axes.legend(loc=panel.legend, handlelength=2.6)


def put(axes: Any, mark: Mark) -> None:
    """One mark onto axes."""
    if isinstance(mark, Line):
        every = (max(1, len(mark.x) // 16), max(1, len(mark.x) // 8))
        axes.plot(
            mark.x,
            mark.y,
            label=None if mark.quiet else _short(mark.label),
            markevery=every if len(mark.x) > 16 else None,
            markersize=4.0,
            **_stroke(mark.look),
        )
    elif isinstance(mark, Band):
        axes.fill_between(
            mark.x,
            mark.low,
            mark.high,
            label=_short(mark.label),
            color=mark.look.colour,
            alpha=0.35,
            linewidth=0.8,
        )
    elif isinstance(mark, Dots):
        style = {**_stroke(mark.look), "linestyle": "none", "marker": mark.look.marker or "o"}
        axes.plot(mark.x, mark.y, label=_short(mark.label), markersize=5.0, **style)
        for x, y, name in zip(mark.x, mark.y, mark.names, strict=False):
            axes.annotate(
                _short(name),
                (x, y),
                textcoords="offset points",
                xytext=(-6, 3),
                ha="right",
                fontsize=8,
            )
    elif isinstance(mark, Bars):
        hatch = {"-": None, "--": "////", ":": "....", "-.": "xxxx"}[mark.look.dash]
        axes.bar(
            mark.x,
            mark.y,
            mark.width,
            label=_short(mark.label),
            color=mark.look.colour,
            hatch=hatch,
            edgecolor="white",
            linewidth=0.0,
        )
    elif isinstance(mark, Stack):
        axes.stackplot(
            mark.x,
            mark.table.T,
            labels=[_short(name) for name in mark.labels],
            colors=[look.colour for look in mark.looks],
            edgecolor="white",
            linewidth=0.3,
        )
    elif isinstance(mark, Arrows):
        axes.quiver(
            mark.x,
            mark.y,
            mark.dx,
            mark.dy,
            color=mark.look.colour,
            angles="xy",
            scale_units="xy",
            scale=1.0,
            width=0.0045,
        )
    elif isinstance(mark, Heat):
        _heat(axes, mark)
    elif isinstance(mark, Level):
        look = mark.look
        axes.axhline(
            mark.y, color=look.colour, linestyle=look.dash, lw=look.width, label=_short(mark.label)
        )


def _dated(mark: Mark) -> bool:
    kind = getattr(getattr(getattr(mark, "x", None), "dtype", None), "kind", "")
    return bool(kind == "M")


def _few_dates(axes: Any, most: int) -> None:
    from matplotlib import dates

    untyped: Any = dates
    locator = untyped.AutoDateLocator(minticks=3, maxticks=most)
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(untyped.ConciseDateFormatter(locator))


def _numbered(axis: Any, most: int) -> None:
    """Ticks as one writes numbers: thousands with commas, and on a short logarithmic axis no powers of ten."""
    from matplotlib import ticker

    untyped: Any = ticker
    if isinstance(axis.get_major_formatter(), untyped.FixedFormatter):
        return
    low, high = sorted(axis.get_view_interval())
    if axis.get_scale() == "log":
        if high / low < SHORT:
            steps = (1, 1.5, 2, 3, 5, 7) if high / low < SHORT**0.5 else (1, 2, 5)
            axis.set_major_locator(untyped.LogLocator(subs=steps))
            axis.set_major_formatter(untyped.FuncFormatter(_written))
            axis.set_minor_formatter(untyped.NullFormatter())
    elif max(-low, high) >= 1000.0:
        axis.set_major_formatter(untyped.FuncFormatter(_written))
        axis.set_major_locator(untyped.MaxNLocator(most, steps=(1, 2, 2.5, 5, 10)))


def _written(value: float, place: int) -> str:
    """One tick."""
    return f"{value:,g}".replace("-", "−")


def _short(label: str) -> str | None:
    """A label that leaves room for the picture; the table has it whole."""
    return _plain(label if len(label) <= LONGEST else f"{label[: LONGEST - 1]}…") or None


def _plain(text: str) -> str:
    """Text as it is: a dollar sign does not begin a formula."""
    return text.replace("$", r"\$")


def _stroke(look: Look) -> dict[str, Any]:
    return {
        "color": look.colour,
        "linestyle": look.dash,
        "linewidth": look.width,
        "marker": look.marker or None,
    }


def _heat(axes: Any, mark: Heat) -> None:
    import numpy as np

    table = np.asarray(mark.table, dtype=float)
    low, colours = (-mark.top, "RdBu") if np.nanmin(table) < 0.0 else (0.0, "Blues")
    axes.imshow(table, cmap=colours, vmin=low, vmax=mark.top, aspect="auto")
    axes.grid(False)
    columns, rows = [_short(c) for c in mark.columns], [_short(r) for r in mark.rows]
    slant = {"rotation": 20, "ha": "right"} if max(map(len, mark.columns)) > 8 else {}
    axes.set_xticks(range(len(columns)), columns, **slant)
    axes.set_yticks(range(len(rows)), rows)
    size = 9.0 if len(columns) <= 10 else 7.0
    for (i, j), value in np.ndenumerate(table):
        if value == value:
            ink = "white" if abs(value) > 0.6 * mark.top else "#191c20"
            text = f"{round(value, mark.digits) + 0.0:.{mark.digits}f}".replace("-", "−")
            axes.text(j, i, text, ha="center", va="center", color=ink, fontsize=size)
