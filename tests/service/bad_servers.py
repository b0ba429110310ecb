"""Faults that the kill harness must catch, put into a server before it starts."""

import time
from concurrent.futures import Future
from typing import Any

from gradeq.service.desk import Desk
from gradeq.service.runtime import LayerRuntime
from gradeq.service.store.journal_store import StoreWriter
from gradeq.service.store.sqlite import Sqlite

WINDOW = 0.05  # seconds in which a kill does harm: most of the time, so that a few kills are enough


def early() -> None:
    """Answers are given before the commit."""
    put = Desk._enqueue

    def eager(self: Desk, key: Any, do: Any, *given: Any) -> Any:
        told: Future[Any] = Future()

        def done(page: Any) -> Any:
            result = do(page)
            told.set_result(result)
            time.sleep(WINDOW)
            return result

        put(self, key, done, *given)
        return told

    Desk._enqueue = eager  # type: ignore[method-assign]


def two_transactions() -> None:
    """The rows of the journal are committed first, sums and head after them."""
    append = StoreWriter.append

    def split(self: StoreWriter, *given: Any) -> Any:
        own = self.connection

        class Split:
            def executemany(self, sql: str, rows: Any) -> None:
                own.executemany(sql, rows)
                if "INTO journal" in sql:
                    own.execute("COMMIT")
                    time.sleep(WINDOW)
                    own.execute("BEGIN")

            def execute(self, *call: Any) -> Any:
                return own.execute(*call)

        self.connection = Split()
        return append(self, *given)

    StoreWriter.append = split  # type: ignore[method-assign]


def cached() -> None:
    """Nobody looks at what other servers wrote, and nobody is kept from writing beside them."""

    def believed(self: LayerRuntime, entries: Any) -> None:
        for entry in entries:
            self.head = self.head._replace(seq=entry.seq)

    LayerRuntime.catch_up = believed  # type: ignore[method-assign]
    Sqlite.shared = True


def slow_answers(seconds: float = 0.01) -> None:
    """No fault: answers wait a little after the commit, so that many are lost when the server is killed."""
    commit = Desk._commit

    def slow(self: Desk, *given: Any) -> Any:
        done = commit(self, *given)
        time.sleep(seconds)
        return done

    Desk._commit = slow  # type: ignore[method-assign]


FAULTS = {
    "": lambda: None,
    "early": early,
    "two_transactions": two_transactions,
    "cached": cached,
    "slow_answers": slow_answers,
    "slower_answers": lambda: slow_answers(WINDOW),
}
