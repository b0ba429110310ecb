"""One Spark session for all tests of a run."""

from collections.abc import Iterator
from typing import Any

import pytest

from spark.local_spark import missing, started


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    if why := missing():
        pytest.skip(why)
    session = started()
    yield session
    session.stop()
