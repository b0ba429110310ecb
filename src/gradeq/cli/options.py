"""Options shared by the commands, the types of their values, and errors in their words."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import partial, reduce
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict, cast

import click

from gradeq.errors import BadInput, GradeqError, OtherSettings
from gradeq.inputs.durations import NUMBERS, as_span, duration
from gradeq.penalties import Lasso, Penalty, Ridge
from gradeq.schedules import Power, check_decay

if TYPE_CHECKING:
    from gradeq.layers.layer import Layer

    _Kind = click.ParamType[object]
else:  # click before 8.4 has no parameter there
    _Kind = click.ParamType


class Delay(NamedTuple):
    """How long after its row every label comes, in rows or in seconds."""

    text: str
    rows: int | None
    seconds: float


LONGEST = 100.0 * 366.0 * 86400.0


class ValueType(_Kind):
    def __init__(self, parse: Callable[[str], object], name: str = "F") -> None:
        self.parse, self.name = parse, name

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        try:
            return self.parse(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _number(text: str, remedy: str = "give one such as 0.5") -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number; {remedy}.") from None


def _finite(text: str) -> float:
    number = _number(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is not finite; give a finite number, or leave the option out.")
    return number


def _positive(text: str, remedy: str = "give a number above 0") -> float:
    number = _number(text, remedy)
    if not (math.isfinite(number) and number > 0.0):
        raise ValueError(f"{text} is not above 0; give a positive, finite number.")
    return number


def _step(text: str) -> float | str:
    words = ("auto", "plain")
    return text if text in words else _positive(text, "give a number above 0, auto or plain")


def _probability(text: str) -> str:
    """The text as typed, because names of new columns contain it."""
    text = text.strip()
    if not 0.0 < _number(text) < 1.0:
        raise ValueError(f"{text} lies outside (0, 1); give a share such as 0.9.")
    return text


def _delay(text: str) -> Delay:
    short = text.strip()
    if short.isascii() and short.isdigit() and len(short) < 16:
        return Delay(short, int(short), 0.0)
    seconds = duration(short)
    if seconds is None or not 0.0 < seconds <= LONGEST:
        raise ValueError(f"{text!r} is neither a number of rows nor a duration; give 0, 250, 90s, 15m, 36h or 7d.")
    return Delay(short, None, seconds)


NUMBER, FINITE, POSITIVE = ValueType(_number), ValueType(_finite), ValueType(_positive)
PROBABILITY = ValueType(_probability, "P")
STEP = ValueType(_step, "F|auto|plain")
DELAY = ValueType(_delay, "ROWS|DURATION")
POSITIVES = ValueType(lambda text: tuple(_positive(part) for part in text.split(",")), "NU1,NU2,...")


class Within(click.FloatRange):
    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            return super().convert(cast(float, value), param, ctx)
        except click.BadParameter:
            inside = self._describe_range()
            self.fail(f"{value!r} is not a number in the range {inside}; give one inside.", param, ctx)


class WholeNumber(click.IntRange):
    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            return super().convert(cast(int, value), param, ctx)
        except click.BadParameter:
            inside = self._describe_range()
            self.fail(f"{value!r} is not a whole number in the range {inside}; give one inside.", param, ctx)


# The option of every setting; other settings exist only in Python.
OPTIONS = {
    "eta": "--eta", "final_eta": "--eta", "schedule": "--decay", "penalty": "--penalty", "strength": "--strength",
    "outcome": "--outcome", "link": "--link", "clip": "--clip", "support": "--min and --max",
    "groups": "--by", "features": "--feature", "level": "--level", "levels": "--level", "coverage": "--interval",
    "etas": "--ensemble", "ensemble_eta": "--ensemble-eta", "late_cap": "--no-cap", "in_flight": "--in-flight",
    "ttl": "--ttl", "maturity": "--maturity", "missing_is": "--missing-is", "ties": "--ties",
    "home_advantage": "--home", "dates": "--time with dates", "pool": "--pool",
}  # fmt: skip
_VALUE = r"'[^']*'|\[[^\]]*\]|[^\s;:,()]+"
_PHRASES = (
    (r"a layer with a penalty cannot be keyed", "--penalty does not go with --key"),
    (r"name the key as a group of a layer", "name the column of --key with --by"),
    (r"\ba penalty goes with one level", "--penalty goes with one --level"),
    (r"\bwith a penalty\b", "with --penalty"),
    (r"\bwith features\b: their size", "with --feature: the size of features"),
    (r"\bwith features\b", "with --feature"),
    (r"\bridge strength ", "--strength "),
    (r"keep the cap on steps", "leave out --no-cap"),
    (r"\b(?:Constant|Power)\(eta=([^,)]*)\)", r"--eta \1"),
)
_SETTING = re.compile(rf"(?<![\w'\"-])({'|'.join(sorted(OPTIONS, key=len, reverse=True))})=({_VALUE})")
# Words that always mean a setting.
_BARE = re.compile(r"(?<![\w'\"`-])(eta|ttl|maturity|missing_is|late_cap|in_flight)(?![\w'\"=])")
_LINK = re.compile(r"(?<![\w-])link (?=identity|exp|shift|logit|sinh|linear)")


def in_option_words(text: str) -> str:
    """An error message of the library in the words of the command line.

    >>> in_option_words("eta='auto' needs link='sinh'; give a number for eta")
    '--eta auto needs --link sinh; give a number for --eta'
    """

    def assigned(match: re.Match[str]) -> str:
        option, value = OPTIONS[match[1]], match[2]
        return option if value == "True" else f"{option} {value.strip(chr(39)).strip('[]').replace(', ', ',')}"

    for pattern, words in _PHRASES:
        text = re.sub(pattern, words, text)
    text = _LINK.sub("--link ", _SETTING.sub(assigned, text))
    return _BARE.sub(lambda match: OPTIONS[match[1]], text)


@contextmanager
def errors_in_option_words() -> Iterator[None]:
    """Errors of layers then name options instead of Python arguments."""
    try:
        yield
    except OtherSettings:
        raise
    except GradeqError as error:
        raise type(error)(in_option_words(str(error))) from None


_COMMANDS = {
    "debias": "gradeq debias",
    "elo": "gradeq elo",
    "quantile": "gradeq quantile with one --level",
    "quantiles": "gradeq quantile with several --level",
    "interval": "gradeq quantile --interval",
    "ensemble": "gradeq quantile --ensemble",
}


def check_same_options(layer: Layer, saved: Layer) -> None:
    from gradeq.layers.serialization import check_same_settings

    inner, saved_inner = getattr(layer, "layer", layer), getattr(saved, "layer", saved)
    if inner.kind != saved_inner.kind or layer.kind != saved.kind:
        commands = []
        for whole, part in ((saved, saved_inner), (layer, inner)):
            words = _COMMANDS.get(part.kind, f"a {part.kind} layer of Python")
            if whole is not part:
                words += " and --key" if "with" in words else " with --key"
            commands.append(words)
        raise OtherSettings(f"the state was made by {commands[0]}, this run is {commands[1]}; use another state file")
    option = "--pool"
    was, now = (option if getattr(each, "pool", False) else None for each in (saved, layer))
    if was == now:
        try:
            check_same_settings(inner, saved_inner)
            check_same_settings(layer, saved)
            return
        except OtherSettings as error:
            if error.name is None:
                raise
            dates = saved.internals.tickets.desk.get("times", {}).get("kind") != NUMBERS
            was, now = (_as_typed(error.name, each.settings, dates) for each in (saved_inner, inner))
            option = OPTIONS.get(error.name, error.name)
    made, run = (f"without {option}" if typed is None else f"with {typed}" for typed in (was, now))
    raise OtherSettings(f"the state was made {made}, this run {run}; use the same options, or another state file")


def _as_typed(name: str, settings: Mapping[str, Any], dates: bool) -> str | None:
    """A setting as an option with its value; None where it has its default."""
    value, option = settings.get(name), OPTIONS.get(name)
    if name in ("eta", "schedule"):
        schedule = settings.get("schedule")
        if schedule is None:
            return None if value is None else f"--eta {_number_words(value)}"
        alpha = getattr(schedule, "alpha", None)
        if alpha is None:
            return f"schedule={schedule!r} (of Python)"
        return f"--eta {_number_words(schedule.eta)} --decay {_number_words(alpha)}"
    if option is None:
        return f"{name}={value!r} (of Python)"
    if name == "late_cap":
        return {"auto": None, None: "--no-cap"}.get(value, f"late_cap={value!r} (of Python)")
    if value is None or value is False or value == [] or value == ():
        return None
    if name == "support":
        ends = zip(("--min", "--max"), value, strict=True)
        return " ".join(f"{option} {_number_words(end)}" for option, end in ends if end is not None)
    if name == "penalty":
        return f"--penalty {type(value).__name__.lower()} --strength {_number_words(value.strength)}"
    if name in ("ttl", "maturity"):
        return f"{option} {(as_span(value) if dates else None) or _number_words(value)}"
    if value is True:
        return option
    if name == "etas":
        return f"{option} {','.join(map(_number_words, value))}"
    values = value if isinstance(value, (list, tuple)) else [value]
    return " ".join(f"{option} {_number_words(each)}" for each in values)


def _number_words(value: object) -> str:
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


Support = tuple[float | None, float | None]  # --min and --max
Step = float | Literal["auto", "plain"] | None
Decorator = Callable[[Callable[..., None]], Callable[..., None]]


@dataclass(frozen=True)
class LateOptions:
    """Options about late labels, in the unit of --time; ``dated``: times are dates."""

    ttl: float | None
    maturity: float | None
    missing_is: float | None
    dated: bool


class StepSettings(TypedDict, total=False):
    eta: Step
    schedule: Power
    penalty: Penalty | None


@dataclass
class CommonOptions:
    """The shared options of one call, checked without opening any file."""

    files: tuple[str, ...]
    eta: Step = None
    decay: float | None = None
    penalty: str | None = None
    strength: float | None = None
    time: str | None = None
    label_time: str | None = None
    delay: Delay | None = None
    ttl: str | None = None
    maturity: str | None = None
    missing_is: float | None = None
    in_flight: int = 1
    no_cap: bool = False
    weight: str | None = None
    id: str | None = None
    again: bool = False
    output: str | None = None
    report: str | None = None
    state: str | None = None
    json: bool = False
    quiet: bool = False
    separator: str | None = None
    decimal: str = "."
    missing: tuple[str, ...] = ()
    labels_later: bool = field(init=False)  # whether `gradeq label` may post labels later

    def __post_init__(self) -> None:
        delay = "" if self.delay is None else f"--delay {self.delay.text}"
        at_once = self.maturity is not None and self.maturity.strip() == "0"
        missing = self.missing_is is not None
        instead = f"--missing-is {self.missing_is or 0.0:g} replaces a label that has not come when its row is mature"
        problems = {
            "--label-time needs --time, the column with the times of the rows":
                self.label_time is not None and self.time is None,
            f"{delay} and --label-time both set when labels arrive; leave out one of the two":
                delay and self.label_time is not None,
            f"{delay} is a duration and needs --time, a column of dates; or give a number of rows":
                self.delay is not None and self.delay.rows is None and self.time is None,
            f"with {delay} every label comes exactly that late, so none exceeds --ttl; leave out one of the two":
                delay and self.ttl is not None,
            "--ttl is counted in the unit of --time; give --time as well":
                self.ttl is not None and self.time is None,
            f"{instead}; give --maturity as well":
                missing and self.maturity is None,
            f"{instead}, and with --maturity 0 no row waits; give a span such as 30d, or leave out --missing-is":
                missing and at_once,
            "with --missing-is every row is closed when it is mature, so none outlives --ttl; leave out one of them":
                missing and self.ttl is not None,
            f"--maturity {self.maturity} is the age of a row when its label is learned; give --time as well":
                self.maturity is not None and self.time is None and not at_once,
            "with --delay every label comes equally late; leave out --maturity, or give --label-time instead":
                delay and self.maturity is not None,
            "--penalty and --strength belong together; give both or neither":
                (self.penalty is None) != (self.strength is None),
            "--eta auto chooses its own steps; leave out --decay and --penalty":
                self.eta == "auto" and (self.decay is not None or self.penalty is not None),
            "--again is for rows that are in the state already; give --state as well":
                self.again and self.state is None,
        }  # fmt: skip
        for problem, occurs in problems.items():
            if occurs:
                raise click.UsageError(problem)
        check_distinct(self.output, self.report, self.state)
        self.labels_later = self.id is not None and self.state is not None


def require_label(label: str | None, options: CommonOptions, option: str = "--label") -> None:
    if label is None and not options.labels_later:
        raise click.UsageError(
            f"{option} is missing; it is optional only with --id and --state, when `gradeq label` posts labels later"
        )
    if label is None and (options.label_time is not None or options.delay is not None):
        raise click.UsageError(f"--label-time and --delay set when labels arrive; give {option} as well")


def check_distinct(*paths: str | None) -> None:
    outputs = [path for path in paths if path is not None]
    places = [os.path.realpath(path) for path in outputs]
    for i, place in enumerate(places):
        if place in places[:i]:
            raise click.UsageError(f"{outputs[i]} is used for two outputs; give each a file of its own")


def columns_of_file(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Complete a column name from the header of the first file on the command line."""
    from gradeq.files import open_table

    words = [*(ctx.params.get("files") or ()), *ctx.args]
    try:
        names = open_table([word for word in words if os.path.isfile(word)][:1]).names
    except (GradeqError, OSError):
        return []
    return [name for name in names if name.startswith(incomplete)]


def column(*names: str, help: str, required: bool = False, multiple: bool = False) -> Decorator:
    return click.option(
        *names, metavar="COL", shell_complete=columns_of_file, help=help, required=required, multiple=multiple
    )


def option_group(*options: Decorator) -> Decorator:
    return lambda command: reduce(lambda decorated, option: option(decorated), reversed(options), command)


INPUT_FILES = click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path(allow_dash=True))

format_options = option_group(
    click.option("--missing", multiple=True, metavar="TEXT", help=(
        "Also treat cells with exactly this text as missing, like blank, NA, N/A, NaN, null and none; repeatable: "
        "--missing '#N/A' --missing -")),
    click.option("--separator", metavar="SIGN", help=(
        "The separator of CSV cells: ';', '|' or tab (default: a comma). CSV output uses it too.")),
    click.option("--decimal", type=click.Choice([".", ","]), default=".", show_default=True, help=(
        "The decimal mark of numbers in text cells. CSV output uses it too.")),
)  # fmt: skip

shared_options = option_group(
    INPUT_FILES,
    click.option("--eta", type=STEP, metavar="F|auto|plain", help=(
        "A step size above 0, `auto` (running corrections and the raw prediction, weighted by their loss) or "
        "`plain` (one constant step). Default: see above, or the step of the state.")),
    click.option("--decay", type=NUMBER, metavar="ALPHA", help=(
        "Decrease the step as eta * t^-ALPHA, 0 <= ALPHA < 1, where t counts the predictions served so far.")),
    click.option("--penalty", type=click.Choice(["lasso", "ridge"]), help=(
        "Pull all parameters to zero at each labelled row (needs --strength).")),
    click.option("--strength", type=POSITIVE, metavar="LAMBDA", help=(
        "Strength of the penalty: ridge (LAMBDA/2)|theta|^2, lasso LAMBDA |theta|.")),
    column("--time", help=(
        "Process rows in this order, ties in file order: numbers, dates or timestamps. The output keeps the order "
        "of the input. Sorting a file that is not in this order takes about 30 bytes of memory a row; everything "
        "else is streamed.")),
    column("--label-time", help=(
        "When each label became known. It is learned before the first later row at or after that time. "
        "Labels that are not due by the last row are not learned (with --state they wait until due).")),
    click.option("--delay", type=DELAY, metavar="ROWS|DURATION", help=(
        "Every label arrives this much later than its row: a number of rows (with --key, of its series), or a "
        "duration such as 12h or 3d (needs --time with dates). Without it and without --label-time, labels are "
        "assumed known before the next prediction.")),
    click.option("--ttl", metavar="SPAN", help=(
        "Give up on a row once another comes more than this long after it: 90s, 15m, 36h or 7d; where --time holds "
        "numbers, a number in their unit. A label that is due just when that row comes still counts. Needs --time.")),
    click.option("--in-flight", type=WholeNumber(1, 10**9), default=1, metavar="N", help=(
        "How many rows late a label is expected to be. Steps are limited accordingly from the first row on; "
        "otherwise they are limited once late labels arrive.")),
    click.option("--no-cap", is_flag=True, help=(
        "Do not make steps smaller when labels are late; corrections may then overshoot and diverge.")),
    column("--id", help="Unique row ids. With --state, rows without a label wait until `gradeq label` posts it."),
    click.option("--again", is_flag=True, help=(
        "Accept rows that the state may contain already: a known id, times before its last one, or the content of "
        "one of its last 100 runs. The state records this.")),
    column("--weight", help=(
        "Row weights, 0 or more; only their ratios matter. Rows of weight 0 are served but not learned from. "
        "Bias, coverage and loss of a file are plain weighted means; certificate, bounds, series and players are "
        "by relative weight: each weight divided by the mean of the positive ones served so far (of its key).")),
    click.option("-o", "--output", type=click.Path(), metavar="OUT", help=(
        "Write all input columns and rows, in input order, with the new columns (elo: the leaderboard, one row "
        "per player): .csv, .csv.gz or .parquet. The columns of a CSV file stay text in Parquet.")),
    click.option("--report", type=click.Path(), metavar="OUT.html", help=(
        "Write the report: one self-contained HTML page.")),
    click.option("--state", type=click.Path(), metavar="FILE.json", help=(
        "Continue from this state if the file exists, and write it at the end.")),
    click.option("--json", is_flag=True, help="Print the summary on stdout as a single JSON object."),
    click.option("--quiet", is_flag=True, help="Print no summary and show no progress."),
    format_options,
)  # fmt: skip


# Options of debias and quantile only.
row_columns = option_group(
    column("--label", help=(
        "The observed outcome. Rows without one (blank, NA, N/A, NaN, null, none) are served but not learned "
        "from. Optional with --id and --state: `gradeq label` then posts labels later.")),
    column("--by", multiple=True, help=(
        "A column of groups, each to be unbiased or covered. May be repeated; groups may overlap.")),
    column("--feature", "features", multiple=True, help=(
        "A numeric column that errors or misses should not depend on. May be repeated. Needs --eta.")),
    column("--key", help=(
        "A column of series: each value gets its own layer. Only one column; combine several beforehand.")),
)  # fmt: skip
run_options = option_group(
    click.option("--keys-out", "table_file", type=click.Path(), metavar="FILE", help=(
        "Write a table with one row for each series of --key: .csv, .csv.gz or .parquet.")),
    click.option("--min", "low", type=FINITE, metavar="F", help=(
        "The smallest possible label. Served values stay at or above it; a smaller label is an error.")),
    click.option("--max", "high", type=FINITE, metavar="F", help=(
        "The largest possible label. Served values stay at or below it; a larger label is an error.")),
    click.option("--maturity", metavar="SPAN", help=(
        "Learn from a label only when its row is this old: 90s, 15m, 36h or 30d; where --time holds numbers, a "
        'number. Use it if one value is known earlier than another (churn when it happens, "stayed" after 30 '
        'days). Without this option such labels are detected and held back; with 0 every label is learned as it '
        "arrives.")),
    click.option("--missing-is", type=FINITE, metavar="F", help=(
        "The label of a row that still has none at the age of --maturity, for example 0 if only churn is "
        "reported. Needs --maturity.")),
    shared_options,
)  # fmt: skip


output_folder = partial(
    click.option,
    "-o",
    "--output",
    type=click.Path(),
    show_default=True,
    metavar="DIR",
    help="The folder to write to.",
)


def take_common(values: dict[str, Any]) -> CommonOptions:
    options = [option for option in fields(CommonOptions) if option.init]
    return CommonOptions(**{option.name: values.pop(option.name, option.default) for option in options})


class SingleUseCommand(click.Command):
    """Rejects repeated options instead of silently using the last."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        _, _, order = self.make_parser(ctx).parse_args(list(args))
        for option in order:
            once = isinstance(option, click.Option) and not (option.multiple or option.is_flag)
            if once and order.count(option) > 1:
                raise click.UsageError(f"{option.opts[0]} is given twice; it takes one value")
        return super().parse_args(ctx, args)


def step_arguments(options: CommonOptions, eta: Step, default: float | None, link: str = "") -> StepSettings:
    """The layer's arguments for the step: eta, or a decaying schedule, and the penalty."""
    penalty: Penalty | None = None
    if options.penalty is not None and options.strength is not None:
        penalty = Lasso(options.strength) if options.penalty == "lasso" else Ridge(options.strength)
    if options.decay is None:
        return {"eta": eta, "penalty": penalty}
    check_decay("--decay", options.decay)
    start = default if eta in (None, "plain") else eta
    if start is None:
        if link == "linear":
            raise BadInput("--link linear needs --eta in the unit of the labels; give a number")
        raise BadInput("--feature needs --eta: the size of features is not known in advance; give a number")
    if isinstance(start, str):
        raise BadInput("--eta auto chooses its own steps; leave out --decay")
    return {"schedule": Power(start, options.decay), "penalty": penalty}
