"""The client: every event enters the journal once, whatever happens on the way, and receipts say so."""

import asyncio
import inspect
import random
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from client import small_server as small
from client.small_server import Book, serving
from gradeq.client import AsyncClient, Client, Patience, Refused, Unreachable
from gradeq.errors import BadInput, LabelConflict, UnknownTicket

QUICK = Patience(seconds=20.0, first=0.001, longest=0.01)
FAULTS = [small.DROP_BEFORE, small.DROP_AFTER, small.HANG_AFTER, small.BUSY, small.AWAY]


class Waited:
    """The verbs of an AsyncClient, each run to its end, so that one test serves both clients."""

    def __init__(self, *args: Any, **given: Any) -> None:
        self.args, self.given = args, given
        self.loop = asyncio.new_event_loop()

    def __enter__(self) -> "Waited":
        self.client = AsyncClient(*self.args, **self.given)
        return self

    def __exit__(self, *_: Any) -> None:
        self.loop.run_until_complete(self.client.close())
        self.loop.close()

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self.client, name)
        if not inspect.iscoroutinefunction(verb):
            return verb
        return lambda *args, **given: self.loop.run_until_complete(verb(*args, **given))


both = pytest.mark.parametrize("kind", [Client, Waited], ids=["sync", "async"])


@both
@pytest.mark.parametrize("seed", range(4))
def test_every_event_enters_once_whatever_happens_on_the_way(kind: Any, seed: int) -> None:
    book, rng = Book(), random.Random(seed)
    with serving(book) as url, kind(url, timeout=0.15, patience=QUICK) as client:
        for number in range(6):
            book.faults = rng.choices(FAULTS, weights=[4, 4, 1, 2, 2], k=rng.randrange(4))
            given = {} if number % 2 else {"id": f"row-{number}"}
            served = client.predict("a", float(number), **given)
            book.faults = rng.choices(FAULTS[:2], k=rng.randrange(3))
            assert client.label("a", 2.0 * number, id=served.id).status in ("applied", "duplicate")
        book.faults = rng.choices(FAULTS[:2], k=2)
        many = client.predict_many("a", [9.0, 10.0], groups={"g": ["x", "y"]})
        book.faults = []
        audit = client.audit("a")
    assert [value for _, _, value in book.journal] == [
        *(value for n in range(6) for value in (float(n), 2.0 * n)), 9.0, 10.0,
    ]  # fmt: skip
    assert [answer.seq for answer in many] == [13, 14]
    assert audit.ok and audit.compared == 14
    assert sum(client.receipts("a").tally.values()) == 14


@both
def test_every_attempt_sends_the_same_bytes(kind: Any) -> None:
    book = Book()
    with serving(book) as url, kind(url, timeout=0.15, patience=QUICK) as client:
        book.faults = [small.DROP_AFTER, small.AWAY, small.DROP_BEFORE]
        client.predict("a", 1.0)
    assert len(book.attempts) == 4
    assert len(set(book.attempts)) == 1


@both
def test_an_event_of_unknown_fate_is_told_with_its_ids(kind: Any) -> None:
    book = Book()
    with serving(book) as url, kind(url, patience=Patience(0.0)) as client:
        book.faults = [small.DROP_AFTER]
        with pytest.raises(Unreachable, match=r"once.*same ids again is safe") as caught:
            client.predict("a", 1.0)
        (id,) = caught.value.ids
        assert client.predict("a", 1.0, id=id).status == "duplicate"
    with kind(url, patience=Patience(0.05, 0.01)) as client, pytest.raises(Unreachable):
        client.layers()  # nobody listens any more
    assert len(book.journal) == 1


@both
def test_refused_events_raise_what_the_library_raises(kind: Any) -> None:
    book = Book()
    with serving(book) as url, kind(url, patience=QUICK) as client:
        client.predict("a", 1.0, id=7)
        client.label("a", 2.0, id=7)
        with pytest.raises(LabelConflict, match="7: another value is stored"):
            client.label("a", 3.0, id=7)
        with pytest.raises(UnknownTicket, match="'7': never served; predict"):
            client.label("a", 3.0, id="7")
        statuses = [a.status for a in client.label_many("a", [2.0, 3.0, 4.0], ids=[7, 7, "x"])]
    assert statuses == ["duplicate", "conflict", "unknown"]
    assert len(book.journal) == 2


@both
def test_a_refused_request_says_why_and_is_not_repeated(kind: Any) -> None:
    book = Book()
    with serving(book) as url:
        with kind(url, "gq_bad") as client, pytest.raises(Refused, match="key is not known") as told:
            client.layers()
        assert (told.value.status, told.value.code, told.value.remedy) == (401, "no_key", "give one")
        with kind(url, "gq_good") as client:
            assert client.layers() == [{"layer": "a/b"}]
            assert client.equilibrium("a/b ü") == {"path": "/v1/layers/a%2Fb%20%C3%BC/equilibrium"}
            book.faults = [small.NOT_JSON]
            with pytest.raises(Refused, match="address of a gradeq service"):
                client.predict("a", 1.0)


def test_an_audit_names_what_the_server_lost_and_what_moved() -> None:
    book = Book()
    with serving(book) as url, Client(url, patience=QUICK) as client:
        client.predict_many("a", [1.0, 2.0, 3.0], ids=["x", "y", 3])
        assert client.audit("a").ok
        del book.numbers["ticket", "y"]
        book.numbers["ticket", 3] = 1
        audit = client.audit("a")
    assert not audit.ok
    assert audit.missing == [("ticket", "y")]
    assert audit.moved == [("ticket", 3, 3, 1)]


def test_answers_that_are_not_stored_leave_no_receipt_and_old_receipts_only_count() -> None:
    from gradeq.client.verbs import Answer, Receipts

    receipts = Receipts(longest=2)
    receipts.take("ticket", [Answer(id, "served", seq=id) for id in (1, 2, 3)])
    receipts.take("ticket", [Answer(4, "served", stored=False), Answer(5, "served", seq=None)])
    assert receipts.rows() == [("ticket", 2, 2), ("ticket", 3, 3)]
    assert receipts.tally == {"served": 5}


def test_long_lists_go_in_several_requests_unless_all_or_none() -> None:
    book = Book()
    values = np.arange(2500.0)
    with serving(book) as url, Client(url, patience=QUICK) as client:
        answers = client.predict_many("a", values, ids=np.arange(2500))
        assert len(book.attempts) == 3
        assert [answer.adjusted for answer in answers] == values.tolist()
        client.label_many("a", values, ids=np.arange(2500), atomic=True)
        assert len(book.attempts) == 4
        assert client.audit("a").compared == 5000


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.predict("a", float("nan")),
        lambda client: client.predict("a", object()),
        lambda client: client.label("a", 1.0),
        lambda client: client.label_many("a", [1.0]),
        lambda client: client.label_many("a", [1.0], ids=[1, 2]),
        lambda client: client.predict_many("a", [1.0], groups={"g": ["x", "y"]}),
    ],
)
def test_what_cannot_be_sent_is_refused_before_anything_is(call: Any) -> None:
    book = Book()
    with serving(book) as url, Client(url) as client:
        with pytest.raises(BadInput) as caught:
            call(client)
        assert "\n" not in str(caught.value)
    assert book.attempts == []


def test_both_clients_have_the_same_verbs_with_the_same_words() -> None:
    def verbs(kind: type) -> dict[str, Any]:
        return {
            name: (str(inspect.signature(verb)).partition("->")[0], verb.__doc__)
            for name, verb in vars(kind).items()
            if callable(verb) and not name.startswith("_")
        }

    assert verbs(Client) == verbs(AsyncClient)
    assert all(words for _, words in verbs(Client).values())


@pytest.mark.parametrize("url", ["127.0.0.1:8000", "ftp://x", "", "http://"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(BadInput, match="not a URL; give one like http"):
        Client(url)


def test_the_key_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRADEQ_KEY", "gq_good")
    with serving(Book()) as url, Client(url) as client:
        assert client.layers()
        assert "gq_good" not in repr(client)


def test_without_httpx_one_line_says_what_to_install() -> None:
    code = "import sys; sys.modules['httpx'] = None\nimport gradeq.client"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr.splitlines()[-1].endswith('pip install "gradeq[client]"')
