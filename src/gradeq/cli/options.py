"""The options that debias, quantile and elo share, and what they are once read."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import click

from gradeq.cli.kinds import Delay, Late, Limit, Positive, Step

if TYPE_CHECKING:
    from gradeq.files.formats import Format


@dataclass(frozen=True)
class Common:
    """The shared options of one call, checked as far as that needs no file."""

    files: tuple[str, ...]
    eta: float | str | None = None
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

    @property
    def form(self) -> Format:
        """How the cells of its files are written."""
        from gradeq.files.formats import format_of

        return format_of(self.separator, self.decimal, self.missing)

    def __post_init__(self) -> None:
        if self.label_time is not None and self.time is None:
            raise click.UsageError(
                "--label-time needs --time, the column that says when rows are served"
            )
        if self.delay is not None:
            self._check_delay(self.delay)
        if self.ttl is not None and self.time is None:
            raise click.UsageError("--ttl is counted in the unit of --time; give --time as well")
        self._check_maturity()
        if (self.penalty is None) != (self.strength is None):
            raise click.UsageError("--penalty and --strength belong together; give both or none")
        if self.eta == "auto" and (self.decay is not None or self.penalty is not None):
            raise click.UsageError(
                "--eta auto chooses its own steps; leave out --decay and --penalty"
            )
        if self.again and self.state is None:
            raise click.UsageError(
                "--again is for rows that a state has seen; give --state as well"
            )
        outputs = [p for p in (self.output, self.report, self.state) if p is not None]
        check_distinct(outputs)

    def _check_maturity(self) -> None:
        if self.missing_is is not None and self.maturity is None:
            raise click.UsageError(
                f"--missing-is {self.missing_is:g} stands for a label that has not come when its row is mature; "
                "give --maturity as well"
            )
        if self.maturity is None:
            return
        if self.time is None and self.maturity.strip() != "0":
            raise click.UsageError(
                f"--maturity {self.maturity} is the age of a row when its label is learned; give --time as well"
            )
        if self.delay is not None:
            raise click.UsageError(
                "with --delay every label comes equally late, whatever its value; leave out --maturity, or say "
                "with --label-time when labels came"
            )

    def _check_delay(self, delay: Delay) -> None:
        given = f"--delay {delay.text}"
        if self.label_time is not None:
            raise click.UsageError(
                f"{given} and --label-time both say when labels arrive; leave out one of the two"
            )
        if delay.rows is None and self.time is None:
            raise click.UsageError(
                f"{given} is a duration and needs --time, a column of dates; "
                "or give a number of rows"
            )
        if self.ttl is not None:
            raise click.UsageError(
                f"with {given} every label comes exactly that late, so none exceeds --ttl; "
                "leave out one of the two"
            )


def check_keys_out(options: Common, key: str | None, path: str | None) -> None:
    """Refuse a table of series without any series, or in the place of another output."""
    if path is None:
        return
    if key is None:
        raise click.UsageError(
            "--keys-out writes one row for each series of --key; give --key as well"
        )
    outputs = [p for p in (options.output, options.report, options.state) if p is not None]
    check_distinct([*outputs, path])


def labels_later(options: Common) -> bool:
    """Whether rows without a label wait for it in a state."""
    return options.id is not None and options.state is not None


def need_label(label: str | None, options: Common, named: str = "--label") -> None:
    """Refuse to go without labels where none can come later; ``named``: the options that name their column."""
    if label is None and not labels_later(options):
        raise click.UsageError(
            f"{named} is missing; it may be left out with --id and --state, when `gradeq label` brings labels later"
        )
    if label is None and (options.label_time is not None or options.delay is not None):
        raise click.UsageError(
            f"--label-time and --delay say when labels come; give {named} as well"
        )


def check_distinct(outputs: list[str]) -> None:
    """Refuse two outputs in one place."""
    places = [os.path.realpath(path) for path in outputs]
    for i, place in enumerate(places):
        if place in places[:i]:
            raise click.UsageError(f"{outputs[i]} is named for two outputs; give each its own file")


def columns_of_file(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Complete a column's name from the header of the first file on the line."""
    from gradeq.errors import GradeqError
    from gradeq.files import open_table

    words = [*(ctx.params.get("files") or ()), *ctx.args]
    try:
        names = open_table([word for word in words if os.path.isfile(word)][:1]).names
    except (GradeqError, OSError):
        return []
    return [name for name in names if name.startswith(incomplete)]


def column(*names: str, **settings: Any) -> Callable[[Any], Any]:
    """An option that names a column, completed by the shell."""
    return click.option(*names, metavar="COL", shell_complete=columns_of_file, **settings)


_FILE = click.Path(allow_dash=True)

_SHARED = (
    click.argument("files", nargs=-1, required=True, metavar="FILE...", type=_FILE),
    click.option(
        "--eta",
        type=Step(),
        metavar="F|auto|plain",
        help=(
            "The step size, above 0; `auto` weighs running corrections and the raw prediction by "
            "their loss; `plain` is one constant step. Default: see above, or the step of "
            "the state."
        ),
    ),
    click.option(
        "--decay",
        type=float,
        metavar="ALPHA",
        help=("Decay the step as eta * t^-ALPHA, where t counts the predictions served so far."),
    ),
    click.option(
        "--penalty",
        type=click.Choice(["lasso", "ridge"]),
        help=("Pull all parameters to zero at each labelled row (needs --strength)."),
    ),
    click.option(
        "--strength",
        type=Positive(),
        metavar="LAMBDA",
        help=("Strength of the penalty: ridge (LAMBDA/2)|theta|^2, lasso LAMBDA |theta|."),
    ),
    column(
        "--time",
        help=(
            "Process rows in this order, ties in file order: numbers, dates or timestamps. "
            "The output keeps the order of the input."
        ),
    ),
    column(
        "--label-time",
        help=(
            "When each label became known. A label is learned from before the first later "
            "row whose time has reached it; labels not due by the last row are not learned "
            "from (with --state: kept until due)."
        ),
    ),
    click.option(
        "--delay",
        type=Late(),
        metavar="ROWS|DURATION",
        help=(
            "Every label arrives this much later than its row: a number of rows (with --key, of its "
            "series), or a duration such as 12h or 3d (needs --time with dates). Without it and "
            "without --label-time, labels are assumed known before the next prediction."
        ),
    ),
    click.option(
        "--ttl",
        metavar="SPAN",
        help=(
            "Give up on a label after this long: in the unit of --time; for dates in "
            "seconds, or with a unit: 90s, 15m, 36h, 7d."
        ),
    ),
    click.option(
        "--in-flight",
        type=click.IntRange(1, 10**9),
        default=1,
        metavar="N",
        help=(
            "How many rows late labels are expected to arrive: the cap then applies from the "
            "first row on."
        ),
    ),
    click.option(
        "--no-cap",
        is_flag=True,
        help=("Do not cap steps when labels are late (the layer may then diverge)."),
    ),
    column(
        "--id",
        help=(
            "The rows' ids, each used once. With --state a row without a label then waits for it: "
            "`gradeq label` brings it later."
        ),
    ),
    click.option(
        "--again",
        is_flag=True,
        help=(
            "Take rows that the state has seen: a known id, times before the last one, or the "
            "content of one of its last 100 runs. The state notes it."
        ),
    ),
    column(
        "--weight",
        help="Row weights, 0 or more; only their ratios matter. Rows of weight 0 are served but not learned from.",
    ),
    click.option(
        "-o",
        "--output",
        type=click.Path(),
        metavar="OUT",
        help=(
            "Write all input columns and rows, in input order, with the new columns (elo: the "
            "leaderboard, one row per player): .csv, .csv.gz or .parquet. The columns of a CSV file "
            "stay text in Parquet."
        ),
    ),
    click.option(
        "--report",
        type=click.Path(),
        metavar="OUT.html",
        help="Write the report: one self-contained HTML page.",
    ),
    click.option(
        "--state",
        type=click.Path(),
        metavar="FILE.json",
        help=("Continue from this state if the file exists, and write it at the end."),
    ),
    click.option(
        "--json",
        is_flag=True,
        help=("Print the summary as one JSON object, and nothing else, on stdout."),
    ),
    click.option("--quiet", is_flag=True, help="Print no summary and show no progress."),
    lambda command: formatted(command),
)


_FORMAT = (
    click.option(
        "--missing",
        multiple=True,
        metavar="TEXT",
        help=(
            "A cell that is exactly this means missing, beside blank, NA, N/A, NaN, null and none; may be "
            "repeated: --missing '#N/A' --missing -"
        ),
    ),
    click.option(
        "--separator",
        metavar="SIGN",
        help="What separates the cells of CSV: ';', '|' or tab (default: a comma). Output is written alike.",
    ),
    click.option(
        "--decimal",
        type=click.Choice([".", ","]),
        default=".",
        show_default=True,
        help="The decimal mark of numbers in text cells. CSV output is written alike.",
    ),
)


def formatted(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add how cells are written to a command's options."""
    for decorate in reversed(_FORMAT):
        command = decorate(command)
    return command


def shared(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the shared options after a command's own."""
    for decorate in reversed(_SHARED):
        command = decorate(command)
    return command


_LIMITS = (
    click.option(
        "--min",
        "low",
        type=Limit(),
        metavar="F",
        help="Labels are never below this: what is served stays there, a label below is an error.",
    ),
    click.option(
        "--max",
        "high",
        type=Limit(),
        metavar="F",
        help="Labels are never above this: what is served stays there, a label above is an error.",
    ),
)


def limited(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the limits of labels to a command's options."""
    for decorate in reversed(_LIMITS):
        command = decorate(command)
    return command


_MATURITY = (
    click.option(
        "--maturity",
        metavar="SPAN",
        help=(
            "Learn from a label only when its row is this old, where labels of one value are known earlier "
            'than those of another (churn when it happens, "stayed" after 30 days): in the unit of --time; '
            "for dates 90s, 15m, 36h, 30d. 0: learn from every label as it comes, and do not look for such labels."
        ),
    ),
    click.option(
        "--missing-is",
        type=Limit(),
        metavar="F",
        help="A row whose label has not come when it is mature counts as this value (needs --maturity).",
    ),
)


def maturing(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add when a row is mature to a command's options."""
    for decorate in reversed(_MATURITY):
        command = decorate(command)
    return command


keys_out_option = click.option(
    "--keys-out",
    type=click.Path(),
    metavar="FILE",
    help="Write a table of all series of --key, worst or not: .csv, .csv.gz or .parquet.",
)


def support_of(low: float | None, high: float | None) -> tuple[float | None, float | None] | None:
    """The limits as a layer takes them; None without any."""
    if low is not None and high is not None and not low < high:
        raise click.UsageError(f"--min {low:g} is not below --max {high:g}; give a smaller --min")
    return None if low is None and high is None else (low, high)


def common(given: dict[str, Any]) -> Common:
    """Take the shared options out of all that click gave."""
    return Common(**{field.name: given.pop(field.name, field.default) for field in fields(Common)})


def command_line() -> str:
    """The call as one could type it again."""
    context = click.get_current_context(silent=True)
    given = context.find_root().obj if context is not None else None
    if isinstance(given, dict) and "line" in given:
        return str(given["line"])
    return shlex.join(["gradeq", *sys.argv[1:]])


class Once(click.Command):
    """A command whose options, unless they take several values, are given once: the last one would win unseen."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuse an option that is given twice."""
        _, _, order = self.make_parser(ctx).parse_args(list(args))
        for given in order:
            once = isinstance(given, click.Option) and not (given.multiple or given.is_flag)
            if once and order.count(given) > 1:
                raise click.UsageError(f"{given.opts[0]} is given twice; it takes one value")
        return super().parse_args(ctx, args)
