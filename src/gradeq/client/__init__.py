"""A client of the service, sync and async; retries are always safe (extra ``client``).

    from gradeq.client import Client

    with Client("http://127.0.0.1:8000", key) as client:
        client.create("demand", eta=0.05, groups=["region"])
        answer = client.predict("demand", 42.0, id="order-17", groups={"region": "north"})
        client.label("demand", 45.0, id="order-17")

Every event has an id, yours or a random one, before it is first sent, and every retry sends the same bytes. So a lost
answer costs a repetition, never a second event. The client keeps a receipt of what the server acknowledged; ``audit``
has the server look for each receipt in its journal.
"""

from gradeq.client.clients import AsyncClient, Client
from gradeq.client.verbs import Answer, Audit, Patience, Refused, Unreachable

__all__ = ["Answer", "AsyncClient", "Audit", "Client", "Patience", "Refused", "Unreachable"]
