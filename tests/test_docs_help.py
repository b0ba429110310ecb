"""The command-line page shows the real help of every command."""

from pathlib import Path

import pytest

from gradeq.cli import COMMANDS

write_help = pytest.importorskip("scripts.write_help", reason="scripts/ is not at hand")

PAGE: Path = write_help.PAGE
TEXT = PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_the_page_shows_the_help_of_each_command_as_it_is(name: str) -> None:
    assert write_help.section(name) in TEXT, "run python scripts/write_help.py"


def test_the_page_is_what_the_script_writes() -> None:
    assert write_help.written(TEXT) == TEXT, "run python scripts/write_help.py"


def test_a_page_that_differs_is_found() -> None:
    changed = TEXT.replace("--prediction COL", "--forecast COL", 1)
    assert write_help.written(changed) != changed


def test_a_page_without_markers_is_refused() -> None:
    with pytest.raises(SystemExit, match="once each"):
        write_help.written("no markers")
