"""What a report says, as data: frozen values that a run fills in and a page only formats.

Every field is a number, a text, a flag, None, or a tuple of such, so ``as_json`` writes a story
down whole. Nothing here computes; nothing on the page computes what is not here. A bias never
comes without a loss: both are required fields of :class:`Verdict` and :class:`Group`.
"""

import dataclasses
import json
import math
from dataclasses import dataclass
from typing import Literal

Values = tuple[float | None, ...]
"""A plotted series; None where nothing is drawn."""

Axis = Literal["row", "date", "number"]
"""How x reads: row numbers from 1, seconds since 1970 (UTC), or any other number."""


@dataclass(frozen=True)
class Pair:
    """One quantity for the raw prediction (``before``) and for what was served (``after``)."""

    before: float
    after: float


@dataclass(frozen=True)
class Coverage:
    """Share of labels covered; ``name`` is the level as typed ("0.9") or "interval"."""

    name: str
    target: float
    before: float
    after: float


@dataclass(frozen=True)
class Loss:
    """Mean loss over the labelled rows; ``name`` in small letters, e.g. "squared error"."""

    name: str
    before: float
    after: float


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
    """Average gradient (largest coordinate, absolute) and the bound known before the run.

    gap      largest difference between the average from rows and the one from state.
    exact    constant step: the bias itself follows from the state; False: *balanced*, the sum of
             step times gradient equals the move of theta and the bias is the stored sum.
    bound    None where no theorem fits.
    vacuous  the bound is no smaller than the largest error possible.
    loose    the bound is larger than the |bias| before.
    """

    value: float
    bound: float | None
    gap: float
    exact: bool = True
    vacuous: bool = False
    loose: bool = False


@dataclass(frozen=True)
class Verdict:
    """The numbers of the headline: bias or coverage, always with the loss and the certificate."""

    loss: Loss
    certificate: Certificate
    bias: Pair | None = None
    coverage: tuple[Coverage, ...] = ()
    worst: Worst | None = None


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


@dataclass(frozen=True)
class Spark:
    """A group's own rolling error, small; x on the axis of :class:`Rolling`."""

    x: tuple[float, ...]
    before: Values
    after: Values


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
class Fact:
    """A term and its text in the Data section; backticks set code."""

    term: str
    text: str


@dataclass(frozen=True)
class Method:
    """The numbers of the identity (u1 - u) / (eta n) = average gradient, worked for one group.

    ``eta`` None: the step varied, and the stored sum of gradients ``total`` is shown instead.
    ``link`` is identity, shift, logit, exp, sinh, linear; ``extra`` adds a sentence.
    """

    link: str
    name: str
    n: float
    u1: float
    u: float
    average: float
    eta: float | None
    total: float | None = None
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
class Bin:
    """Games whose predicted win rate of side a fell in one bin, with a 95 % interval."""

    predicted: float
    actual: float
    games: int
    low: float
    high: float


@dataclass(frozen=True)
class EloStory:
    """An Elo run. ``noun`` is what plays ("model", "team", "player").

    ``loss`` before is a coin flip's (ln 2), after the pre-game predictions'. ``worst`` is the
    largest |bias| among ranked players; ``within`` of ``ranked`` are off by at most one point.
    """

    made: Made
    a: str
    b: str
    games: int
    players: int
    loss: Loss
    certificate: Certificate
    rows: tuple[Player, ...]
    k: float
    eta: float
    method: Method
    noun: str = "player"
    ties: int = 0
    ties_rule: Literal["half", "drop"] = "half"
    skipped: int = 0
    timed: bool = False
    lines: tuple[str, ...] = ()  # who is first and how sure that is; which games count
    notices: tuple[Notice, ...] = ()
    curves: Curves | None = None
    bins: tuple[Bin, ...] = ()
    frontier: tuple[StepPoint, ...] = ()


def as_json(story: Story | EloStory) -> str:
    """Write a story down as JSON text; a number that is not finite becomes null."""
    return json.dumps(_finite(dataclasses.asdict(story)), allow_nan=False, ensure_ascii=False)


def _finite(value: object) -> object:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
