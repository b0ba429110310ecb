"""``gradeq reproduce``: the figures of the paper, from data on disk."""

from __future__ import annotations

import click

from gradeq.cli.options import output_folder


@click.command(short_help="Draw the figures of the paper.")
@click.argument("figures", nargs=-1, metavar="[FIGURE]...")
@click.option("--list", "listing", is_flag=True, help="List the figures, one per line, and leave.")
@click.option("--data", type=click.Path(), metavar="DIR", help="The folder of data sets [GRADEQ_DATA].")
@output_folder(default="figures")
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def command(figures: tuple[str, ...], listing: bool, data: str | None, output: str, quiet: bool) -> None:
    """Draw the figures of the paper, corrected where the printed ones are wrong.

    FIGURE is a name of --list or the number of a figure. Without any: all figures whose data are available;
    skipped ones are listed with the reason. Writes PNG, SVG and PDF, a CSV of every plotted series, and one page
    with all figures and captions, linked to the bounds and to the errata of the paper.

    Data sets come from --data; without it from GRADEQ_DATA, the cache, or a download where one is known. Two
    that the paper uses you must bring yourself: with admissions, patients, diagnoses_icd and procedures_icd of
    MIMIC-IV (.csv or .csv.gz) in the folder, figures 1, 13 and 16 show hospital stays, else flights; with
    clean_battle_20240826_public.json figures 2, 9, 17 and 18 show the paper's Chatbot Arena battles, else a later
    release and football. Captions name what was used.

    \b
    Examples
      gradeq reproduce --list
      gradeq reproduce 10 --data datasets -o figures
    """
    from gradeq import paper

    if listing:
        lines = paper.listing()
        width = max((len(name) for name, _ in lines), default=0)
        for name, title in lines:
            click.echo(f"{name:<{width}}  {title}")
        return

    def say(line: str) -> None:
        if not quiet:
            click.echo(line)

    paper.reproduce(figures, data, output, say)
