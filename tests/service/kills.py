"""A server killed at any moment under load: nothing acknowledged is lost, nothing is doubled, the books balance.

    python -m service.kills [--kills N] [--seed S]

Clients send predictions, labels, duplicates and corrections, and repeat what is not answered under the same id until
it is. So in the end the journal must hold what was acknowledged, each event once, and nothing else: the clients' own
record is a second ledger, which a server that loses or doubles cannot talk its way out of.
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

from gradeq.client import Client, Patience
from gradeq.errors import GradeqError
from service.kept import Told, wrong_in
from service.postgres import cluster, missing
from service.processes import Nursery, Server
from service.workers import Said, Worker

PATIENCE = Patience(seconds=20.0, first=0.01, longest=0.1)
WORKERS = 3  # on each layer
ROUND = 20  # kills on one store
LOOKED = 1.5  # seconds after which a server has seen what others wrote
LAYERS: dict[str, dict[str, Any]] = {
    "stored": {"eta": 0.05, "groups": ["worker"]},
    "signed": {"eta": 0.05, "tickets": "signed"},
}


class Load:
    """Workers on every layer, spread over all servers of a store."""

    def __init__(self, servers: Sequence[Server], seed: int, kind: type[Worker], patience: Patience) -> None:
        self.clients = [Client(own.url, own.key, timeout=5.0, patience=patience) for own in servers]
        for layer, settings in LAYERS.items():
            self.clients[0].create(layer, **settings)
        self.workers = [
            kind(self.clients[number % len(servers)], layer, number, seed)
            for number in range(WORKERS)
            for layer in LAYERS
        ]
        self.told: list[Told] = []
        for worker in self.workers:
            worker.start()

    def stop(self) -> list[str]:
        """Let every worker finish what it began; what went wrong with any."""
        for worker in self.workers:
            worker.ended.set()
        for worker in self.workers:
            worker.join()
        return [worker.failure for worker in self.workers if worker.failure]

    def ask(self) -> list[str]:
        """Let the servers audit the receipts and tell their states; what they say is wrong."""
        wrong = []
        time.sleep(LOOKED if len(self.clients) > 1 else 0.0)
        for client in self.clients:
            for layer in LAYERS:
                try:
                    audit = client.audit(layer)
                    wrong += [] if audit.ok else [f"{layer}: {audit}"]
                    told = Told(layer, client.state(layer), client.equilibrium(layer))
                    self.told.append(told)
                except GradeqError as error:
                    wrong.append(f"{layer}: {error}")
            client.close()
        return wrong

    def said(self) -> dict[str, list[Said]]:
        """All that was acknowledged on each layer."""
        found: dict[str, list[Said]] = {layer: [] for layer in LAYERS}
        for worker in self.workers:
            found[worker.layer] += worker.said
        return found


class Result(NamedTuple):
    """What a run of kills found."""

    kills: int
    acknowledged: int
    duplicates: int
    seconds: float
    wrong: list[str]


def killed(
    servers: Sequence[Server],
    kills: int,
    seed: int,
    kind: type[Worker] = Worker,
    wait: float = 0.2,
    patience: Patience = PATIENCE,
) -> Result:
    """Kill and restart servers of one store so many times under load, then look at what it holds."""
    rng, began = random.Random(seed), time.monotonic()
    try:
        for server in servers:
            server.start()
        load = Load(servers, seed, kind, patience)
        try:
            for _ in range(kills):
                time.sleep(rng.uniform(0.0, wait))
                server = rng.choice(servers)
                server.kill()
                server.start()
            time.sleep(wait)
        finally:
            wrong = load.stop()
        wrong += load.ask()
    finally:
        for server in servers:
            server.kill()  # what was acknowledged needs no graceful end
    wrong += wrong_in(servers[0].address, said := load.said(), load.told)
    all = [one for own in said.values() for one in own]
    doubles = sum(one.answer.status == "duplicate" for one in all)
    return Result(kills, len(all), doubles, time.monotonic() - began, wrong)


class Case(NamedTuple):
    """A kind of store, how many servers it has, and what is done to them before they start."""

    name: str
    servers: int = 1
    fault: str = ""


SQLITE = (Case("SQLite"), Case("SQLite, slow answers", fault="slow_answers"))
POSTGRES = (
    Case("PostgreSQL"),
    Case("PostgreSQL, slow answers", fault="slow_answers"),
    Case("PostgreSQL, two servers", servers=2),
)


def rounds(nursery: Nursery, case: Case, kills: int, seed: int, new: Callable[[], str]) -> Result:
    """So many kills on new stores in turn: a server audits its journal when it starts, so journals stay short."""
    found = Result(0, 0, 0, 0.0, [])
    while found.kills < kills:
        address = new()
        servers = [Server(nursery, address, case.fault) for _ in range(case.servers)]
        own = killed(servers, min(ROUND, kills - found.kills), seed + found.kills)
        found = Result(*(one + other for one, other in zip(found, own, strict=True)))
    return found


def main() -> int:
    """make test-faults: kills on both stores, answers quick and slow, and two servers on one database."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="on each kind of store")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    with ExitStack() as held:
        nursery = held.enter_context(Nursery())
        folder = Path(held.enter_context(tempfile.TemporaryDirectory()))
        files = (str(folder / f"{number}.db") for number in count())
        new: dict[Case, Callable[[], str]] = {case: lambda: next(files) for case in SQLITE}
        if why := missing():
            print(f"PostgreSQL is left out: {why}")
        else:
            new |= dict.fromkeys(POSTGRES, held.enter_context(cluster()).address)
        broken = 0
        for case, made in new.items():
            found = rounds(nursery, case, given.kills // 2, given.seed, made)
            broken += len(found.wrong)
            print(
                f"{case.name}: {found.kills} kills, {found.acknowledged:,} acknowledged "
                f"({found.duplicates:,} as duplicates), {len(found.wrong)} wrong, {found.seconds:.0f} s",
                *found.wrong[:5], sep="\n  ", flush=True,
            )  # fmt: skip
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
