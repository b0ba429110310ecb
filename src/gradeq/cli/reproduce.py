"""``gradeq reproduce``: the figures of the paper, from data on disk."""

from __future__ import annotations

import difflib
from importlib import import_module
from typing import Any

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

    Without FIGURE: all whose data are at hand; what is skipped is said, with the reason. Writes
    PNG and SVG, a CSV of every plotted series, and one page with all figures and captions.

    \b
    Examples
      gradeq reproduce --list
    """
    experiments: Any = import_module("gradeq.experiments")
    from gradeq.errors import BadInput

    known = dict(experiments.listing())
    if listing:
        width = max((len(name) for name in known), default=0)
        for name, title in known.items():
            click.echo(f"{name:<{width}}  {title}")
        return
    for name in figures:
        if name not in known:
            near = difflib.get_close_matches(name, list(known), n=1)
            hint = f"did you mean {near[0]!r}?" if near else "gradeq reproduce --list names them"
            raise BadInput(f"there is no figure {name!r}; {hint}")

    def say(line: str) -> None:
        if not quiet:
            click.echo(line)

    experiments.reproduce(list(figures) or list(known), data, output, say)
