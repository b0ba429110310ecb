"""``gradeq label``: posts labels that arrived later."""

from __future__ import annotations

from typing import Any

import click

from gradeq.cli.options import INPUT_FILES, SingleUseCommand, column, format_options, option_group

LABELS_UNUSED = 1  # the exit code of --strict


label_options = option_group(
    INPUT_FILES,
    click.option("--state", required=True, type=click.Path(), metavar="FILE.json", help=(
        "The state that debias, quantile or elo wrote with --id; it learns from the labels.")),
    column("--id", required=True, help="The ids that the rows were served under."),
    column("--label", required=True, help=(
        "The observed outcome; for games a's score or a word of elo --winner. Blank: not yet known.")),
    column("--label-time", help=(
        "When each label became known. Labels are learned from in this order (default: as in the file); a label "
        "that came later than the state's --ttl allows is expired.")),
    click.option("--rejected", type=click.Path(), metavar="OUT.csv", help=(
        "Write the rows whose label was not used (conflict, unknown, expired), and why.")),
    click.option("--correct", is_flag=True, help=(
        "Another label for an id that has one replaces it, instead of being a conflict.")),
    click.option("--strict", is_flag=True, help=(
        "Exit with 1 when a label was not used (conflict, unknown, expired); the others are applied.")),
    click.option("--json", "as_json", is_flag=True, help="Print the counts as one JSON object."),
    click.option("--quiet", is_flag=True, help="Print nothing."),
    format_options,
)  # fmt: skip


@click.command(cls=SingleUseCommand, short_help="Post labels that arrived later, for rows that wait in a state.")
@label_options
def command(as_json: bool, quiet: bool, strict: bool, **values: Any) -> None:
    """Post labels that arrived later, for rows that wait in a state.

    Rows that debias, quantile or elo served with --id and --state but without a label wait in the
    state. Their labels may come in any later file, in any order, under the same id. For games the
    new leaderboard is printed.

    A correction replaces the old label in bias, loss, certificate and the final step, exactly up to
    rounding. The running means of --eta auto (the default) keep what they learned from it and
    forget it gradually.

    \b
    What becomes of a label
      applied    learned from: the row had waited for it
      waiting    kept in the state until its row is mature (--maturity), or held back because
                 labels of one value seem to come earlier
      duplicate  the same label again for this id: nothing changes
      conflict   another label for an id that has one (--correct: it replaces the old one)
      unknown    no row was served under this id, or it is forgotten (the last 10,000 are kept)
      expired    the row was given up: its label came later than --ttl allows
      skipped    blank: not known yet

    \b
    Examples
      gradeq debias monday.csv --prediction score --id order --state state.json -o served.csv
      gradeq label outcomes.csv --state state.json --id order --label outcome
      gradeq label outcomes.csv --state state.json --id order --label outcome --correct --json

    \b
    Exit code
      0 the file was read, even if no label was used   1 with --strict: a label was not used
      2 wrong usage or bad input: nothing is applied   3 damaged state
    """
    from gradeq.cli.label_job import LabelTask, label_json, label_text, run_label, unused_line

    outcome = run_label(LabelTask(**values))
    if as_json:
        from gradeq.cli.summary import to_json

        click.echo(to_json(label_json(outcome)))
    elif not quiet:
        click.echo(label_text(outcome))
    line = unused_line(outcome) if strict else None
    if line is not None:
        click.echo(line, err=True)
        raise click.exceptions.Exit(LABELS_UNUSED)
