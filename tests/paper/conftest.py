"""One source and one run of each experiment for the whole session."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gradeq.paper import Result, experiments
from gradeq.paper.experiment import Source


@pytest.fixture(scope="session")
def source(data_dir: Path) -> Source:
    return Source(data_dir)


@pytest.fixture(scope="session")
def found(source: Source) -> Callable[[str], Result]:
    """The result of an experiment by name; each runs once."""
    done: dict[str, Result] = {}

    def run(name: str) -> Result:
        if name not in done:
            done[name] = experiments()[name].run(source)
        return done[name]

    return run
