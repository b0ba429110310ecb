"""Tables and streams through Spark; skipped where there is no Java."""

import pytest

from golden import families
from spark.local_spark import missing


def test_every_value_is_the_one_that_was_recorded() -> None:
    if why := missing():
        pytest.skip(why)
    families.check("spark")
