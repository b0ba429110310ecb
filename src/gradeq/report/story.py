"""A report as data: a run fills in these values, a page formats them.

The dashboard answers with these fields as JSON, so their names are part of the HTTP interface.
"""

from __future__ import annotations

import dataclasses
import json
import math
import platform
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from gradeq._version import __version__

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Values = tuple[float | None, ...]
"""A plotted series; None where nothing is drawn."""

Axis = Literal["row", "date", "number"]
"""How x reads: row numbers from 1, seconds since 1970 (UTC), or any other number."""


@dataclass(frozen=True)
class RollingError:
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

    ``before`` and ``after``: the raw and the served value (of an interval its lower end, and the upper end in
    ``before_upper`` and ``after_upper``). ``tracked``: rolling biases (target 0) or coverages; three are drawn.
    ``begin``: x of the first row, where the axis starts (the first window ends later).
    """

    axis: Axis
    axis_name: str
    window: int
    x: tuple[float, ...]
    before: Values
    after: Values
    labels: Values
    tracked: tuple[RollingError, ...]
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
    """Loss and worst |error| if this step had been used on the same rows: eta (K for Elo), 0 for no layer."""

    step: float
    loss: float
    worst: float
    chosen: bool = False


@dataclass(frozen=True)
class NamedCurve:
    """A line and its name."""

    name: str
    values: Values


@dataclass(frozen=True)
class ThetaPanel:
    """Theta over time for the parameters of one ``--by`` column ("" when there are no groups)."""

    by: str
    axis: Axis
    x: tuple[float, ...]
    lines: tuple[NamedCurve, ...]


@dataclass(frozen=True)
class Histogram:
    """Counts of served values between consecutive ``edges``.

    ``low`` and ``high``: the allowed range; ``below`` and ``above``: how many values lie outside.
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
    """Predicted against actual frequency, with the mean squared error and log loss, before and after."""

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


@dataclass(frozen=True)
class BeforeAfter:
    """One quantity for the raw prediction (``before``) and for what was served (``after``)."""

    before: float
    after: float


@dataclass(frozen=True)
class CoverageFigures:
    """Share of labels covered; ``name`` is the level as typed ("0.9") or "interval".

    ``held``: the share that the clipped values cover, if there are limits; coverage is judged before them.
    """

    name: str
    target: float
    before: float
    after: float
    held: BeforeAfter | None = None


@dataclass(frozen=True)
class LossFigures:
    """Mean loss over the labelled rows; ``name`` in small letters, e.g. "squared error".

    ``negligible``: a rise that rounding explains. ``rounding``: all errors are within the rounding of the labels.
    """

    name: str
    before: float
    after: float
    negligible: float = 0.0
    rounding: bool = False


@dataclass(frozen=True)
class Worst:
    """The groups with the largest error before and after, and these errors (of quantiles: coverage - target)."""

    group_before: str
    before: float
    group_after: str
    after: float


@dataclass(frozen=True)
class Certificate:
    """Average gradient (largest coordinate, absolute) and its worst case over data in the range seen.

    ``bound``: None where no theorem fits; ``vacuous``: it is not below the raw error; ``loose``: above the |bias|
    before. ``gap``: the largest difference between the average from rows and the one from the state; ``rounding``:
    the part of it that rounding can explain. ``exact``: the step was constant, so the bias follows from the state;
    otherwise the bias is the stored sum of errors. ``over``: which labels it covers, if not those of the figures
    beside it. ``coverage_bound``: the bound on coverage less target, if it differs and is informative.
    """

    value: float
    bound: float | None
    gap: float
    exact: bool = True
    vacuous: bool = False
    loose: bool = False
    rounding: float = 0.0
    over: str = ""
    coverage_bound: float | None = None


@dataclass(frozen=True)
class Verdict:
    """The numbers of the headline: bias or coverage, always with the loss and the certificate.

    ``nothing``: no label was learned from. ``shadow``: raw values were served, and ``after`` is what would have been.
    """

    loss: LossFigures
    certificate: Certificate
    bias: BeforeAfter | None = None
    coverage: tuple[CoverageFigures, ...] = ()
    worst: Worst | None = None
    nothing: bool = False
    shadow: bool = False


@dataclass(frozen=True)
class Notice:
    """A warning: a claim with a number, the evidence, and what to do (may be empty); backticks set code.

    ``red``: learning stopped or the result cannot be trusted; ``amber``: the result holds with a reservation.
    """

    level: Literal["red", "amber", "note"]
    claim: str
    evidence: str
    remedy: str = ""


@dataclass(frozen=True)
class Group:
    """One group's row. ``before`` and ``after`` are biases, or coverages when ``target`` is given.

    ``by`` is the column, ``name`` the value without it ("Caucasian"). ``vacuous`` as for :class:`Certificate`.
    """

    by: str
    name: str
    rows: int
    label_mean: float
    before: float
    after: float
    loss: BeforeAfter
    bound: float | None
    vacuous: bool = False
    target: float | None = None
    spark: Spark | None = None
    weight: float | None = None  # of its rows together, where rows have weights


@dataclass(frozen=True)
class LevelRow:
    """One quantile level's coverage, pinball loss and bound on |coverage - level|."""

    name: str
    target: float
    coverage: BeforeAfter
    loss: BeforeAfter
    bound: float | None
    vacuous: bool = False


@dataclass(frozen=True)
class WideSeries:
    """A series with a wide interval, or (``width`` None) with a large loss; ``after``: its bias or coverage."""

    name: str
    rows: int
    after: float
    loss: BeforeAfter
    width: float | None = None


@dataclass(frozen=True)
class ManySeries:
    """The series of ``--key``: how many, how far they are off, the worst and the widest.

    ``mean`` size of error and ``far`` (a tenth is farther off) are of the ``judged`` series, which have at least
    ``fewest`` labels each. ``histogram``: their signed errors, in points for coverage. ``relative``: errors are
    divided by the prediction (link exp).
    """

    total: int
    judged: int
    mean: float
    far: float
    histogram: Histogram | None
    worst: tuple[Group, ...]
    widest: tuple[WideSeries, ...]
    pooled: bool = False
    relative: bool = False
    fewest: int = 1


@dataclass(frozen=True)
class Fact:
    """A term and its text in the Data section; backticks set code."""

    term: str
    text: str


@dataclass(frozen=True)
class Worked:
    """The arithmetic behind one average: (0 - u) / (eta n) = average, worked through for ``name``.

    ``eta`` None: the step varied, and the average is ``total`` / n, with the stored sum of errors. ``penalty``: the
    average slope of a penalty, which moves u too; the average is then over all ``n`` rows, and ``own`` of them are
    rows of ``name``. ``tail`` says what the average is.
    """

    name: str
    n: float
    u: float
    average: float
    eta: float | None
    total: float = 0.0
    penalty: float = 0.0
    own: float | None = None
    tail: str = ""


@dataclass(frozen=True)
class Method:
    """How values were served (``link``: identity, shift, logit, exp, sinh, linear, elo) and the worked identity.

    ``exact``: one constant step; ``auto``: the correction is added to a mix; ``interval``: the levels whose two
    worked lines give the coverage; ``extra``: one more sentence.
    """

    link: str
    worked: tuple[Worked, ...] = ()
    exact: bool = True
    auto: bool = False
    interval: tuple[float, float] | None = None
    extra: str = ""


@dataclass(frozen=True)
class Provenance:
    """Where a page comes from: files, time (seconds since 1970), versions, command, state."""

    source: str
    command: str
    state: str | None = None
    at: float = dataclasses.field(default_factory=time.time)
    version: str = __version__
    versions: str = f"gradeq {__version__}, Python {platform.python_version()}, numpy {np.__version__}"


@dataclass(frozen=True)
class Story:
    """A debias or quantile run. ``unit``: that of the label ("minutes").

    ``weight``: the column that averages are weighted by; ``labelled`` then counts weights above 0 only.
    """

    kind: Literal["debias", "quantile"]
    made: Provenance
    prediction: tuple[str, ...]
    label: str
    by: tuple[str, ...]
    outcome: Literal["real", "binary"]
    rows: int
    labelled: int
    verdict: Verdict
    method: Method
    unit: str = ""
    features: tuple[str, ...] = ()
    key: str = ""
    notices: tuple[Notice, ...] = ()
    rolling: Rolling | None = None
    groups: tuple[Group, ...] = ()
    groups_total: int = 0
    levels: tuple[LevelRow, ...] = ()
    frontier: tuple[StepPoint, ...] = ()
    theta: tuple[ThetaPanel, ...] = ()
    theta_scale: str = ""
    histogram: Histogram | None = None
    data: tuple[Fact, ...] = ()
    weight: str = ""
    open: int = 0  # rows that wait for their label
    width: BeforeAfter | None = None  # mean width of an interval
    reliability: Reliability | None = None
    heat: HeatMap | None = None
    steps: ThetaPanel | None = None  # the step in force, where it changed
    series: ManySeries | None = None


@dataclass(frozen=True)
class Player:
    """A row of the leaderboard, with the fields of :class:`~gradeq.leaderboard.ranks.Standing` that a page shows."""

    rank: int | None
    rank_low: int | None
    rank_high: int | None
    player: str
    elo: float
    elo_low: float
    elo_high: float
    games: int
    win_rate: float
    predicted_win_rate: float
    bias: float
    bound: float | None
    vacuous: bool = False


@dataclass(frozen=True)
class Curves:
    """Elo over the games; the first three lines are coloured, the others grey."""

    axis: Axis
    axis_name: str
    x: tuple[float, ...]
    lines: tuple[NamedCurve, ...]


@dataclass(frozen=True)
class Advantage:
    """What being at home is worth in Elo, its 95 % interval, and the step it was learned with."""

    elo: float
    low: float
    high: float
    step: float


@dataclass(frozen=True)
class EloStory:
    """An Elo run. ``noun`` is what plays ("model", "team", "player").

    ``loss``: of a coin flip (ln 2), then of the pre-game predictions; None without results. ``ties``: None if the
    state does not record them. ``fitted``: the weight of the fit of all games in the board; the rest are current
    strengths. ``residual``: what the solver left of the fit's equations, in games; None without a fit.
    """

    made: Provenance
    a: str
    b: str
    games: int
    players: int
    loss: LossFigures | None
    certificate: Certificate
    rows: tuple[Player, ...]
    k: float
    eta: float
    method: Method
    noun: str = "player"
    ties: int | None = 0
    ties_rule: Literal["half", "drop"] = "half"
    skipped: int = 0
    timed: bool = False
    lines: tuple[str, ...] = ()  # who is first and how sure that is; which games count
    home: Advantage | None = None
    fitted: float = 1.0
    residual: float | None = None
    notices: tuple[Notice, ...] = ()
    curves: Curves | None = None
    bins: tuple[Bin, ...] = ()
    frontier: tuple[StepPoint, ...] = ()
    added: int | None = None  # games of this run, where ``games`` and ``loss`` are since a state began


def as_json(story: DataclassInstance) -> str:
    """A story, or anything made of such parts, as JSON text; a number that is not finite becomes null."""
    return json.dumps(jsonable(dataclasses.asdict(story)), allow_nan=False, ensure_ascii=False)


def jsonable(value: object) -> object:
    """The value with None for every number that is not finite."""
    if isinstance(value, dict):
        return {str(key): jsonable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [jsonable(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
