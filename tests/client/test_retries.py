"""When a request is repeated and how long the client waits, without a network."""

import itertools
from typing import Any

import pytest

from gradeq.client.verbs import HttpReply, Patience, Request, Unreachable, send_with_retries

REQUEST = Request("POST", "/x", b"{}")


def waits(replies: Any, patience: Patience) -> tuple[list[float], Any]:
    """The waits of a talk that is given these replies at once, and what it ends with."""
    talk, found, answer = send_with_retries(REQUEST, patience), [], None
    replies = iter(replies)
    try:
        while True:
            wish = talk.send(answer)
            if isinstance(wish, Request):
                assert wish is REQUEST
                answer = next(replies)
            else:
                found.append(wish)
                answer = None
    except StopIteration as done:
        return found, done.value


def busy(seconds: str | None, status: int = 503) -> HttpReply:
    return HttpReply(status, {} if seconds is None else {"retry-after": seconds}, b"{}")


GOOD = HttpReply(200, {}, b"{}")


def test_waits_double_up_to_the_longest_and_are_drawn_below_that() -> None:
    patience = Patience(seconds=1e9, first=1.0, longest=8.0)
    runs = [waits([*["x"] * 6, GOOD], patience)[0] for _ in range(200)]
    for attempt, limit in enumerate([1.0, 2.0, 4.0, 8.0, 8.0, 8.0]):
        drawn = [run[attempt] for run in runs]
        assert max(drawn) <= limit
        assert min(drawn) < 0.2 * limit and max(drawn) > 0.8 * limit


@pytest.mark.parametrize("status", [429, 503])
def test_the_server_is_left_alone_for_as_long_as_it_asks(status: int) -> None:
    patience = Patience(seconds=1e9, first=0.01, longest=0.02)
    assert waits([busy("7", status), GOOD], patience) == ([7.0], GOOD)
    (wait,), _ = waits([busy("Wed, 21 Oct 2026 07:28:00 GMT", status), GOOD], patience)
    assert wait <= 0.02


def test_patience_ends_before_a_wait_that_would_outlast_it() -> None:
    with pytest.raises(Unreachable, match="tried once: status 503"):
        waits([busy("40")], Patience(seconds=30.0))
    with pytest.raises(Unreachable, match="tried 2 times: ConnectError"):
        waits(["x", "ConnectError"], _one_wait())


def _one_wait() -> Any:
    left = itertools.chain([0.0], itertools.repeat(1e9))

    class Once(Patience):
        def wait(self, attempt: int, asked: float) -> float:
            return next(left)

    return Once(seconds=1.0)


@pytest.mark.parametrize("status", [200, 400, 401, 404, 409, 410, 413, 422, 500])
def test_any_other_answer_is_final(status: int) -> None:
    reply = HttpReply(status, {"retry-after": "1"}, b"{}")
    assert waits([reply], Patience()) == ([], reply)
