"""What the server acknowledged to this client: the second ledger, kept outside the server's store."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Iterable

from gradeq.client.answers import Answer, Id

LONGEST = 100_000  # receipts of a layer that are kept; older ones only count


class Receipts:
    """The journal numbers of one layer's acknowledged events, and a tally of all answers by status."""

    def __init__(self, longest: int = LONGEST) -> None:
        self.tally: Counter[str] = Counter()
        self.numbers: OrderedDict[tuple[str, Id], int] = OrderedDict()
        self.longest = longest
        self._lock = threading.Lock()

    def take(self, kind: str, answers: Iterable[Answer]) -> None:
        """Count answers to events of a kind (``ticket`` or ``posting``); those in the journal leave a receipt."""
        with self._lock:
            for answer in answers:
                self.tally[answer.status] += 1
                if answer.seq is None or answer.id is None or not answer.stored:
                    continue
                self.numbers[kind, answer.id] = answer.seq
                if len(self.numbers) > self.longest:
                    self.numbers.popitem(last=False)

    def rows(self) -> list[tuple[str, Id, int]]:
        """Kind, id and number of each, as one moment has them."""
        with self._lock:
            return [(kind, id, seq) for (kind, id), seq in self.numbers.items()]
