"""What the service answers: the fate of one event, an audit, or a refusal."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from gradeq.errors import BadInput, ExpiredTicket, GradeqError, LabelConflict, UnknownTicket

Id = str | int


class Refused(GradeqError):
    """The service refused a whole request: ``status`` of HTTP, ``code`` and ``remedy`` as it told them."""

    def __init__(self, message: str, status: int = 0, code: str = "", remedy: str = "") -> None:
        super().__init__(message)
        self.status, self.code, self.remedy = status, code, remedy


class Unreachable(GradeqError):
    """No answer came within the patience of the client; sending again is safe under the same ``ids``."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.ids: tuple[Id, ...] = ()


class Answer(NamedTuple):
    """What became of one event.

    ``status``: ``served``, ``applied`` or ``corrected`` when it is in the journal now, ``duplicate`` when it was
    before; else ``conflict``, ``unknown``, ``expired`` or ``rejected``, with a ``detail`` and a ``remedy``.
    ``adjusted`` is the value to use; intervals have ``lower`` and ``upper`` as well. ``seq`` is the receipt, the
    event's number in the journal. ``stored`` is false when the store could not be written, so that nothing will be
    learned from the event; ``learning`` is false while the layer is frozen; ``cold``: a group was not seen before;
    ``stale``: the server has not heard of the other servers' labels for more than 10 seconds.
    """

    id: Id | None = None
    status: str = ""
    adjusted: Any = None
    lower: float | None = None
    upper: float | None = None
    ticket: str | None = None
    stored: bool = True
    learning: bool = True
    cold: bool = False
    detail: str = ""
    remedy: str = ""
    seq: int | None = None
    stale: bool = False

    @classmethod
    def read(cls, told: Mapping[str, Any]) -> Answer:
        """From JSON; members that a newer server adds are passed over."""
        return cls(**{name: told[name] for name in cls._fields if name in told})

    def or_raise(self) -> Answer:
        """The answer, when the event is in the journal; else the error that the library raises."""
        if self.status in REFUSALS:
            said = "; ".join(text for text in (self.detail, self.remedy) if text)
            raise REFUSALS[self.status](f"{self.id!r}: {said or self.status}")
        return self


REFUSALS: dict[str, type[GradeqError]] = {
    "conflict": LabelConflict,
    "unknown": UnknownTicket,
    "expired": ExpiredTicket,
    "rejected": BadInput,
}


class Audit(NamedTuple):
    """Receipts beside the journal: how many were compared, and which events the server lost or has otherwise.

    ``missing`` and ``doubled`` hold (kind, id); ``moved`` holds (kind, id, number of the receipt, number in the
    journal). ``server`` is the server's own audit of journal, sums and state, as it told it.
    """

    ok: bool
    compared: int
    missing: list[tuple[str, Id]]
    doubled: list[tuple[str, Id]]
    moved: list[tuple[str, Id, int, int]]
    server: dict[str, Any]


class Reply(NamedTuple):
    """What came back over HTTP."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def read(self) -> Any:
        """The JSON within; a refusal of the whole request is raised."""
        kind = self.headers.get("content-type", "")
        try:
            told = json.loads(self.body)
        except ValueError:
            raise Refused(
                f"the answer ({self.status}, {kind or 'no type'}) is not JSON; "
                "is this the address of a gradeq service?",
                self.status,
            ) from None
        if kind.startswith("application/problem+json") or not isinstance(told, dict | list):
            raise self._refusal(told if isinstance(told, dict) else {})
        return told

    def _refusal(self, told: Mapping[str, Any]) -> Refused:
        said = [str(told[name]) for name in ("detail", "remedy") if told.get(name)]
        words = "; ".join(said) or str(told.get("title", "refused"))
        code, remedy = str(told.get("code", "")), str(told.get("remedy", ""))
        return Refused(f"{words} ({self.status})", self.status, code, remedy)
