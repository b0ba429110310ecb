"""Every HTTP answer, and the commands on the store of a server."""

import pytest

from golden import families


def test_every_value_is_the_one_that_was_recorded() -> None:
    for name in ("httpx", "starlette", "uvicorn", "msgspec"):
        pytest.importorskip(name)
    families.check("service")
