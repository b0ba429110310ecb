"""Commands and the engine: the numbers of what is printed, of --json, tables, states and pages."""

import pytest

from golden import families


@pytest.mark.parametrize("family", ["commands", "engine"])
def test_every_value_is_the_one_that_was_recorded(family: str) -> None:
    pytest.importorskip("matplotlib")
    families.check(family)
