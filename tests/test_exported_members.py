"""What `from gradeq import ...` offers."""

import subprocess
import sys

import gradeq


def test_exported_names_are_sorted_and_unique() -> None:
    names = list(gradeq.__all__)
    assert names == sorted(set(names))


def test_every_exported_name_exists() -> None:
    missing = [name for name in gradeq.__all__ if not hasattr(gradeq, name)]
    assert not missing


def test_modules_that_the_pages_name_are_there_after_a_plain_import() -> None:
    call = "import gradeq; gradeq.errors.LabelConflict, gradeq.losses.Squared"
    subprocess.run([sys.executable, "-c", call], check=True)


def test_exported_names_are_listed_by_dir() -> None:
    assert set(gradeq.__all__) <= set(dir(gradeq))


def test_the_version_has_one_source() -> None:
    from gradeq._version import __version__

    assert gradeq.__version__ == __version__
