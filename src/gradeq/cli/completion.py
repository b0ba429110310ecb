"""``gradeq completion``: shell completion of commands, options and columns."""

from __future__ import annotations

import click


@click.command(short_help="Print the script that completes gradeq in your shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the script that completes gradeq in your shell.

    Commands, options, files and, once a file is on the line, the names of its columns.

    \b
    Examples
      gradeq completion bash
      gradeq completion zsh
      gradeq completion fish

    \b
    To have it in every new shell
      bash  gradeq completion bash >> ~/.bashrc
      zsh   gradeq completion zsh >> ~/.zshrc
      fish  gradeq completion fish > ~/.config/fish/completions/gradeq.fish
    """
    from click.shell_completion import get_completion_class

    from gradeq.cli import group

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(group, {}, "gradeq", "_GRADEQ_COMPLETE").source())
