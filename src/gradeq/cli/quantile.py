"""``gradeq quantile``: its options and its layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from gradeq.cli.options import (
    POSITIVE,
    POSITIVES,
    PROBABILITY,
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
    from gradeq.layers.layer import Layer
    from gradeq.layers.quantile import LinkName


quantile_options = option_group(
    column("--prediction", multiple=True, required=True, help=(
        "The forecasts to adjust: one column for all levels, or one for each --level in the same order; for "
        "--interval one, or lower and upper.")),
    row_columns,
    click.option("--level", "levels", multiple=True, type=PROBABILITY, metavar="TAU", help=(
        "The share of labels that should be at or below the served value. May be repeated.")),
    click.option("--interval", type=PROBABILITY, metavar="COVERAGE", help=(
        "Serve an interval that contains this share of labels (lower < y <= upper).")),
    click.option("--link", type=click.Choice(["sinh", "linear"]), help=(
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
    options = QuantileOptions(common=take_common(values), **values)
    from gradeq.cli.job import run_rows

    run_rows(options.task())


@dataclass(kw_only=True)
class QuantileOptions(RunOptions):
    prediction: tuple[str, ...]
    levels: tuple[str, ...]
    interval: str | None
    link: LinkName | None
    pool: bool
    ensemble: tuple[float, ...] | None
    ensemble_eta: float | None
    column_name: str | None

    def task(self) -> RunTask:
        from gradeq.cli.task import Cover, RunTask

        common, against_pooling = self.common, self._check()
        prediction, order = self.prediction, sorted(range(len(self.levels)), key=lambda k: float(self.levels[k]))
        if self.interval is not None:
            coverage = float(self.interval)
            taus: tuple[float, ...] = ((1.0 - coverage) / 2.0, (1.0 + coverage) / 2.0)
            levels = tuple(f"{tau:.6g}" for tau in taus)
            stem = "" if self.column_name is None else f"{self.column_name}_"
            new: tuple[str, ...] = (f"{stem}lower", f"{stem}upper")
        else:
            levels = tuple(self.levels[k] for k in order)
            taus = tuple(map(float, levels))
            if len(prediction) > 1:
                prediction = tuple(prediction[k] for k in order)
            stem = self.column_name or "adjusted"
            new = (stem,) if len(levels) == 1 else tuple(f"{stem}_{level}" for level in levels)
        return RunTask(
            "quantile", common, prediction, self.label, new, Cover(taus, self.interval is not None, self.support),
            lambda eta, late: self.layer(taus, eta, late), self.by, self.features, self.key, "real",
            self._link(common.eta), levels, self.interval, len(taus) > 1, self.support, self.keys_out,
            poolable=not against_pooling or (against_pooling == ["--eta"] and common.eta == "plain"),
        )  # fmt: skip

    def _check(self) -> list[str]:
        """Raise for options that do not go together; returns those that do not go with --pool."""
        common, ensemble = self.common, self.ensemble is not None
        used = {
            "--eta": common.eta is not None,
            "--decay": common.decay is not None,
            "--penalty": common.penalty is not None,
            "--by": self.by,
            "--feature": self.features,
            "--link linear": self.link == "linear",
            "--ensemble": ensemble,
        }
        against_pooling = [option for option, is_used in used.items() if is_used]
        wanted = 2 if self.interval is not None else len(self.levels)
        what = "--interval" if self.interval is not None else f"{len(self.levels)} --level"
        other_step = isinstance(common.eta, str) or common.decay is not None or common.penalty is not None
        problems = {
            "give --level (once or more) or --interval, one of the two":
                (self.interval is None) == (not self.levels),
            f"{len(self.prediction)} --prediction for {what}; give one, or {wanted} in the same order":
                len(self.prediction) not in (1, wanted),
            "a --level is given twice; give each level once":
                len(set(map(float, self.levels))) < len(self.levels),
            "--ensemble and --ensemble-eta belong together; give both or none":
                ensemble != (self.ensemble_eta is not None),
            "--ensemble tracks one level; give one --level":
                ensemble and len(self.levels) != 1,
            "--ensemble goes with a number for --eta; leave out auto, plain, --decay, --penalty":
                ensemble and other_step,
            "--ensemble has no groups or features; leave out --by and --feature":
                ensemble and (self.by or self.features),
            "--pool is about the series of --key; give --key as well":
                self.pool and self.key is None,
            f"--pool chooses its own steps and shares among keys alone; leave out {', '.join(against_pooling)}":
                self.pool and against_pooling,
        }  # fmt: skip
        for problem, occurs in problems.items():
            if occurs:
                raise click.UsageError(problem)
        return against_pooling

    def _link(self, eta: Step) -> LinkName:
        """With a final tracker, the link of an ensemble is the tracker's."""
        return self.link or ("linear" if self.ensemble is not None and eta is None else "sinh")

    def layer(self, taus: tuple[float, ...], eta: Step, late: LateOptions) -> Layer:
        from gradeq.layers import quantile

        eta = None if self.pool else eta
        link = self._link(eta)
        layer: Layer
        if self.ensemble is not None and self.ensemble_eta is not None:
            if eta is None and link != "linear":
                raise click.UsageError(
                    f"--link {link} is that of the final tracker, which --ensemble has with --eta only; "
                    "give --eta, or leave out --link"
                )
            from gradeq.layers.ensemble import QuantileEnsemble

            assert not isinstance(eta, str)
            etas = list(self.ensemble)
            layer = QuantileEnsemble(taus[0], etas, self.ensemble_eta, eta, link=link, **self.settings(late))
        else:
            default = quantile.DEFAULT_ETA if link == "sinh" and not self.features else None
            step, settings = step_arguments(self.common, eta, default, link), self.settings(late)
            by, x = self.by, self.features
            if self.interval is not None:
                coverage = float(self.interval)
                layer = quantile.IntervalTracker(coverage, link=link, groups=by, features=x, **step, **settings)
            elif len(taus) > 1:
                layer = quantile.MultiQuantileTracker(taus, link=link, groups=by, features=x, **step, **settings)
            else:
                layer = quantile.QuantileTracker(taus[0], link=link, groups=by, features=x, **step, **settings)
        return self.keyed(layer, self.pool)
