"""Drawn series as the script takes them: rounded numbers, ticks in words, roles for colours."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gradeq.report.markup import clean
from gradeq.report.numerals import plain
from gradeq.report.story import Axis, Line, Panel, Span, Values
from gradeq.report.thin import POINTS, thin
from gradeq.report.ticks import How, Scale, Tick, counts, dates, scale

ROLES = ("s1", "s2", "s3")


@dataclass
class Sheet:
    """The page's data block, filled as sections are built: x axes once each, then the charts."""

    x: dict[str, list[float]] = field(default_factory=dict)
    charts: list[dict[str, object]] = field(default_factory=list)

    def add(
        self,
        id_: str,
        title: str,
        axis: tuple[Axis, str, str],
        x: Sequence[float],
        lines: Iterable[tuple[str, str, Values]],
        y: Scale,
        how: How,
        marks: Sequence[float] = (),
        span: Span | None = None,
        height: int = 220,
        show_x: bool = True,
        sync: str = "",
        left: int = 52,
        begin: float | None = None,
        filled: bool = False,
    ) -> None:
        """Put one chart on the sheet; lines are (name, role, values), axis (kind, name, unit).

        ``filled``: the area below the lines is coloured. ``left``: the least pixels for the marks of y.
        """
        kind, name, unit = axis
        kept = thin(len(x), POINTS).tolist()
        xs = [_short(x[i], 13 if kind == "date" else 10) for i in kept]  # of times milliseconds
        key = next((key for key, known in self.x.items() if known == xs), f"x{len(self.x)}")
        self.x[key] = xs
        low, high = (xs[0], xs[-1]) if len(xs) > 1 else (xs[0] - 0.5, xs[0] + 0.5)
        # The axis begins where the data does, not at the first full window.
        low = low if begin is None else min(low, begin)
        shaded = None
        if span is not None:
            shaded = [span.start, high if span.end is None else span.end, clean(span.text, 80)]
        self.charts.append(
            {
                "id": id_,
                "title": title,
                "axis": kind,
                "xname": clean(name),
                "unit": unit,
                "x": key,
                "xmin": low,
                "xmax": high,
                "xticks": x_ticks(kind, low, high),
                "ymin": y.low,
                "ymax": y.high,
                "yticks": y.ticks,
                "lines": [
                    {
                        "name": clean(line, 40),
                        "role": role,
                        "v": [_maybe(values[i]) for i in kept],
                        **({"filled": True} if filled else {}),
                    }
                    for line, role, values in lines
                ],
                "how": how,
                "marks": list(marks),
                "span": shaded,
                "height": height,
                "showx": show_x,
                "sync": sync or id_,
                "left": left,
            }
        )


def x_ticks(kind: Axis, low: float, high: float) -> tuple[Tick, ...]:
    """Ticks of an x axis by its kind."""
    if kind == "date":
        return dates(low, high)
    if kind == "row":
        return tuple(tick for tick in counts(low, high) if tick[0] >= low)
    return scale((low, high), most=7, pad=0.0).ticks


def coloured(lines: Sequence[Line], most: int = 8) -> list[tuple[str, str, Values]]:
    """The first three lines in colours, the rest grey, at most eight in all; grey lies below."""
    named = [
        (line.name, ROLES[i] if i < len(ROLES) else "other", line.values)
        for i, line in enumerate(lines[:most])
    ]
    return named[::-1]


def panel_scale(panels: Sequence[Panel]) -> Scale:
    """One y axis for all panels of theta, so that they can be compared."""
    values = [v for panel in panels for line in panel.lines for v in line.values if v is not None]
    return scale(values, most=4, how="sign", include=(0.0,))


def _short(value: float, digits: int) -> float:
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded


def _maybe(value: float | None) -> float | None:
    if value is None or value != value or value in (float("inf"), float("-inf")):
        return None
    return _short(value, 5)


def step_name(step: float, letter: str, first: bool) -> str:
    """The words at a mark of the sweep: η = 0, no layer; K = 1 at the first; else the number."""
    if step == 0:
        return f"{letter} = 0, no layer"
    return f"{letter} = {plain(step)}" if first else plain(step)
