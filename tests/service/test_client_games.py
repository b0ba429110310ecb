"""The client and the service: games in columns, and answers that say all that the service says."""

import asyncio

import pytest

from gradeq.client import Answer, AsyncClient, Client
from gradeq.errors import BadInput
from gradeq.layers.elo import Elo
from gradeq.service import schemas
from service.running import running

A, B = ["ann", "bob", "ann", "cid"], ["bob", "cid", "cid", "ann"]
SCORES = [1.0, 0.5, 1.0, 0.0]


def test_an_answer_has_every_field_of_the_service():
    assert set(Answer._fields) == set(schemas.ItemAnswer.__struct_fields__)
    assert Answer.read({"id": 1, "status": "served", "stale": True}).stale
    assert not Answer.read({"id": 1, "status": "served"}).stale


@pytest.mark.parametrize("waited", [False, True], ids=["sync", "async"])
def test_games_in_columns_are_those_of_the_library(waited, tmp_path):
    with running(str(tmp_path / "store.db")) as own:
        own.layer("league", kind="elo", eta=0.1, home_advantage=True)
        home, weights = [1.0, 0.0, -1.0, 1.0], [1.0, 2.0, 1.0, 0.5]
        given = {"home": home, "ids": [1, 2, 3, 4], "weights": weights}
        if waited:

            async def ask():
                async with AsyncClient(own.address, own.key) as client:
                    games = await client.predict_games("league", A, B, **given)
                    return games, await client.label_many("league", SCORES, ids=[1, 2, 3, 4])

            games, told = asyncio.run(ask())
        else:
            with Client(own.address, own.key) as client:
                games = client.predict_games("league", A, B, **given)
                told = client.label_many("league", SCORES, ids=[1, 2, 3, 4])
                assert client.predict_games("league", A, B, **given)[0].status == "duplicate"
                with pytest.raises(BadInput):
                    client.predict_games("league", A, B[:2])
        assert [one.status for one in told] == ["applied"] * 4
        layer = Elo(eta=0.1, home_advantage=True)
        rows = zip(A, B, home, weights, strict=True)
        tickets = [layer.open(a, b, home=h, weight=w) for a, b, h, w in rows]
        assert [game.adjusted for game in games] == [ticket.served for ticket in tickets]
        for ticket, score in zip(tickets, SCORES, strict=True):
            layer.post(ticket, score)
        assert own.service.desk.runtime("default", "league").layer.theta == layer.theta
