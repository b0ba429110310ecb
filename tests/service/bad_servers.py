"""Faults that the kill harness must catch, put into a server before it starts."""

import time
from concurrent.futures import Future
from typing import Any

from gradeq.service.desk import Desk
from gradeq.service.live import Live
from gradeq.service.store.sqlite import Sqlite
from gradeq.service.store.store import Write

WINDOW = 0.05  # seconds in which a kill does harm: most of the time, so that a few kills are enough


def early() -> None:
    """Answers are given before the commit."""
    put = Desk._put

    def eager(self: Desk, work: Any) -> Any:
        do, told = work.do, work.answer

        def done(page: Any) -> Any:
            result = do(page)
            told.set_result(result)
            time.sleep(WINDOW)
            return result

        work.do, work.answer = done, Future()
        put(self, work)
        return told

    Desk._put = eager  # type: ignore[method-assign]


def two_transactions() -> None:
    """The rows of the journal are committed first, sums and head after them."""
    append = Write.append

    def split(self: Write, *given: Any) -> Any:
        own = self.own

        class Split:
            def executemany(self, sql: str, rows: Any) -> None:
                own.executemany(sql, rows)
                if "INTO journal" in sql:
                    own.execute("COMMIT")
                    time.sleep(WINDOW)
                    own.execute("BEGIN")

            def execute(self, *call: Any) -> Any:
                return own.execute(*call)

        self.own = Split()
        return append(self, *given)

    Write.append = split  # type: ignore[method-assign]


def cached() -> None:
    """Nobody looks at what other servers wrote, and nobody is kept from writing beside them."""

    def believed(self: Live, entries: Any) -> None:
        for entry in entries:
            self.head = self.head._replace(seq=entry.seq)

    Live.catch_up = believed  # type: ignore[method-assign]
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
