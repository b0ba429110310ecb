"""What is not about one layer: health, metrics, the OpenAPI document, the sign-in of browsers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

from msgspec import UNSET, Struct, UnsetType

from gradeq._version import __version__
from gradeq.service.calls import TEXT, Call, Endpoint, Reply, encode, header
from gradeq.service.metrics import family
from gradeq.service.openapi import document
from gradeq.service.problems import Problem
from gradeq.service.reading import read_object
from gradeq.service.sessions import FORGET
from gradeq.service.shown import all_standing


class Alive(Struct):
    """The process answers."""

    status: str = "ok"
    version: str = __version__


class Ready(Struct):
    """Whether the server can store predictions and labels; if not, why. Predictions are served either way.

    A layer may have stopped learning all the same: ``stopped`` counts those of all tenants, and with a key
    ``stopped_layers`` names those of its tenant; labels that they refuse get 409.
    """

    ready: bool
    why: str
    waiting: int
    layers: int
    stopped: int
    stopped_layers: list[str] | UnsetType = UNSET


class SignIn(Struct, forbid_unknown_fields=True):
    """A key, for a browser."""

    key: str


class SignedIn(Struct):
    """The cookie is set; it lets a browser look at the layers of this tenant."""

    tenant: str


async def healthz(call: Call) -> Reply:
    """Alive."""
    return Reply(encode(Alive()))


async def readyz(call: Call) -> Reply:
    """Ready, or not and why."""
    desk = call.service.desk
    health = desk.health
    ready = health.writable and not call.service.closing
    why = health.why or ("" if ready else "this server only reads, or is shutting down")
    stopped = desk.layers.stopped()
    found = Ready(ready, why, health.waiting, len(desk.layers), len(stopped))
    if call.key is not None:
        found.stopped_layers = sorted(name for own, name in stopped if own == call.key.tenant)
    return Reply(encode(found), 200 if ready else 503)


async def openapi(call: Call) -> Reply:
    """The document."""
    return Reply(encode(document(call.service.endpoints)))


async def metrics(call: Call) -> Reply:
    """Numbers of the server; with a key those of the tenant's layers as well."""
    lines = [*_of_server(call), *call.service.metrics.lines()]
    if call.key is not None:
        lines += await asyncio.to_thread(lambda: list(_of_layers(call)))
    return Reply(("\n".join(lines) + "\n").encode(), media=TEXT)


async def sign_in(call: Call) -> Reply:
    """A cookie for a key."""
    if header(call.scope, b"sec-fetch-site") not in (None, "same-origin", "none"):
        raise Problem(
            403, "other_site", "the sign-in comes from another site", "open this server's own page"
        )
    given = read_object(await call.body(10_000)).get("key")
    key = await call.service.holder(given.strip()) if isinstance(given, str) else None
    if key is None:
        raise Problem(
            401, "no_key", "this is no key that is good here", "`gradeq keys create` makes a key",
            {"WWW-Authenticate": "Bearer"},
        )  # fmt: skip
    secure = call.scope.get("scheme") == "https"
    cookie = call.service.sessions.cookie(key.number, secure)
    return Reply(encode(SignedIn(key.tenant)), headers={"Set-Cookie": cookie})


async def sign_out(call: Call) -> Reply:
    """The cookie away."""
    return Reply(b"{}", headers={"Set-Cookie": FORGET})


def _of_server(call: Call) -> Iterator[str]:
    service, health = call.service, call.service.desk.health
    numbers = (
        ("gradeq_up_seconds", "gauge", "Seconds since the server began.", time.time() - service.began),
        ("gradeq_layers", "gauge", "Layers of all tenants.", len(service.desk.layers)),
        ("gradeq_store_writable", "gauge", "1 if the last commit succeeded.", health.writable),
        ("gradeq_store_commits_total", "counter", "Transactions on disk.", health.commits),
        ("gradeq_store_failures_total", "counter", "Transactions that failed.", health.failures),
        ("gradeq_store_commit_seconds", "gauge", "What the last transaction took.", health.last_commit),
        ("gradeq_waiting_items", "gauge", "Items that wait to be written.", health.waiting),
    )  # fmt: skip
    for name, kind, told, value in numbers:
        yield from family(name, kind, told, [((), float(value))])


def _of_layers(call: Call) -> Iterator[str]:
    assert call.key is not None
    found = all_standing(call.service.desk, call.key.tenant)
    told = {
        "served": ("gradeq_layer_served_total", "counter", "Predictions served."),
        "labelled": ("gradeq_layer_labelled_total", "counter", "Labels posted."),
        "open": ("gradeq_layer_open", "gauge", "Predictions whose label has not come."),
        "learning": ("gradeq_layer_learning", "gauge", "0 while the layer is frozen or stopped."),
    }
    for field, (name, kind, words) in told.items():
        values = [((("layer", one.layer),), float(getattr(one, field))) for one in found]
        yield from family(name, kind, words, values)


ENDPOINTS = (
    Endpoint(
        "GET", "/healthz", None, healthz, "Whether the process answers.", gives={200: Alive}, refuses=(401, 429),
    ),
    Endpoint(
        "GET", "/readyz", None, readyz,
        "Whether the store can be written (predictions are served either way); which layers have stopped.",
        gives={200: Ready, 503: Ready}, refuses=(401, 429),
    ),
    Endpoint(
        "GET", "/metrics", None, metrics,
        "Numbers for Prometheus; with a key those of your layers as well.",
        gives={200: str}, refuses=(401, 429), media=TEXT,
    ),
    Endpoint("GET", "/openapi.json", None, openapi, "This document.", gives={200: dict}),
    Endpoint(
        "POST", "/session", None, sign_in, "Sign a browser in: a cookie for a key.",
        SignIn, {200: SignedIn}, (400, 401, 403, 408, 413, 415, 429),
    ),
    Endpoint("DELETE", "/session", None, sign_out, "Sign a browser out.", gives={200: dict}, refuses=(401, 429)),
)  # fmt: skip
