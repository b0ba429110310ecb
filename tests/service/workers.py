"""Clients that send events to a server which may be killed, and note every acknowledgement."""

import random
import threading
from typing import Any, NamedTuple

from gradeq.client import Answer, Client
from gradeq.service.schemas import ACCEPTED
from gradeq.service.store.journal_store import CORRECTION, POSTING, TICKET


class Said(NamedTuple):
    """One acknowledgement: what was sent under which id, and what the server answered."""

    kind: int
    id: Any
    value: float
    answer: Answer


class Worker(threading.Thread):
    """A client that sends events to one layer until it is told to stop, and notes every acknowledgement."""

    def __init__(self, client: Client, layer: str, number: int, seed: int) -> None:
        super().__init__()
        self.client, self.layer, self.number = client, layer, number
        self.rng = random.Random(f"{seed} {number} {layer}")
        self.said: list[Said] = []
        self.waiting: dict[str, float] = {}  # predictions that have no label yet
        self.tickets: dict[str, str | None] = {}
        self.labelled: dict[str, float] = {}
        self.made = 0
        self.failure = ""
        self.ended = threading.Event()

    def run(self) -> None:
        acts = (self.serve, self.serve_many, self.label, self.label_many, self.again, self.correct)
        try:
            while not self.ended.is_set():
                self.rng.choices(acts, weights=(6, 3, 6, 3, 2, 2))[0]()
        except Exception as error:
            self.failure = f"{type(error).__name__}: {error}"

    def new(self) -> tuple[str, float]:
        """An id and a value that no other event has."""
        self.made += 1
        return f"{self.number}-{self.made}", self.made % 1000 + self.number / 16 + self.made / 2**20

    def note(self, kind: int, id: str, value: float, answer: Answer) -> None:
        if answer.id != id or answer.status not in ACCEPTED or not answer.stored:
            raise AssertionError(f"{kind} {id} {value}: {answer}")
        self.said.append(Said(kind, id, value, answer))
        if kind == TICKET:
            self.tickets[id] = answer.ticket
            if id not in self.labelled:
                self.waiting[id] = value
        else:
            self.waiting.pop(id, None)
            self.labelled[id] = value

    @property
    def groups(self) -> dict[str, int] | None:
        return {"worker": self.number % 3} if self.layer == "stored" else None

    def serve(self) -> None:
        id, value = self.new()
        answer = self.client.predict(self.layer, value, id=id, groups=self.groups)
        self.note(TICKET, id, value, answer)

    def serve_many(self) -> None:
        ids, values = zip(*[self.new() for _ in range(self.rng.randrange(1, 20))], strict=True)
        groups = {"worker": [self.number % 3] * len(ids)} if self.layer == "stored" else None
        answers = self.client.predict_many(self.layer, values, ids=ids, groups=groups)
        for id, value, answer in zip(ids, values, answers, strict=True):
            self.note(TICKET, id, value, answer)

    def sent_back(self, id: str) -> dict[str, Any]:
        ticket = self.tickets[id]
        return {"id": id} if ticket is None else {"ticket": ticket}

    def label(self) -> None:
        if self.waiting:
            id = self.rng.choice(list(self.waiting))
            y = self.truth(self.waiting[id])
            self.note(POSTING, id, y, self.client.label(self.layer, y, **self.sent_back(id)))

    def label_many(self) -> None:
        ids = self.rng.sample(list(self.waiting), min(len(self.waiting), self.rng.randrange(1, 20)))
        if not ids:
            return
        values = [self.truth(self.waiting[id]) for id in ids]
        signed = {"tickets": [self.tickets[id] for id in ids]}
        given = signed if self.tickets[ids[0]] is not None else {"ids": ids}
        answers = self.client.label_many(self.layer, values, **given)
        for id, value, answer in zip(ids, values, answers, strict=True):
            self.note(POSTING, id, value, answer)

    def truth(self, value: float) -> float:
        return value + self.rng.randrange(-64, 96) / 16

    def again(self) -> None:
        """An event that was acknowledged before, sent once more."""
        old = self.rng.choice(self.said) if self.said else None
        if old is None or old.kind == CORRECTION:
            return
        if old.kind == POSTING and self.labelled[old.id] == old.value:
            sent = self.sent_back(old.id)
            self.note(POSTING, old.id, old.value, self.client.label(self.layer, old.value, **sent))
        elif old.kind == TICKET and self.layer == "stored":
            answer = self.client.predict(self.layer, old.value, id=old.id, groups=self.groups)
            self.note(TICKET, old.id, old.value, answer)

    def correct(self) -> None:
        if self.labelled:
            id = self.rng.choice(list(self.labelled))
            y = self.labelled[id] + 1 / 128  # never said before of this id
            self.note(CORRECTION, id, y, self.client.correct(self.layer, y, id=id))
