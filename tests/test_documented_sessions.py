"""The command sessions of README.md and docs/ are run, and print what they say they print.

A ``console`` block has commands after ``$``, their further lines after ``>``, and then what they print; ``...`` in
it stands for anything. All blocks of a page share one folder, which is empty at the start, and what is exported. A
server that a page starts has its process id in the file ``pid``, and a free port instead of 8000.
"""

import doctest
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from service.processes import free_port

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FLAGS = doctest.ELLIPSIS
PORT = "8000"
HERE = shlex.quote(sys.executable)
COMMANDS = {"gradeq": f"{HERE} -m gradeq", "python": HERE}


class Call(NamedTuple):
    line: int
    command: str
    expected: str


def calls_of(page: str) -> list[Call]:
    """The commands of a page's console blocks, in order, each with what it should print."""
    found: list[tuple[int, list[str], list[str]]] = []
    inside = False
    for number, line in enumerate(page.splitlines(), 1):
        if line.startswith("```"):
            inside = not inside and line == "```console"
        elif inside and line.startswith("$ "):
            found.append((number, [line[2:]], []))
        elif inside and line.startswith("> ") and not found[-1][2]:
            found[-1][1].append(line[2:])
        elif inside:
            found[-1][2].append(line)
    return [
        Call(number, "\n".join(command), "".join(f"{line}\n" for line in expected))
        for number, command, expected in found
    ]


@contextmanager
def session(folder: Path) -> Iterator[dict[str, str]]:
    """The environment of a page: its commands are those of this Python, whatever else the machine has."""
    with tempfile.TemporaryDirectory() as beside:
        for name, command in COMMANDS.items():
            script = Path(beside, name)
            script.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
            script.chmod(0o755)
        path = f"{beside}{os.pathsep}{os.environ.get('PATH', '')}"
        try:
            yield {**os.environ, "COLUMNS": "80", "PATH": path, "KEPT": str(Path(beside, "kept"))}
        finally:
            if (pid := folder / "pid").exists():
                with suppress(ProcessLookupError):
                    os.kill(int(pid.read_text()), signal.SIGKILL)


def printed(command: str, folder: Path, environment: dict[str, str]) -> str:
    """What a command prints, on stdout and stderr together; what it exports is kept for the next."""
    done = subprocess.run(
        ["bash", "-c", f'[ -f "$KEPT" ] && . "$KEPT"\n{command}\nexport -p > "$KEPT"'],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    text = done.stdout
    return text if not text or text.endswith("\n") else text + "\n"  # a terminal shows them alike


def wrong_in(page: str, folder: Path) -> list[str]:
    """The commands that print something else than the page says."""
    check = doctest.OutputChecker().check_output
    wrong = []
    with session(folder) as environment:
        for call in calls_of(page.replace(PORT, str(free_port()))):
            got = printed(call.command, folder, environment)
            if not check(call.expected, got, FLAGS):
                wrong.append(f"line {call.line}: {call.command}\nprints\n{got}")
    return wrong


needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="sessions are run by bash")


@needs_bash
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if calls_of(page.read_text(encoding="utf-8"))],
    ids=lambda path: path.relative_to(ROOT).as_posix(),
)
def test_sessions_print_what_the_page_says(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    if "\n$ curl" in text and shutil.which("curl") is None:
        pytest.skip("the page calls curl, which is not installed here")
    wrong = wrong_in(text, tmp_path)
    assert not wrong, "\n".join(wrong)


def test_the_readme_and_the_command_line_page_have_sessions() -> None:
    for name in ("README.md", "docs/command-line.md"):
        assert calls_of((ROOT / name).read_text(encoding="utf-8")), name


@needs_bash
def test_a_wrong_output_is_found(tmp_path: Path) -> None:
    page = "```console\n$ python - <<END\n> print(1 + 1)\n> END\n{}\n```\n"
    assert not wrong_in(page.format(2), tmp_path)
    assert wrong_in(page.format(3), tmp_path)
