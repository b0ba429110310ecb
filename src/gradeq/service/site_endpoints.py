"""Endpoints that are not about one layer: health, metrics, OpenAPI, sign-in."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET, Struct, UnsetType

from gradeq._version import __version__
from gradeq.service.auth import CLEAR_COOKIE
from gradeq.service.layer_endpoints import all_layer_statuses
from gradeq.service.problems import Problem, ProblemDetails
from gradeq.service.requests import JSON, PROBLEM, TEXT, Call, Endpoint, Reply, SchemaType, encode, read_object
from gradeq.service.store.database import JsonObject
from gradeq.service.telemetry import metric_lines

if TYPE_CHECKING:
    from gradeq.service.app import Service
    from gradeq.service.desk import Desk

DESCRIPTION = (
    "Layers on black-box predictions: send a prediction and get back the value to serve; send the label when "
    "it is known. Ids make retries safe. Items of a list are answered one by one, in order."
)

STATUS_DESCRIPTIONS = {  # where the standard phrase of a status would mislead
    415: "The body has a Content-Encoding. Its Content-Type is ignored: every body is read as JSON."
}


def openapi_document(endpoints: Iterable[Endpoint]) -> JsonObject:
    listed = [endpoint for endpoint in endpoints if endpoint.documented]
    types: list[SchemaType] = [ProblemDetails]
    for one in listed:
        types += [*([one.request] if one.request else []), *one.responses.values(), *one.parameters.values()]
    schemas, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    by_type = {id(kind): schema for kind, schema in zip(types, schemas, strict=True)}  # unions cannot be keys
    paths: JsonObject = {}
    for one in listed:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one, by_type)
    return {
        "openapi": "3.1.0",
        "info": {"title": "gradeq", "version": __version__, "description": DESCRIPTION},
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}},
    }


def _operation(endpoint: Endpoint, schemas: Mapping[int, object]) -> JsonObject:
    text = {"type": "string", "minLength": 1, "maxLength": 100}
    names = re.findall(r"{(\w+)}", endpoint.path)
    parameters: list[JsonObject] = [{"name": name, "in": "path", "required": True, "schema": text} for name in names]
    for name, kind in endpoint.parameters.items():
        parameters.append({"name": name, "in": "query", "required": False, "schema": schemas[id(kind)]})
    responses: dict[str, JsonObject] = {}
    for status, kind in sorted(endpoint.responses.items()):
        content = {endpoint.media: {"schema": schemas[id(kind)]}}
        responses[str(status)] = {"description": HTTPStatus(status).phrase, "content": content}
    for status in sorted({405, *endpoint.problems}):
        description = STATUS_DESCRIPTIONS.get(status, HTTPStatus(status).phrase)
        response = responses.setdefault(str(status), {"description": description, "content": {}})
        response["content"][PROBLEM] = {"schema": schemas[id(ProblemDetails)]}
    operation: JsonObject = {
        "operationId": endpoint.handler.__name__,
        "summary": endpoint.handler.__doc__,
        "parameters": parameters,
        "responses": responses,
    }
    if endpoint.request is not None:
        content = {JSON: {"schema": schemas[id(endpoint.request)]}}
        operation["requestBody"] = {"required": True, "content": content}
    if endpoint.scope is not None:
        operation["security"] = [{"key": []}]
        if endpoint.scope:
            operation["description"] = f"Needs a key with the scope `{endpoint.scope}`."
    return operation


class HealthAnswer(Struct):
    """The process is alive."""

    status: str = "ok"
    version: str = __version__


class ReadyAnswer(Struct):
    """Whether the server can store predictions and labels, and if not, why. Predictions are served either way.

    Layers may have stopped learning even so: ``stopped`` counts those of all tenants; with a key, ``stopped_layers``
    names those of its tenant. They answer labels with 409.
    """

    ready: bool
    why: str
    waiting: int
    layers: int
    stopped: int
    stopped_layers: list[str] | UnsetType = UNSET


class SignInRequest(Struct, forbid_unknown_fields=True):
    """An API key, to sign in a browser."""

    key: str


class SignInAnswer(Struct):
    """The cookie is set; it lets a browser read the layers of this tenant."""

    tenant: str


async def healthz(call: Call) -> Reply:
    """Whether the process is alive."""
    return Reply(encode(HealthAnswer()))


async def readyz(call: Call) -> Reply:
    """Whether the store is writable (predictions are served either way), and which layers have stopped."""
    desk = call.service.desk
    health = desk.health
    ready = health.writable and not call.service.closing
    why = health.why or ("" if ready else "the server is read-only or shutting down")
    stopped = desk.layers.stopped()
    answer = ReadyAnswer(ready, why, health.waiting, len(desk.layers), len(stopped))
    if call.key is not None:
        answer.stopped_layers = sorted(name for tenant, name in stopped if tenant == call.key.tenant)
    return Reply(encode(answer), 200 if ready else 503)


async def openapi(call: Call) -> Reply:
    """This document."""
    return Reply(encode(openapi_document(call.service.endpoints)))


async def metrics(call: Call) -> Reply:
    """Prometheus metrics; with a key also those of your layers."""
    lines = [*_server_metrics(call.service), *call.service.metrics.lines()]
    if call.key is not None:
        lines += await asyncio.to_thread(_layer_metrics, call.service.desk, call.key.tenant)
    return Reply(("\n".join(lines) + "\n").encode(), media=TEXT)


async def sign_in(call: Call) -> Reply:
    """Sign in a browser: exchange a key for a cookie."""
    if call.header(b"sec-fetch-site") not in (None, "same-origin", "none"):
        raise Problem(403, "other_site", "the sign-in comes from another site", "use this server's own page")
    text = read_object(await call.body(10_000)).get("key")
    key = await call.service.find_key(text.strip()) if isinstance(text, str) else None
    if key is None:
        what, remedy = "this key is unknown or revoked", "`gradeq keys create` creates one"
        raise Problem(401, "no_key", what, remedy, {"WWW-Authenticate": "Bearer"})
    secure = call.scope.get("scheme") == "https"
    cookie = call.service.sessions.cookie(key.number, secure)
    return Reply(encode(SignInAnswer(key.tenant)), headers={"Set-Cookie": cookie})


async def sign_out(call: Call) -> Reply:
    """Sign out a browser."""
    return Reply(b"{}", headers={"Set-Cookie": CLEAR_COOKIE})


def _server_metrics(service: Service) -> list[str]:
    health = service.desk.health
    numbers = (
        ("gradeq_up_seconds", "gauge", "Seconds since the server started.", time.time() - service.started_at),
        ("gradeq_layers", "gauge", "Layers of all tenants.", len(service.desk.layers)),
        ("gradeq_store_writable", "gauge", "1 if the last commit succeeded.", health.writable),
        ("gradeq_store_commits_total", "counter", "Transactions on disk.", health.commits),
        ("gradeq_store_failures_total", "counter", "Transactions that failed.", health.failures),
        ("gradeq_store_commit_seconds", "gauge", "Duration of the last transaction.", health.last_commit),
        ("gradeq_waiting_items", "gauge", "Items waiting to be written.", health.waiting),
    )
    each = [metric_lines(name, kind, text, [((), float(value))]) for name, kind, text, value in numbers]
    return [line for lines in each for line in lines]


def _layer_metrics(desk: Desk, tenant: str) -> list[str]:
    statuses = all_layer_statuses(desk, tenant)
    lines = []
    for field, name, kind, text in (
        ("served", "gradeq_layer_served_total", "counter", "Predictions served."),
        ("labelled", "gradeq_layer_labelled_total", "counter", "Labels learned or stored."),
        ("open", "gradeq_layer_open", "gauge", "Predictions still without a label."),
        ("learning", "gradeq_layer_learning", "gauge", "0 while the layer is frozen or stopped."),
    ):
        values = [((("layer", one.layer),), float(getattr(one, field))) for one in statuses]
        lines += metric_lines(name, kind, text, values)
    return lines


SIGN_IN_PROBLEMS = (400, 401, 403, 408, 413, 415, 429)
ENDPOINTS = (
    Endpoint("GET", "/healthz", None, healthz, {200: HealthAnswer}, (401, 429)),
    Endpoint("GET", "/readyz", None, readyz, {200: ReadyAnswer, 503: ReadyAnswer}, (401, 429)),
    Endpoint("GET", "/metrics", None, metrics, {200: str}, (401, 429), media=TEXT),
    Endpoint("GET", "/openapi.json", None, openapi, {200: dict}),
    Endpoint("POST", "/session", None, sign_in, {200: SignInAnswer}, SIGN_IN_PROBLEMS, SignInRequest),
    Endpoint("DELETE", "/session", None, sign_out, {200: dict}, (401, 429)),
)
