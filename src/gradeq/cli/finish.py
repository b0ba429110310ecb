"""What is printed once the outputs are in place."""

from __future__ import annotations

import click

from gradeq.cli.options import Common
from gradeq.cli.outcome import Outcome


def finish(outcome: Outcome, options: Common) -> None:
    """The JSON object, or the summary, or nothing."""
    if options.json:
        from gradeq.cli.json_summary import as_json

        click.echo(as_json(outcome))
    elif not options.quiet:
        from gradeq.cli.summary import terminal

        click.echo(terminal(outcome))
