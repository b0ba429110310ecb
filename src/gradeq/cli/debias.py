"""``gradeq debias``: its options."""

from __future__ import annotations

from typing import Any

import click

from gradeq.cli.options import SingleUseCommand, Within, column, option_group, row_columns, run_options, take_common

debias_options = option_group(
    column("--prediction", required=True, help="The predictions to adjust."),
    row_columns,
    click.option("--outcome", type=click.Choice(["real", "binary"]), default="real", show_default=True, help=(
        "Numbers (squared error), or probabilities and labels in [0, 1].")),
    click.option("--link", "chosen_link", type=click.Choice(["identity", "shift", "logit", "exp"]), help=(
        "How the correction enters. real: identity (default), or exp for positive predictions. binary: logit "
        "(default, stays in [0, 1]), or the paper's shift.")),
    click.option("--clip", type=Within(0.0, 0.5, min_open=True, max_open=True), default=1e-6,
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
    from gradeq.cli.job import run_rows
    from gradeq.cli.task import DebiasTask

    common, prediction = take_common(values), (values.pop("prediction"),)
    run_rows(DebiasTask(common=common, prediction=prediction, **values))
