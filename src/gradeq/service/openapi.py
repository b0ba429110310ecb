"""The OpenAPI document, from the table of endpoints and the types that parse and answer."""

from __future__ import annotations

import re
from collections.abc import Iterable
from http import HTTPStatus
from typing import Any

import msgspec

from gradeq._version import __version__
from gradeq.service.calls import JSON, PROBLEM, Endpoint
from gradeq.service.problems import ProblemDetails

TEMPLATE = "#/components/schemas/{name}"
ABOUT = (
    "Live layers on black-box predictions: send what your model predicted and get back what to serve; send the "
    "label when it is known. Ids make every call safe to repeat. Items of a list are answered one by one, in order."
)

EXACTLY = {  # where the phrase of a status says more or less than what is refused
    415: "The body has a Content-Encoding. Its Content-Type is not looked at: every body is read as JSON.",
}


def document(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """The whole document."""
    listed = [endpoint for endpoint in endpoints if endpoint.listed]
    types: list[Any] = [ProblemDetails]
    for one in listed:
        types += [
            *([one.takes] if one.takes else []),
            *one.gives.values(),
            *one.parameters.values(),
        ]
    schemas, components = msgspec.json.schema_components(types, ref_template=TEMPLATE)
    named = _Schemas(types, schemas)
    paths: dict[str, Any] = {}
    for one in listed:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one, named)
    return {
        "openapi": "3.1.0",
        "info": {"title": "gradeq", "version": __version__, "description": ABOUT},
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


class _Schemas:
    """Schemas by type; unions and lists cannot be looked up by equality of hashes alone."""

    def __init__(self, types: list[Any], schemas: tuple[Any, ...]) -> None:
        self._pairs = list(zip(types, schemas, strict=True))

    def of(self, wanted: Any) -> Any:
        """The schema of a type."""
        return next(schema for kind, schema in self._pairs if kind is wanted)


def _operation(endpoint: Endpoint, schemas: _Schemas) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": endpoint.handler.__name__,
        "summary": endpoint.summary,
        "parameters": [*_of_path(endpoint), *_of_query(endpoint, schemas)],
        "responses": _responses(endpoint, schemas),
    }
    if endpoint.takes is not None:
        content = {JSON: {"schema": schemas.of(endpoint.takes)}}
        found["requestBody"] = {"required": True, "content": content}
    if endpoint.needs is not None:
        found["security"] = [{"key": []}]
        if endpoint.needs:
            found["description"] = f"Needs a key with the scope `{endpoint.needs}`."
    return found


def _of_path(endpoint: Endpoint) -> Iterable[dict[str, Any]]:
    for name in re.findall(r"{(\w+)}", endpoint.path):
        yield {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "minLength": 1, "maxLength": 100},
        }


def _of_query(endpoint: Endpoint, schemas: _Schemas) -> Iterable[dict[str, Any]]:
    for name, kind in endpoint.parameters.items():
        yield {"name": name, "in": "query", "required": False, "schema": schemas.of(kind)}


def _responses(endpoint: Endpoint, schemas: _Schemas) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for status, kind in sorted(endpoint.gives.items()):
        content = {endpoint.media: {"schema": schemas.of(kind)}}
        found[str(status)] = {"description": HTTPStatus(status).phrase, "content": content}
    for status in sorted({405, *endpoint.refuses}):
        told = EXACTLY.get(status, HTTPStatus(status).phrase)
        own = found.setdefault(str(status), {"description": told, "content": {}})
        own["content"][PROBLEM] = {"schema": schemas.of(ProblemDetails)}
    return found
