"""Stores of both kinds for the tests of the service."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from service.desks import working_desk
from service.postgres import Cluster, cluster, missing


@pytest.fixture(scope="session")
def postgres() -> Iterator[Cluster]:
    """A private PostgreSQL cluster, one for all tests of a run."""
    if why := missing():
        pytest.skip(why)
    with cluster() as made:
        yield made


@pytest.fixture(params=["sqlite", "postgresql"])
def new_store(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], str]:
    """Makes addresses of new stores, in a file and in PostgreSQL."""
    if request.param == "postgresql":
        return request.getfixturevalue("postgres").address
    names = (str(tmp_path / f"store{k}.db") for k in range(100))
    return lambda: next(names)


@pytest.fixture
def address(new_store: Callable[[], str]) -> str:
    """The address of a new store."""
    return new_store()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[object]:
    """A desk at work on a new file; files that try every kind of store have their own."""
    with working_desk(str(tmp_path / "store.db")) as working:
        yield working
