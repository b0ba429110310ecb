"""``gradeq quantile``: the options, their help, and the layer they make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from gradeq.cli.kinds import Positive, Share
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
    from gradeq.layers.tracker import LinkName


class Rates(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """Positive numbers separated by commas."""

    name = "NU1,NU2,..."

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[float, ...]:
        """The numbers."""
        if isinstance(value, tuple):
            return value
        return tuple(Positive().convert(part, param, ctx) for part in str(value).split(","))


@click.command(
    cls=Once, short_help="Make quantile forecasts and intervals cover what they promise."
)
@column(
    "--prediction",
    multiple=True,
    required=True,
    help=(
        "The forecasts to adjust: one column for all levels, or one for each --level in the "
        "same order; for --interval one, or lower and upper."
    ),
)
@column(
    "--label",
    help=(
        "The observed outcome; may be missing. May be left out with --id and --state, where `gradeq "
        "label` brings labels later."
    ),
)
@click.option(
    "--level",
    "levels",
    multiple=True,
    type=Share(),
    metavar="TAU",
    help="The share of labels to stay at or below the served value; may be repeated.",
)
@click.option(
    "--interval",
    type=Share(),
    metavar="COVERAGE",
    help="Serve an interval that holds this share of labels (lower < y <= upper).",
)
@click.option(
    "--link",
    type=click.Choice(["sinh", "linear"]),
    help=(
        "sinh (default): steps in units of the recent error, so --eta needs no scale. linear: "
        "the paper's tracking, --eta in the unit of the labels."
    ),
)
@column("--by", multiple=True, help="A column of groups, each to be covered; may be repeated.")
@column(
    "--feature",
    "features",
    multiple=True,
    help="A numeric column that misses should not depend on; may be repeated. Needs --eta.",
)
@column(
    "--key",
    help="A column of series: each value gets its own layer. One column; join several yourself first.",
)
@click.option(
    "--pool",
    is_flag=True,
    help=(
        "Series of --key share what they learn, so that short ones gain: an overall correction "
        "beside their own. Chooses its own steps."
    ),
)
@click.option(
    "--ensemble",
    type=Rates(),
    metavar="NU1,NU2,...",
    help="Track one level with several linear steps and mix them by their pinball loss.",
)
@click.option(
    "--ensemble-eta", type=Positive(), metavar="NU", help="The step of the ensemble's weights."
)
@click.option(
    "--column",
    "column_name",
    metavar="NAME",
    help="Name of the new column instead of adjusted; several are NAME_<level>, "
    "or NAME_lower and NAME_upper.",
)
@keys_out_option
@limited
@maturing
@shared
def command(**given: Any) -> None:
    """Make quantile forecasts and intervals cover what they promise.

    Adjusts each forecast by what it learned from earlier labels, so that over time the share of
    labels at or below the served value approaches the requested level: overall, or in each group
    of each --by column. Several levels never cross.

    Without --eta, trackers of five rates and the raw forecast are mixed by their loss (auto).
    --eta plain is one tracker with a step of 0.1, and so is a step left out with --key (without
    --pool), --decay or --penalty. --feature needs a step, link linear one in the unit of the labels. An --ensemble
    without --eta ends with its weights, and its coverage is then not guaranteed; with --eta a
    final tracker of that step restores the guarantee.

    With --min and --max what is served stays inside, so that --min 0 keeps quantiles of demand at
    0 or above. Whether a label was covered is judged by the value before (labels that tie at a
    limit would drive it away); the coverage as served is shown beside it, and there the lower end
    of an interval is inclusive where it lies at a limit.

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
    shared_options = common(given)
    numpy_without_threads()
    from gradeq.cli.finish import finish
    from gradeq.cli.job import carry_out

    finish(carry_out(task_of(shared_options, **given)), shared_options)


def task_of(
    options: Common,
    prediction: tuple[str, ...],
    label: str | None,
    levels: tuple[str, ...],
    interval: str | None,
    link: LinkName | None,
    by: tuple[str, ...],
    features: tuple[str, ...],
    key: str | None,
    pool: bool,
    ensemble: tuple[float, ...] | None,
    ensemble_eta: float | None,
    column_name: str | None,
    keys_out: str | None,
    low: float | None,
    high: float | None,
) -> Any:
    """The task of a call."""
    from gradeq.cli.judge import Cover, as_levels
    from gradeq.cli.task import Task

    need_label(label, options)
    support = support_of(low, high)
    check_keys_out(options, key, keys_out)
    check(prediction, levels, interval, ensemble, ensemble_eta, options)
    if ensemble is not None and (by or features):
        raise click.UsageError("--ensemble has no groups or features; leave out --by and --feature")
    against = pooled_with(options, link, by, features, ensemble)
    if pool:
        check_pool(key, against)
    if interval is not None:
        share = float(interval)
        taus: tuple[float, ...] = ((1.0 - share) / 2.0, (1.0 + share) / 2.0)
        shown = tuple(f"{tau:.6g}" for tau in taus)
        new = ("lower", "upper") if column_name is None else tuple(
            f"{column_name}_{end}" for end in ("lower", "upper")
        )  # fmt: skip
    else:
        # Levels go up; their forecasts go with them, their columns keep the name as typed.
        order = sorted(range(len(levels)), key=lambda k: float(levels[k]))
        shown = tuple(levels[k] for k in order)
        taus = as_levels(shown)
        if len(prediction) > 1:
            prediction = tuple(prediction[k] for k in order)
        stem = column_name or "adjusted"
        new = (stem,) if len(levels) == 1 else tuple(f"{stem}_{text}" for text in shown)
    chosen = link or ("linear" if ensemble is not None and options.eta is None else "sinh")

    def make(eta: float | str | None, late: Mapping[str, Any]) -> Any:
        # With a final tracker, from --eta or from the state, the link is its own.
        own: LinkName = link or ("linear" if ensemble is not None and eta is None else "sinh")
        if ensemble is not None and eta is None and own != "linear":
            raise click.UsageError(
                f"--link {own} is that of the final tracker, which --ensemble has with --eta only; "
                "give --eta, or leave out --link"
            )
        layer = made(
            options,
            None if pool else eta,
            late,
            taus,
            interval,
            own,
            by,
            features,
            ensemble,
            ensemble_eta,
            support,
        )
        if key is None:
            return layer
        from gradeq.layers.keyed import Keyed

        return Keyed(layer, pool)

    return Task(
        "quantile", options, prediction, label, new, Cover(taus, interval is not None, support), make,
        by, features, key, "real", chosen, shown, interval, len(taus) > 1, support, keys_out,
        poolable=not against or (against == ["--eta"] and options.eta == "plain"),
    )  # fmt: skip


def made(
    options: Common,
    eta: float | str | None,
    late: Mapping[str, Any],
    taus: tuple[float, ...],
    interval: str | None,
    link: LinkName,
    by: tuple[str, ...],
    features: tuple[str, ...],
    ensemble: tuple[float, ...] | None,
    ensemble_eta: float | None,
    support: tuple[float | None, float | None] | None,
) -> Any:
    """The layer that the options ask for."""
    from gradeq.cli.steps import penalty_of, stepped
    from gradeq.layers.quantile import IntervalTracker, MultiQuantileTracker, QuantileTracker
    from gradeq.layers.tracker import DEFAULT_ETA

    common: dict[str, Any] = {
        "late_cap": None if options.no_cap else "auto",
        "in_flight": options.in_flight,
        "support": support,
        **late,
    }
    if ensemble is not None and ensemble_eta is not None:
        from gradeq.layers.ensemble import QuantileEnsemble

        assert not isinstance(eta, str)
        return QuantileEnsemble(
            taus[0], list(ensemble), ensemble_eta, final_eta=eta, link=link, **common
        )
    default = DEFAULT_ETA if link == "sinh" and not features else None
    settings: dict[str, Any] = {
        **stepped(options, eta, default),
        "link": link,
        "groups": by,
        "features": features,
        "penalty": penalty_of(options),
        **common,
    }
    if interval is not None:
        return IntervalTracker(float(interval), **settings)
    if len(taus) > 1:
        return MultiQuantileTracker(list(taus), **settings)
    return QuantileTracker(taus[0], **settings)


def pooled_with(
    options: Common,
    link: str | None,
    by: tuple[str, ...],
    features: tuple[str, ...],
    ensemble: tuple[float, ...] | None,
) -> list[str]:
    """The options given that do not go with --pool."""
    given = {
        "--eta": options.eta is not None,
        "--decay": options.decay is not None,
        "--penalty": options.penalty is not None,
        "--by": bool(by),
        "--feature": bool(features),
        "--link linear": link == "linear",
        "--ensemble": ensemble is not None,
    }
    return [name for name, there in given.items() if there]


def check_pool(key: str | None, against: list[str]) -> None:
    """Refuse options that do not go with --pool."""
    if key is None:
        raise click.UsageError("--pool is about the series of --key; give --key as well")
    if against:
        raise click.UsageError(
            f"--pool chooses its own steps and shares among keys alone; leave out {against[0]}"
        )


def check(
    prediction: tuple[str, ...],
    levels: tuple[str, ...],
    interval: str | None,
    ensemble: tuple[float, ...] | None,
    ensemble_eta: float | None,
    options: Common,
) -> None:
    """Refuse options that do not go together."""
    if (interval is None) == (not levels):
        raise click.UsageError("give --level (once or more) or --interval, one of the two")
    wanted = 2 if interval is not None else len(levels)
    if len(prediction) not in (1, wanted):
        what = "--interval" if interval is not None else f"{len(levels)} --level"
        raise click.UsageError(
            f"{len(prediction)} --prediction for {what}; give one, or {wanted} in the same order"
        )
    if len({float(text) for text in levels}) < len(levels):
        raise click.UsageError("a --level is given twice; give each level once")
    if (ensemble is None) != (ensemble_eta is None):
        raise click.UsageError("--ensemble and --ensemble-eta belong together; give both or none")
    if ensemble is not None:
        if wanted != 1 or interval is not None:
            raise click.UsageError("--ensemble tracks one level; give one --level")
        if isinstance(options.eta, str) or options.decay is not None or options.penalty is not None:
            raise click.UsageError(
                "--ensemble goes with a number for --eta; leave out auto, plain, --decay, --penalty"
            )
