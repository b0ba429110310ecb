"""What the charts of a report show, as data: series, spans, bins, steps. Nothing here computes."""

from dataclasses import dataclass
from typing import Literal

Values = tuple[float | None, ...]
"""A plotted series; None where nothing is drawn."""

Axis = Literal["row", "date", "number"]
"""How x reads: row numbers from 1, seconds since 1970 (UTC), or any other number."""


@dataclass(frozen=True)
class Tracked:
    """A rolling error before and after with the line it should follow (0 for a bias)."""

    name: str
    target: float
    before: Values
    after: Values


@dataclass(frozen=True)
class Span:
    """A shaded stretch of the x axis and the words written in it; ``end`` None: to the end."""

    start: float
    end: float | None
    text: str


@dataclass(frozen=True)
class Rolling:
    """Trailing means over ``window`` labelled rows, at most 420 points, on one x axis.

    before, after   mean raw and served value (of an interval: the lower end);
    before_upper, after_upper   the upper end, empty otherwise;
    labels          mean label (of a 0/1 label: the label rate);
    tracked         rolling bias (target 0) or coverage; the first three are drawn;
    width_before, width_after   mean width of an interval, empty otherwise;
    begin           x of the first row, where the axis starts (the first window ends later).
    """

    axis: Axis
    axis_name: str
    window: int
    x: tuple[float, ...]
    before: Values
    after: Values
    labels: Values
    tracked: tuple[Tracked, ...]
    before_upper: Values = ()
    after_upper: Values = ()
    begin: float | None = None
    span: Span | None = None
    width_before: Values = ()
    width_after: Values = ()


@dataclass(frozen=True)
class Spark:
    """A group's own rolling error, small; x on the axis of :class:`Rolling`."""

    x: tuple[float, ...]
    before: Values
    after: Values


@dataclass(frozen=True)
class StepPoint:
    """One step of the sweep: loss and worst |error| had it been used on these same rows.

    ``step`` is eta (K for Elo); 0 stands for no layer.
    """

    step: float
    loss: float
    worst: float
    chosen: bool = False


@dataclass(frozen=True)
class Line:
    """A named curve."""

    name: str
    values: Values


@dataclass(frozen=True)
class Panel:
    """Theta over time for the parameters of one ``--by`` column ("" when there are no groups)."""

    by: str
    axis: Axis
    x: tuple[float, ...]
    lines: tuple[Line, ...]


@dataclass(frozen=True)
class Histogram:
    """Counts of served values between consecutive ``edges``.

    low, high      the range that is allowed, None where there is no limit;
    below, above   how many values lie outside; minimum, maximum   the extremes served.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]
    minimum: float
    maximum: float
    low: float | None = None
    high: float | None = None
    below: int = 0
    above: int = 0


@dataclass(frozen=True)
class Bin:
    """Rows (of Elo: games) whose predicted probability fell in one bin, with a 95 % interval."""

    predicted: float
    actual: float
    games: int
    low: float
    high: float


@dataclass(frozen=True)
class Reliability:
    """Predicted against actual frequency for the raw and the served probabilities, and their scores.

    ``brier`` and ``log``: mean squared error and mean log loss, before and after.
    """

    before: tuple[Bin, ...]
    after: tuple[Bin, ...]
    brier: tuple[float, float]
    log: tuple[float, float]


@dataclass(frozen=True)
class HeatRow:
    """One group's error in each period, before and after; None where a period has few labels."""

    by: str
    name: str
    rows: tuple[int, ...]
    before: Values
    after: Values


@dataclass(frozen=True)
class HeatMap:
    """Errors (biases, or coverage minus target) of groups by period, periods in words."""

    periods: tuple[str, ...]
    rows: tuple[HeatRow, ...]
