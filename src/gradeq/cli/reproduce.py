"""``gradeq reproduce``: the figures of the paper, from data on disk."""

from __future__ import annotations

import click


@click.command(short_help="Draw the figures of the paper.")
@click.argument("figures", nargs=-1, metavar="[FIGURE]...")
@click.option("--list", "listing", is_flag=True, help="List the figures, one per line, and leave.")
@click.option(
    "--data", type=click.Path(), metavar="DIR", help="The folder of data sets [GRADEQ_DATA]."
)
@click.option(
    "-o",
    "--output",
    type=click.Path(),
    default="figures",
    show_default=True,
    metavar="DIR",
    help="The folder to write to.",
)
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def command(
    figures: tuple[str, ...], listing: bool, data: str | None, output: str, quiet: bool
) -> None:
    """Draw the figures of the paper, corrected where the printed ones are wrong.

    Without FIGURE: all figures whose data are available; skipped ones are listed with the reason. Writes
    PNG, SVG and PDF, a CSV of every plotted series, and one page with all figures and captions.

    \b
    Examples
      gradeq reproduce --list
    """
    from gradeq import experiments

    if listing:
        lines = experiments.listing()
        width = max((len(name) for name, _ in lines), default=0)
        for name, title in lines:
            click.echo(f"{name:<{width}}  {title}")
        return

    def say(line: str) -> None:
        if not quiet:
            click.echo(line)

    experiments.reproduce(figures, data, output, say)
