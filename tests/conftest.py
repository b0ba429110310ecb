"""Fixtures and settings that all tests share."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# The same examples on every run and machine, so that a test fails always or never.
settings.register_profile(
    "gradeq",
    derandomize=True,
    deadline=None,
    max_examples=50,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("gradeq")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder with the public data sets, named by GRADEQ_DATA."""
    folder = os.environ.get("GRADEQ_DATA", "")
    if not folder or not Path(folder).is_dir():
        pytest.skip("set GRADEQ_DATA to the folder with the public data sets")
    return Path(folder)


@pytest.fixture(scope="session")
def reference_dir(data_dir: Path) -> Path:
    """The folder with the authors' numbers, beside the public data sets."""
    folder = data_dir.parent / "reference"
    if not folder.is_dir():
        pytest.skip("the folder in GRADEQ_DATA has no ../reference with the authors' numbers")
    return folder
