"""What a report says, as data: frozen values that a run fills in and a page only formats.

Every field is a number, a text, a flag, None, or a tuple of such, so ``as_json`` writes a story
down whole. Nothing here computes; nothing on the page computes what is not here. A bias never
comes without a loss: both are required fields of :class:`Verdict` and :class:`Group`.
"""

import dataclasses
import json
import math
from dataclasses import dataclass
from typing import Any, Literal

from gradeq.report.charts import Axis as Axis
from gradeq.report.charts import Bin as Bin
from gradeq.report.charts import HeatMap as HeatMap
from gradeq.report.charts import HeatRow as HeatRow
from gradeq.report.charts import Histogram as Histogram
from gradeq.report.charts import Line as Line
from gradeq.report.charts import Panel as Panel
from gradeq.report.charts import Reliability as Reliability
from gradeq.report.charts import Rolling as Rolling
from gradeq.report.charts import Span as Span
from gradeq.report.charts import Spark as Spark
from gradeq.report.charts import StepPoint as StepPoint
from gradeq.report.charts import Tracked as Tracked
from gradeq.report.charts import Values as Values


@dataclass(frozen=True)
class Pair:
    """One quantity for the raw prediction (``before``) and for what was served (``after``)."""

    before: float
    after: float


@dataclass(frozen=True)
class Coverage:
    """Share of labels covered; ``name`` is the level as typed ("0.9") or "interval".

    ``held``: the same of the raw and the served values inside their limits, where labels are judged by values before.
    """

    name: str
    target: float
    before: float
    after: float
    held: Pair | None = None


@dataclass(frozen=True)
class Loss:
    """Mean loss over the labelled rows; ``name`` in small letters, e.g. "squared error".

    ``negligible``: a rise by as much is rounding.
    """

    name: str
    before: float
    after: float
    negligible: float = 0.0


@dataclass(frozen=True)
class Worst:
    """The group with the largest error before, and the one after, with their signed errors.

    For a quantile the errors are coverage minus target.
    """

    group_before: str
    before: float
    group_after: str
    after: float


@dataclass(frozen=True)
class Certificate:
    """Average gradient (largest coordinate, absolute) and its worst case over data in the range seen.

    gap      largest difference between the average from rows and the one from state.
    exact    constant step: the bias itself follows from the state; False: steps varied, the sum of
             step times gradient equals the move of theta and the bias is the stored sum.
    bound    None where no theorem fits.
    vacuous  the bound is no smaller than the raw error.
    loose    the bound is larger than the |bias| before.
    rounding how much of the gap rounding alone may explain.
    over     which labels it is about, where they are not those of the figures beside it.
    """

    value: float
    bound: float | None
    gap: float
    exact: bool = True
    vacuous: bool = False
    loose: bool = False
    rounding: float = 0.0
    over: str = ""


@dataclass(frozen=True)
class Verdict:
    """The numbers of the headline: bias or coverage, always with the loss and the certificate.

    ``nothing``: no label was learned from. ``shadow``: raw values were served, and ``after`` is what would have been.
    """

    loss: Loss
    certificate: Certificate
    bias: Pair | None = None
    coverage: tuple[Coverage, ...] = ()
    worst: Worst | None = None
    nothing: bool = False
    shadow: bool = False


@dataclass(frozen=True)
class Notice:
    """A warning: a claim with a number, the evidence, and what to do (may be empty).

    ``red``: learning stopped or the result cannot be trusted; ``amber``: the result holds but must
    be qualified; ``note``: good to know. Text between backticks is set as code.
    """

    level: Literal["red", "amber", "note"]
    claim: str
    evidence: str
    remedy: str = ""


@dataclass(frozen=True)
class Group:
    """One group's row. ``before`` and ``after`` are biases, or coverages when ``target`` is given.

    ``by`` is the column, ``name`` the value without it ("Caucasian"). ``vacuous`` as in
    :class:`Certificate`; a bound larger than the error before is marked loose by the page.
    """

    by: str
    name: str
    rows: int
    label_mean: float
    before: float
    after: float
    loss: Pair
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
    coverage: Pair
    loss: Pair
    bound: float | None
    vacuous: bool = False


@dataclass(frozen=True)
class WideSeries:
    """A series with a wide interval, or (``width`` None) with a large loss; ``after``: its bias or coverage."""

    name: str
    rows: int
    after: float
    loss: Pair
    width: float | None = None


@dataclass(frozen=True)
class ManySeries:
    """The series of ``--key``: how many, how far they are off, the worst and the widest.

    ``mean`` and ``far`` (a tenth is farther off) are of the ``judged``; ``histogram`` is of their errors with the
    sign, for coverage in points. ``relative``: errors are divided by the prediction (link exp). ``fewest``:
    labels that each of the ``judged`` has at least.
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

    ``eta`` None: the step varied, and the stored sum of errors ``total`` stands in for the move.
    ``penalty``: the average slope of a penalty, which moves u too; the average is then over all
    ``n`` rows, of which ``own`` are those of ``name``. ``tail`` says what the average is.
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
    """How values were served (``link``: identity, shift, logit, exp, sinh, linear, elo) and the
    identity in the page's own numbers; ``exact``: one constant step; ``auto``: what is moved is a
    mix; ``interval``: levels whose two worked lines give the coverage; ``extra`` adds a sentence."""

    link: str
    worked: tuple[Worked, ...] = ()
    exact: bool = True
    auto: bool = False
    interval: tuple[float, float] | None = None
    extra: str = ""


@dataclass(frozen=True)
class Made:
    """Where a page comes from: files, time (seconds since 1970), versions, command, state."""

    source: str
    at: float
    version: str
    versions: str
    command: str
    state: str | None = None


@dataclass(frozen=True)
class Story:
    """A debias or quantile run. ``unit`` is the label's unit ("minutes") or empty; ``weight`` the
    column that averages are weighted by: ``labelled`` then counts weights above 0 only."""

    kind: Literal["debias", "quantile"]
    made: Made
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
    theta: tuple[Panel, ...] = ()
    theta_scale: str = ""
    histogram: Histogram | None = None
    data: tuple[Fact, ...] = ()
    weight: str = ""
    width: Pair | None = None  # mean width of an interval
    reliability: Reliability | None = None
    heat: HeatMap | None = None
    steps: Panel | None = None  # the step in force, where it changed
    series: ManySeries | None = None


@dataclass(frozen=True)
class Player:
    """A row of the leaderboard. Win rates and bias are fractions, from the player's own side.

    ``rank``: position by Elo; ``rank_low`` to ``rank_high`` are left open (95 %); None with fewer
    than 30 games.
    """

    rank: int | None
    rank_low: int | None
    rank_high: int | None
    player: str
    elo: float
    elo_low: float | None
    elo_high: float | None
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
    lines: tuple[Line, ...]


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

    ``loss`` before is a coin flip's (ln 2), after the pre-game predictions'; None without results.
    ``ties``: None where a state does not tell. ``fitted``: the weight
    of the fit of all games in the board; the rest are strengths of the moment. ``residual``: what the
    solver left of the fit's equations, in games; None where there is no fit.
    """

    made: Made
    a: str
    b: str
    games: int
    players: int
    loss: Loss | None
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
    added: int | None = (
        None  # games of this run, where ``games`` and ``loss`` are since a state began
    )


def as_json(story: Any) -> str:
    """Write a story, or anything made of such parts, as JSON text; a number that is not finite becomes null."""
    return json.dumps(_finite(dataclasses.asdict(story)), allow_nan=False, ensure_ascii=False)


def _finite(value: object) -> object:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
