"""State as JSON: versioned, canonical, checksummed, exact; it loads only what it knows and never runs code.

Floats are written so that they read back bit for bit. Long columns are base64 of little-endian 64-bit numbers.
The checksum finds accidents, not attackers.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
import math
import re
import sys
from array import array
from collections.abc import Iterator
from typing import Any

from gradeq import losses, penalties, schedules
from gradeq._version import __version__
from gradeq.errors import StateError

FORMAT = 2  # 1: gradeq 0.1, whose states hold other sums
NOT_OURS = "this is not a gradeq state: name a file that gradeq saved"
LONG = 512  # numbers; longer columns are packed
AT_ONCE = 1 << 20  # characters that are hashed together
SHA256 = re.compile('"sha256":"([0-9a-f]{64})",')
PIECE = (
    3 << 12
)  # cells, characters or numbers at a time; of numbers whole threes, as base64 has them

_PARTS = {
    cls.__name__: cls
    for module in (losses, penalties, schedules)
    for cls in vars(module).values()
    if dataclasses.is_dataclass(cls) and isinstance(cls, type) and cls.__module__ == module.__name__
}


def written(kind: str, settings: dict[str, Any], state: dict[str, Any]) -> Iterator[str]:
    """The state of a layer as one line of canonical JSON with its checksum, in pieces.

    So the state of a million keys need not be in memory a second time as text.
    """
    body = {
        "format": FORMAT,
        "gradeq": __version__,
        "kind": kind,
        "settings": settings,
        "state": state,
    }
    return pieces({**body, "sha256": checksum(body)})


def load(text: str | bytes) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Kind, settings and state; raises ``StateError`` for what is damaged, newer or not ours."""
    if not isinstance(text, (str, bytes, bytearray)):
        raise StateError(
            f"{type(text).__name__} is not the text of a state; give what to_json gave"
        )
    whole = as_written(text)
    hook = _revived_pairs if whole else _no_duplicates
    try:
        body = json.loads(text, object_pairs_hook=hook, parse_constant=_no_constant)
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        begun = text.strip()[:1]
        if begun and begun not in ("{", b"{"):
            raise StateError(NOT_OURS) from None
        raise StateError(f"the state is damaged: not the JSON we wrote ({_short(error)})") from None
    if not isinstance(body, dict) or "format" not in body or "sha256" not in body:
        raise StateError(NOT_OURS)
    if body["format"] != FORMAT or isinstance(body["format"], bool):
        raise StateError(other_format(body["format"], body.get("gradeq")))
    given = body.pop("sha256")
    if not whole and given != checksum(body):
        raise StateError("the state is damaged: its checksum does not match; restore a backup")
    try:
        body = body if whole else revived(body)
        return str(body["kind"]), body["settings"], body["state"]
    except (KeyError, TypeError, ValueError) as error:
        raise StateError(f"the state is damaged: {_short(error)}") from None


def as_written(text: str | bytes) -> bool:
    """Whether this is to the letter what ``written`` gave: then it need not be spelled again for its checksum."""
    try:
        text = text if isinstance(text, str) else text.decode()
        found = SHA256.search(text)
        digest = hashlib.sha256()
        for start, stop in ((0, found.start()), (found.end(), len(text))) if found else ():
            for k in range(start, stop, AT_ONCE):
                digest.update(text[k : min(k + AT_ONCE, stop)].rstrip("\n").encode())
    except (TypeError, AttributeError, UnicodeError):
        return False
    return found is not None and found[1] == digest.hexdigest()


def other_format(found: Any, version: Any) -> str:
    """Why a state of another format is refused, and what to do."""
    written = f"written by gradeq {version}, " if isinstance(version, str) else ""
    if isinstance(found, int) and not isinstance(found, bool) and 0 < found < FORMAT:
        return (
            f"the state was {written}format {found}; gradeq {__version__} reads format {FORMAT} alone: "
            "go on with that version, or start a new state"
        )
    return (
        f"the state was {written}format {found!r}, which gradeq {__version__} does not know ({FORMAT}); "
        "upgrade gradeq to read it"
    )


def checksum(body: dict[str, Any]) -> str:
    """SHA-256 of the canonical text."""
    digest = hashlib.sha256()
    for piece in pieces(body):
        digest.update(piece.encode())
    return digest.hexdigest()


def pieces(value: Any) -> Iterator[str]:
    """The canonical text of a value, in pieces of bounded length.

    >>> "".join(pieces({"b": [1.0, math.inf], "a": ()}))
    '{"a":[],"b":[1.0,{"$float":"inf"}]}'
    """
    if isinstance(value, dict) and value:
        named = {str(key): item for key, item in value.items()}
        for k, key in enumerate(sorted(named)):
            yield f"{',' if k else '{'}{canonical(key)}:"
            yield from pieces(named[key])
        yield "}"
    elif isinstance(value, str) and len(value) > PIECE:
        yield '"'
        for k in range(0, len(value), PIECE):
            yield canonical(value[k : k + PIECE])[1:-1]
        yield '"'
    elif isinstance(value, (list, tuple)) and len(value) > PIECE:
        for k in range(0, len(value), PIECE):
            yield f"{',' if k else '['}{_listed(value[k : k + PIECE])[1:-1]}"
        yield "]"
    elif isinstance(value, array) and len(value) > LONG:
        yield f'{{"$array":{canonical(value.typecode)},"base64":"'
        for k in range(0, len(value), PIECE):
            yield _base64(value[k : k + PIECE])
        yield '"}'
    else:
        yield canonical(plain(value))


def _listed(values: Any) -> str:
    """The canonical text of many values, which seldom need to be made plain."""
    try:
        return canonical(values)
    except (TypeError, ValueError):  # an infinite loss, a column
        return canonical(plain(values))


def canonical(body: Any) -> str:
    """One spelling for each value: sorted keys, no spaces, shortest exact floats."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)


def plain(value: Any) -> Any:
    """A value made of dictionaries, lists, strings and numbers alone."""
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$float": repr(value)}
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, array):
        return {"$array": value.typecode, "values": [plain(x) for x in value]}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if type(value).__name__ in _PARTS and type(value) is _PARTS[type(value).__name__]:
        fields = {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return {"$part": type(value).__name__, **fields}
    raise StateError(
        f"{value!r} cannot be saved: only built-in schedules, penalties and losses have a safe JSON form"
    )


def revived(value: Any) -> Any:
    """The inverse of ``plain`` (tuples come back as lists)."""
    if isinstance(value, list):
        return [revived(item) for item in value]
    if isinstance(value, dict):
        return _revived({key: revived(item) for key, item in value.items()})
    return value


def _revived(value: dict[str, Any]) -> Any:
    """What a dictionary stands for; what it holds is revived already."""
    if "$float" in value:
        return float(value["$float"])
    if "$array" in value:
        return _unpacked(value)
    if "$part" in value:
        name = value.pop("$part")
        fields = {
            key: tuple(item) if isinstance(item, list) else item for key, item in value.items()
        }
        return _PARTS[name](**fields)
    return value


def _revived_pairs(pairs: list[tuple[str, Any]]) -> Any:
    return _revived(_no_duplicates(pairs))


def _base64(column: array[Any]) -> str:
    if sys.byteorder == "big":
        column.byteswap()
    return base64.b64encode(column).decode()


def _unpacked(value: dict[str, Any]) -> array[Any]:
    if value["$array"] not in ("d", "q"):
        raise ValueError(f"unknown column type {value['$array']!r}")
    if "values" in value:
        return array(value["$array"], value["values"])
    column: array[Any] = array(value["$array"])
    column.frombytes(base64.b64decode(value["base64"], validate=True))
    if sys.byteorder == "big":
        column.byteswap()
    return column


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise ValueError("a key stands twice")
    return result


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number")


def _short(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:120]
