"""``gradeq debias``: its options and its layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from gradeq.cli.options import (
    LateOptions,
    RunOptions,
    SingleUseCommand,
    Step,
    column,
    option_group,
    row_columns,
    run_options,
    step_arguments,
    take_common,
)

if TYPE_CHECKING:
    from gradeq.cli.task import RunTask
    from gradeq.layers.debiaser import LinkName, Outcome
    from gradeq.layers.layer import Layer


debias_options = option_group(
    column("--prediction", required=True, help="The predictions to adjust."),
    row_columns,
    click.option("--outcome", type=click.Choice(["real", "binary"]), default="real", show_default=True, help=(
        "Numbers (squared error), or probabilities and labels in [0, 1].")),
    click.option("--link", type=click.Choice(["identity", "shift", "logit", "exp"]), help=(
        "How the correction enters. real: identity (default), or exp for positive predictions. binary: logit "
        "(default, stays in [0, 1]), or the paper's shift.")),
    click.option("--clip", type=click.FloatRange(0.0, 0.5, min_open=True, max_open=True), default=1e-6,
                 metavar="EPS", show_default=True, help=(
        "With --outcome binary and link logit: predictions are kept within [EPS, 1 - EPS], since 0 and 1 cannot "
        "be corrected in log-odds. This alone can add -log(1 - EPS) to the log loss (0.105 for 0.1).")),
    click.option("--column", "column_name", default="adjusted", metavar="NAME", show_default=True, help=(
        "Name of the new column.")),
    run_options,
)  # fmt: skip


@click.command(cls=SingleUseCommand, short_help="Remove the bias of predictions, overall and in every group.")
@debias_options
def command(**values: Any) -> None:
    """Remove the bias of predictions, overall and in every group.

    Adds to each prediction a correction learned from earlier labels, so that the mean served value
    approaches the mean label: over all rows, or in each group of each --by column. Where the
    summary prints a bound, the average beside it cannot exceed it, whatever the data.

    --eta defaults to auto: running means of past errors (overall and by group) and the raw
    prediction are weighted by their loss. This follows drift, also with late labels, and pays off
    after about 500 labels. --eta plain is one constant step of 0.01 (binary: 0.03), divided by the
    number of --by columns. If labels are known before the next row, it can raise the squared error
    by at most 1.02 %, whatever the data (binary with link logit: the log loss of 0/1 labels by at
    most 0.62 % of that of the clipped prediction; see --clip). The default is plain with --key,
    --decay, --penalty, --link shift or --link exp. --feature requires a number.

    With --min and --max, served values stay inside the limits; bias, certificate and bound are
    about the values as served.

    FILE is .csv, .csv.gz or .parquet, several of one kind, or - for CSV on stdin. Cells are
    copied unchanged; files larger than memory are streamed (see --time).

    \b
    Examples
      gradeq debias scores.csv --prediction score --label outcome
      gradeq debias scores.csv --prediction score --label outcome --outcome binary \\
          --by region --by sex -o adjusted.csv --report report.html
      gradeq debias scores.csv --prediction score --label outcome --time day \\
          --label-time known --state state.json
      cat scores.csv | gradeq debias - --prediction score --label outcome --json

    \b
    Exit code
      0 done   2 wrong usage or bad input   3 damaged state
    An error is one line on stderr; no output is left behind and the state is unchanged.
    """
    options = DebiasOptions(common=take_common(values), **values)
    from gradeq.cli.job import run_rows

    run_rows(options.task())


@dataclass(kw_only=True)
class DebiasOptions(RunOptions):
    prediction: str
    outcome: Outcome
    link: LinkName | None
    clip: float
    column_name: str

    def task(self) -> RunTask:
        from gradeq.cli.task import Bias, BinaryBias, RunTask

        if self.support is not None and self.link == "exp":
            raise click.UsageError(
                "--min and --max do not go with --link exp, which stays above 0 by itself; "
                "leave them out, or use --link identity"
            )
        link: LinkName = self.link or ("identity" if self.outcome == "real" else "logit")
        return RunTask(
            "debias", self.common, (self.prediction,), self.label, (self.column_name,),
            BinaryBias() if self.outcome == "binary" else Bias(), lambda eta, late: self.layer(link, eta, late),
            self.by, self.features, self.key, self.outcome, link, support=self.support, table_file=self.keys_out,
        )  # fmt: skip

    def layer(self, link: LinkName, eta: Step, late: LateOptions) -> Layer:
        from gradeq.layers.debiaser import DEFAULT_ETA, Debiaser

        default = None if self.features else DEFAULT_ETA[self.outcome] / max(1, len(self.by))
        step, settings, by, x = step_arguments(self.common, eta, default), self.settings(late), self.by, self.features
        layer = Debiaser(outcome=self.outcome, link=link, groups=by, features=x, clip=self.clip, **step, **settings)
        return self.keyed(layer)
