"""Refusals of whole calls: problem details (RFC 9457) with a code for programs and a remedy for people."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from math import ceil
from typing import Annotated

import msgspec
from msgspec import Meta, Struct


class ProblemDetails(Struct):
    """Why a call was refused (RFC 9457): ``code`` is for programs, ``detail`` and ``remedy`` are for people."""

    title: str
    status: Annotated[int, Meta(ge=400, le=599)]
    code: str
    detail: str
    remedy: str


class Problem(Exception):
    """A call that is refused as a whole; nothing was changed."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        remedy: str,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.headers = dict(headers or {})
        self.details = ProblemDetails(HTTPStatus(status).phrase, status, code, detail, remedy)

    @property
    def status(self) -> int:
        """The status of the answer."""
        return self.details.status

    def body(self) -> bytes:
        """The answer's body."""
        return msgspec.json.encode(self.details)


def retry_after(seconds: float) -> dict[str, str]:
    """The header that says when to come again: whole seconds, at least one."""
    return {"Retry-After": str(max(1, ceil(seconds)))}


def split_remedy(
    message: str, otherwise: str = "change the value named and send it again"
) -> tuple[str, str]:
    """A refusal of the library, ``what is wrong; what to do``, as detail and remedy, ``otherwise`` if it has none."""
    line = " ".join(message.split())
    detail, found, remedy = line.rpartition("; ")
    if found:
        return detail, remedy
    detail, found, rule = line.partition(": give ")
    return (detail, f"give {rule}") if found else (line, otherwise)
