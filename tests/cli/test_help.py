"""Help that is true: its examples run; the start is light; shells can complete."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from cli.calling import games, gradeq, here, ok, prices, refused, scores, write
from gradeq import __version__
from gradeq.cli import COMMANDS

RUN = ("debias", "quantile", "elo", "audit", "completion")


def examples(command: str) -> list[str]:
    """The commands under Examples in a command's help."""
    text = ok(here(command, "--help")).out.replace("\\\n", " ")
    part = text.split("Examples\n")[1].split("\n\n")[0]
    return [" ".join(line.split()) for line in part.splitlines() if "gradeq" in line]


def test_every_command_explains_itself_in_the_width_of_a_terminal(tmp_path):
    listed = ok(gradeq("--help", cwd=tmp_path)).out
    for command, line in COMMANDS.items():
        assert command in listed and line in listed
        text = ok(here(command, "-h")).out
        assert text.startswith(f"Usage: gradeq {command}")
        assert max(map(len, text.splitlines())) <= 100
    assert ok(gradeq("--version", cwd=tmp_path)).out == f"gradeq {__version__}\n"


def test_the_command_alone_prints_its_help(tmp_path):
    assert ok(gradeq(cwd=tmp_path)).out == ok(gradeq("--help", cwd=tmp_path)).out


@pytest.mark.parametrize("command", RUN)
def test_the_examples_of_the_help_run(command, tmp_path):
    rows = scores(200)
    for row in rows:
        row["known"] = row["known"] or 200
        row["outcome"] = row["outcome"] if row["outcome"] != "" else 0
    write(tmp_path / "scores.csv", rows)
    write(tmp_path / "prices.csv", prices(200))
    write(tmp_path / "games.csv", games(200))
    later = [{**row, "game": i, "day": 200} for i, row in enumerate(games(5))]
    write(tmp_path / "fixtures.csv", later)
    settings = ("--prediction", "score", "--label", "outcome")
    if command == "audit":
        ok(here("debias", tmp_path / "scores.csv", *settings, "--state", tmp_path / "state.json"))
    found = examples(command)
    assert found
    for line in found:
        words = shlex.split(line)
        stdin = None
        if words[0] == "cat":
            stdin = (tmp_path / words[1]).read_text()
            words = words[3:]
        assert words[0] == "gradeq"
        ok(gradeq(*words[1:], cwd=tmp_path, stdin=stdin))


def test_help_loads_neither_numpy_nor_arrow(tmp_path):
    code = (
        "import sys; from gradeq.cli import run\n"
        "for args in (['--help'], ['debias', '--help'], ['elo', '--help'], ['--version']):\n"
        "    assert run(args) == 0\n"
        "heavy = {'numpy', 'pyarrow', 'numba', 'pandas', 'rich'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, capture_output=True)


def test_a_short_file_starts_no_compiler_and_loads_no_dataframe_library(tmp_path: Path):
    write(tmp_path / "scores.csv", scores(5000))
    code = (
        "import sys; from gradeq.cli import run\n"
        "call = 'debias scores.csv --prediction score --label outcome --by sex -o o.csv --json'\n"
        "assert run(call.split()) == 0\n"
        "heavy = {'numba', 'llvmlite', 'pandas', 'scipy', 'rich', 'sklearn'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path, capture_output=True)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_get_a_script(shell):
    assert "_GRADEQ_COMPLETE" in ok(here("completion", shell)).out


def test_completion_knows_the_columns_of_the_file(tmp_path):
    write(tmp_path / "scores.csv", scores(3))
    done = gradeq(
        cwd=tmp_path,
        _GRADEQ_COMPLETE="bash_complete",
        COMP_WORDS="gradeq debias scores.csv --prediction sc",
        COMP_CWORD="4",
    )
    assert re.search(r"plain,score$", done.out.strip(), re.MULTILINE)


def test_a_fault_of_our_own_is_one_line_too(tmp_path, monkeypatch):
    from gradeq.cli import job

    file = write(tmp_path / "scores.csv", scores(20))
    monkeypatch.setattr(job, "run_outcome", lambda *given: 1 / 0)
    line = refused(here("debias", file, "--prediction", "score", "--label", "outcome"), 1)
    assert "ZeroDivisionError" in line and "GRADEQ_DEBUG=1" in line
