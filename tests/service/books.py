"""Journals to put into stores: a library layer at work, its tickets and postings as rows."""

import random
from collections.abc import Iterator, Sequence
from typing import Any

from gradeq.layers.debiaser import Debiaser
from gradeq.ledger.exact import add
from gradeq.service.schemas import encode_entry
from gradeq.service.store.journal_store import CORRECTION, POSTING, REVERSAL, TICKET, Entry, Head, Store

SPEC = {"kind": "debias", "groups": ["g"], "eta": 0.1}


def at_work(seed: int, rows: int) -> Iterator[tuple[int, str, float, Any]]:
    """What a layer does with late labels and corrections: kind, id, time, ticket or posting."""
    rng = random.Random(seed)
    layer = Debiaser(groups=["g"], eta=0.1)
    waiting, done = [], []
    for k in range(rows):
        id, at = f'"{k}"', float(k)
        ticket = layer.open(rng.gauss(0.0, 10.0), groups={"g": rng.choice("abc")})
        yield TICKET, id, at, ticket
        waiting.append((id, ticket))
        if rng.random() < 0.8:
            id, ticket = waiting.pop(rng.randrange(len(waiting)))
            done.append((id, layer.post(ticket, rng.gauss(1.0, 10.0))))
            yield POSTING, id, at, done[-1][1]
        if done and rng.random() < 0.1:
            place = rng.randrange(len(done))
            id, (old, new) = done[place][0], layer.repost(done[place][1], rng.gauss(0.0, 1.0))
            done[place] = (id, new)
            yield REVERSAL, id, at, old
            yield CORRECTION, id, at, new


def journal(seed: int, rows: int) -> list[tuple[Entry, Any]]:
    """The same as rows of a journal, each with the ticket or posting that it holds."""
    return [
        (Entry(1 + k, kind, id, at, 7, b"sent", encode_entry(value)), value)
        for k, (kind, id, at, value) in enumerate(at_work(seed, rows))
    ]


def append(store: Store, number: int, rows: Sequence[tuple[Entry, Any]]) -> Head:
    """Write rows of a journal with the sums that they change, in one transaction."""
    with store.write() as tx:
        head, sums = tx.head(number), store.sums(number)
        changed = [one for entry, own in rows if entry.kind != TICKET for one in add(sums, own)]
        return tx.append(number, head, [entry for entry, _ in rows], {name: sums[name] for name in changed})
