"""Kills under load on both stores, and the faults that the harness must catch."""

from collections.abc import Iterator
from copy import copy
from typing import Any

import pytest

from gradeq.client import Patience, Unreachable
from gradeq.client.verbs import ClientSession
from gradeq.service.store.journal_store import TICKET
from service.kills import Result, killed
from service.processes import Nursery, Server
from service.workers import Worker

SHORT = Patience(seconds=2.0, first=0.01, longest=0.1)  # a broken server may never answer


def held(result: Result) -> bool:
    assert result.wrong == [], "\n".join(result.wrong[:20])
    return result.acknowledged > 5 * result.kills


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as made:
        yield made


def test_kills_lose_nothing_and_double_nothing(nursery: Nursery, address: str) -> None:
    kills = 8 if address.startswith("postgres") else 22
    assert held(killed([Server(nursery, address)], kills, seed=1))


def test_two_servers_on_one_database_are_killed_in_turn(nursery: Nursery, postgres: Any) -> None:
    address = postgres.address()
    servers = [Server(nursery, address), Server(nursery, address, "slow_answers")]
    assert held(killed(servers, kills=6, seed=2))


@pytest.mark.parametrize("fault", ["early", "two_transactions"])
def test_a_server_that_acknowledges_too_early_or_splits_is_caught(nursery: Nursery, fault: str, address: str) -> None:
    server = Server(nursery, address, fault)
    assert killed([server], kills=4, seed=3, patience=SHORT).wrong


def test_servers_that_do_not_look_at_each_other_are_caught(nursery: Nursery, address: str) -> None:
    servers = [Server(nursery, address, "cached") for _ in range(2)]
    assert any("sums" in line for line in killed(servers, kills=0, seed=4, wait=0.5).wrong)


class Forgetful(Worker):
    """A client that gives an event another id at every attempt."""

    def serve(self) -> None:
        _, value = self.new()
        once = copy(self.client)
        once._session = ClientSession(Patience(0.0))
        while not self.ended.is_set():
            id, _ = self.new()
            try:
                answer = once.predict(self.layer, value, id=id, groups=self.groups)
            except Unreachable:
                continue
            return self.note(TICKET, id, value, answer)

    serve_many = serve


def test_a_retry_with_a_new_id_is_caught(nursery: Nursery, address: str) -> None:
    server = Server(nursery, address, "slower_answers")
    for seed in range(5, 10):  # whether an answer is on its way when the server dies is a matter of luck
        wrong = killed([server], kills=7, seed=seed, kind=Forgetful).wrong
        if any("nobody was told of" in line for line in wrong):
            return
    raise AssertionError("no event of two ids was caught")
