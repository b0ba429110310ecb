"""Writes the help of every command into docs/command-line.md, between its markers.

    python scripts/write_help.py

A test compares the page with the commands, so run this after a change to the command line.
"""

from __future__ import annotations

import re
from pathlib import Path

import click

from gradeq.cli import COMMANDS, group

PAGE = Path(__file__).parents[1] / "docs" / "command-line.md"
WIDTH = 80  # the same on every terminal
START, STOP = "<!-- help -->", "<!-- end of help -->"


def help_of(name: str) -> str:
    """The help of one command as a terminal of the usual width shows it; without a name, that of gradeq."""
    settings = {"terminal_width": WIDTH, "help_option_names": ["-h", "--help"]}
    outer = click.Context(group, info_name="gradeq", **settings)  # type: ignore[arg-type]
    if not name:
        return group.get_help(outer)
    command = group.get_command(outer, name)
    assert command is not None
    return command.get_help(click.Context(command, parent=outer, info_name=name))


def section(name: str) -> str:
    """One command: a heading and its help."""
    heading = f"### gradeq {name}".rstrip()
    lines = "\n".join(line.rstrip() for line in help_of(name).splitlines())
    return f"{heading}\n\n```text\n{lines}\n```\n"


def written(page: str) -> str:
    """The page with the help of all commands between the markers."""
    sections = "\n".join(section(name) for name in ("", *COMMANDS))
    found = re.compile(f"{re.escape(START)}.*{re.escape(STOP)}", re.DOTALL)
    new, count = found.subn(lambda _: f"{START}\n\n{sections}\n{STOP}", page)
    if count != 1:
        raise SystemExit(f"{PAGE.name}: needs {START} and, after it, {STOP}, once each")
    return new


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
