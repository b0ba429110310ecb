"""``gradeq quantile``: its options."""

from __future__ import annotations

from typing import Any

import click

from gradeq.cli.options import (
    POSITIVE,
    POSITIVES,
    PROBABILITY,
    SingleUseCommand,
    column,
    option_group,
    row_columns,
    run_options,
    take_common,
)

quantile_options = option_group(
    column("--prediction", multiple=True, required=True, help=(
        "The forecasts to adjust: one column for all levels, or one for each --level in the same order; for "
        "--interval one, or lower and upper.")),
    row_columns,
    click.option("--level", "levels", multiple=True, type=PROBABILITY, metavar="TAU", help=(
        "The share of labels that should be at or below the served value. May be repeated.")),
    click.option("--interval", type=PROBABILITY, metavar="COVERAGE", help=(
        "Serve an interval that contains this share of labels (lower < y <= upper).")),
    click.option("--link", "chosen_link", type=click.Choice(["sinh", "linear"]), help=(
        "sinh (default): steps in units of the recent error, so --eta needs no scale. linear: the paper's "
        "tracking, --eta in the unit of the labels.")),
    click.option("--pool", is_flag=True, help=(
        "Series of --key share what they learn, so that short ones gain: an overall correction beside their own. "
        "Chooses its own steps.")),
    click.option("--ensemble", type=POSITIVES, metavar="NU1,NU2,...", help=(
        "Track one level with several linear steps and mix them by their pinball loss.")),
    click.option("--ensemble-eta", type=POSITIVE, metavar="NU", help="The step of the ensemble's weights."),
    click.option("--column", "column_name", metavar="NAME", help=(
        "Name of the new column instead of adjusted; several are NAME_<level>, or NAME_lower and NAME_upper.")),
    run_options,
)  # fmt: skip


@click.command(cls=SingleUseCommand, short_help="Make quantile forecasts and intervals cover what they promise.")
@quantile_options
def command(**values: Any) -> None:
    """Make quantile forecasts and intervals cover what they promise.

    Adjusts each forecast by what it learned from earlier labels, so that over time the share of
    labels at or below the served value approaches the requested level: overall, or in each group
    of each --by column. Several levels never cross.

    --eta defaults to auto: trackers with five rates and the raw forecast are weighted by their
    loss. --eta plain is one tracker with a step of 0.1, which is the default with --key (without
    --pool), --decay or --penalty. --feature requires a number, and so does --link linear, in the
    unit of the labels. The coverage of an --ensemble is guaranteed only with --eta, the step of a
    final tracker.

    With --min and --max, served values stay inside the limits: --min 0 keeps quantiles of demand
    at 0 or above. Coverage is judged before the limits apply, since labels tied at a limit would
    push the tracker away from it. The coverage as served is shown beside it; there, the lower end
    of an interval is inclusive at a limit.

    New columns: adjusted; with several levels adjusted_<level>; with --interval lower and upper.

    \b
    Examples
      gradeq quantile prices.csv --prediction forecast --label price --level 0.9
      gradeq quantile prices.csv --prediction forecast --label price --interval 0.8 \\
          --by weekday -o covered.csv --report report.html
      gradeq quantile prices.csv --prediction low --prediction high --label price \\
          --level 0.1 --level 0.9 --json

    \b
    Exit code
      0 done   2 wrong usage or bad input   3 damaged state
    An error is one line on stderr; no output is left behind and the state is unchanged.
    """
    from gradeq.cli.job import run_rows
    from gradeq.cli.task import QuantileTask

    run_rows(QuantileTask(common=take_common(values), **values))
