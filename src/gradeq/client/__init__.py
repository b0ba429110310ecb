"""A client of the service, sync and async, that may always be asked again (extra ``client``).

    from gradeq.client import Client

    with Client("http://127.0.0.1:8000", key) as client:
        client.create("demand", eta=0.05, groups=["region"])
        answer = client.predict("demand", 42.0, id="order-17", groups={"region": "north"})
        client.label("demand", 45.0, id="order-17")

Every event has an id before it is first sent, given or made here, and every further attempt sends the same bytes: an
answer that was lost on its way costs a repetition, never a second event. What the server acknowledged is kept as
receipts, and ``audit`` lets the server look for each of them in its journal.
"""

from gradeq.client.answers import Answer, Audit, Refused, Unreachable
from gradeq.client.clients import AsyncClient, Client
from gradeq.client.talk import Patience

__all__ = ["Answer", "AsyncClient", "Audit", "Client", "Patience", "Refused", "Unreachable"]
