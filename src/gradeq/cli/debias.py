"""``gradeq debias``: the options, their help, and the layer they make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from gradeq.cli.light import numpy_without_threads
from gradeq.cli.options import (
    Common,
    Once,
    check_keys_out,
    column,
    common,
    keys_out_option,
    limited,
    maturing,
    need_label,
    shared,
    support_of,
)

if TYPE_CHECKING:
    from gradeq.layers.debiaser import LinkName, Outcome


@click.command(cls=Once, short_help="Remove the bias of predictions, overall and in every group.")
@column("--prediction", required=True, help="The predictions to adjust.")
@column(
    "--label",
    help=(
        "The observed outcome; a row without one (blank, NA, N/A, NaN, null, none) is served but not learned from. "
        "May be left out "
        "with --id and --state, where `gradeq label` brings labels later."
    ),
)
@click.option(
    "--outcome",
    type=click.Choice(["real", "binary"]),
    default="real",
    show_default=True,
    help=("Numbers (squared error), or probabilities and labels in [0, 1]."),
)
@click.option(
    "--link",
    type=click.Choice(["identity", "shift", "logit", "exp"]),
    help=(
        "How the correction enters. real: identity (default), or exp for positive "
        "predictions. binary: logit (default, stays in [0, 1]), or the paper's shift."
    ),
)
@column(
    "--by",
    multiple=True,
    help=("A column of groups, each to be unbiased; may be repeated, groups may overlap."),
)
@column(
    "--feature",
    "features",
    multiple=True,
    help=("A numeric column that the error should not depend on; may be repeated. Needs --eta."),
)
@column(
    "--key",
    help="A column of series: each value gets its own layer. One column; join several yourself first.",
)
@click.option(
    "--clip",
    type=click.FloatRange(0.0, 0.5, min_open=True, max_open=True),
    default=1e-6,
    metavar="EPS",
    show_default=True,
    help="link logit: predictions are kept within [EPS, 1 - EPS], which alone can add -log(1 - EPS)"
    " to the log loss (0.105 for 0.1).",
)
@click.option(
    "--column",
    "column_name",
    default="adjusted",
    metavar="NAME",
    show_default=True,
    help="Name of the new column.",
)
@keys_out_option
@limited
@maturing
@shared
def command(**given: Any) -> None:
    """Remove the bias of predictions, overall and in every group.

    Serves each prediction with a correction learned from earlier labels, so that the mean served
    value approaches the mean label: over all rows, or in each group of each --by column. Where
    the summary prints a bound, the average beside it is at most that, whatever the data.

    Without --eta, running means of the known errors (overall and by group) and the raw prediction
    are mixed by their loss (auto): it follows drift, also with late labels, and needs about 500
    labels to pay off. --eta plain is one step of 0.01 (binary: 0.03) divided by the number of
    --by columns; with labels known before the next row it can raise the squared error by at most
    1.02 % (binary with link logit: the log loss of 0/1 labels by at most 0.62 % of that of the
    clipped prediction; see --clip), whatever the data. A step left out is plain with --key,
    --decay, --penalty or --link shift or exp, and required with --feature.

    With --min and --max what is served stays inside and is judged there: bias, certificate and
    bound are about the values as served.

    FILE is .csv, .csv.gz or .parquet, several of one kind, or - for CSV on stdin. Cells are
    copied unchanged; files larger than memory are streamed.

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
    shared_options = common(given)
    numpy_without_threads()
    from gradeq.cli.finish import finish
    from gradeq.cli.job import carry_out

    finish(carry_out(task_of(shared_options, **given)), shared_options)


def task_of(
    options: Common,
    prediction: str,
    label: str | None,
    outcome: Outcome,
    link: LinkName | None,
    by: tuple[str, ...],
    features: tuple[str, ...],
    key: str | None,
    clip: float,
    column_name: str,
    keys_out: str | None,
    low: float | None,
    high: float | None,
) -> Any:
    """The task of a call."""
    from gradeq.cli.judge import Bias
    from gradeq.cli.task import Task

    support = support_of(low, high)
    check_keys_out(options, key, keys_out)
    if support is not None and link == "exp":
        raise click.UsageError(
            "--min and --max do not go with --link exp, which stays above 0 by itself; "
            "leave them out, or use --link identity"
        )
    need_label(label, options)
    chosen: LinkName = link or ("identity" if outcome == "real" else "logit")

    def make(eta: float | str | None, late: Mapping[str, Any]) -> Any:
        from gradeq.cli.steps import penalty_of, stepped
        from gradeq.layers.debiaser import DEFAULT_ETA, Debiaser

        default = None if features else DEFAULT_ETA[outcome] / max(1, len(by))
        layer = Debiaser(
            **stepped(options, eta, default),
            outcome=outcome,
            link=chosen,
            groups=by,
            features=features,
            penalty=penalty_of(options),
            late_cap=None if options.no_cap else "auto",
            in_flight=options.in_flight,
            **late,
            clip=clip,
            support=support,
        )
        if key is None:
            return layer
        from gradeq.layers.keyed import Keyed

        return Keyed(layer)

    return Task(
        "debias", options, (prediction,), label, (column_name,), Bias(outcome == "binary"), make,
        by, features, key, outcome, chosen, support=support, keys_out=keys_out,
    )  # fmt: skip
