"""Bodies of calls: JSON that is checked before it is believed, as items or as one object.

The quick way is one typed decode. Anything that it does not take, and anything that might hold a name twice, goes the
slow way, which says what is wrong: with the whole body (``Problem``), or with single items (an ``Answer`` each).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Generic, TypeVar

import msgspec

from gradeq.service.items import Answer
from gradeq.service.problems import Problem
from gradeq.service.wording import wanted

Item = TypeVar("Item")
LONGEST_ID = 255  # bytes
DEEPEST = 32
encode = msgspec.json.Encoder().encode
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class Reader(Generic[Item]):
    """Reads one item or a list of them."""

    def __init__(self, item: type[Item]) -> None:
        self.item = item
        self._one = msgspec.json.Decoder(item)
        self._many = msgspec.json.Decoder(list[item])  # type: ignore[valid-type]

    def read(self, body: bytes, most: int) -> tuple[Sequence[Item | Answer], bool]:
        """The items in order, those that cannot be used as answers that say why; whether it was one object."""
        alone = body[:64].lstrip()[:1] == b"{"
        try:
            items = [self._one.decode(body)] if alone else self._many.decode(body)
            if _names_once(body, items) and _short_ids(items):
                return _few_enough(items, most), alone
        except UNREADABLE:
            pass
        given = parsed(body)
        if isinstance(given, dict):
            return [self._taken(given)], True
        if not isinstance(given, list):
            raise Problem(
                400,
                "not_items",
                f"the body is {_kind(given)}",
                "send one object or a list of objects",
            )
        return [self._taken(one) for one in _few_enough(given, most)], False

    def _taken(self, given: Any) -> Item | Answer:
        id = given.get("id") if isinstance(given, dict) else None
        if not isinstance(id, (str, int)) or isinstance(id, bool):
            id = None
        elif len(str(id).encode()) > LONGEST_ID:
            return rejected(
                None, f"an id of {len(str(id).encode()):,} bytes", f"give at most {LONGEST_ID}"
            )
        try:
            return msgspec.convert(given, self.item)
        except msgspec.ValidationError as error:
            return rejected(id, *explained(str(error), given))


def rejected(id: str | int | None, detail: str, remedy: str) -> Answer:
    """The answer to an item that cannot be used."""
    return Answer(id=id, status="rejected", detail=detail, remedy=remedy)


def read_object(body: bytes) -> dict[str, Any]:
    """The body as one JSON object."""
    given = parsed(body)
    if not isinstance(given, dict):
        raise Problem(400, "not_an_object", f"the body is {_kind(given)}", "send one JSON object")
    return given


def parsed(body: bytes) -> Any:
    """JSON as plain values; refused are names given twice, deep nesting, endless numbers and broken text."""
    try:
        given = json.loads(body, object_pairs_hook=_once)
        json.dumps(given, ensure_ascii=False).encode()
        if _depth(given) > DEEPEST:
            raise RecursionError
    except RecursionError:
        raise Problem(
            400, "nested_too_deeply", f"lists or objects stand in one another more than {DEEPEST} deep",
            f"nest at most {DEEPEST} of them",
        ) from None  # fmt: skip
    except UnicodeError:
        raise Problem(
            400, "not_text", "the body holds characters that are not text (UTF-8, whole surrogate pairs)",
            "encode the body as UTF-8",
        ) from None  # fmt: skip
    except ValueError as error:
        if isinstance(error, json.JSONDecodeError):
            what = f"the body is not JSON: {error.msg} at character {error.pos}"
            raise Problem(400, "not_json", what, "send JSON (RFC 8259)") from None
        raise Problem(
            400, "number_too_long", "a whole number has thousands of digits", "send at most 64 bits"
        ) from None
    return given


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise Problem(
            400,
            "duplicate_name",
            f"{twice[:80]!r} stands twice in one object",
            "name each value once",
        )
    return found


def _names_once(body: bytes, items: Sequence[Any]) -> bool:
    """Whether no object can hold a name twice: there are no more colons than names.

    Written out again, the items have as many colons, unless a name stands twice, or with its default: then names are
    counted. Escapes may hide a colon, and one inside a text counts as a name; the slow way then looks.
    """
    colons = body.count(b":")
    if b"\\" not in body and colons == encode(items).count(b":"):
        return True
    return colons == _names(msgspec.json.decode(body))


def _names(value: Any) -> int:
    if type(value) is list:
        return sum(map(_names, value))
    count = 0
    if type(value) is dict:
        count = len(value)
        for inner in value.values():
            if type(inner) is dict:
                count += _names(inner)
    return count


def _short_ids(items: Sequence[Any]) -> bool:
    return not any(
        type(item.id) is str
        and 4 * len(item.id) > LONGEST_ID
        and len(item.id.encode()) > LONGEST_ID
        for item in items
    )


def _few_enough(items: Sequence[Any], most: int) -> Sequence[Any]:
    if len(items) > most:
        raise Problem(
            413,
            "too_many_items",
            f"{len(items):,} items in one call",
            f"send at most {most:,} a call",
        )
    return items


def _depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(_depth, inner), default=0) if isinstance(value, (dict, list)) else 0


def _kind(value: Any) -> str:
    names = {
        type(None): "null",
        bool: "true or false",
        str: "a text",
        list: "a list",
        dict: "an object",
    }
    return names.get(type(value), "a number")


def explained(message: str, given: Any) -> tuple[str, str]:
    """What msgspec found, with the value; the remedy follows from the rule."""
    what, _, where = message.replace("`", "").partition(" - at $")
    field = where.strip(".").partition("[")[0]
    if what.startswith("Object contains unknown field"):
        name = what.rpartition("field ")[2]
        return f"{name[:80]!r} is no field of an item", "leave it out, or look for a misspelling"
    if what.startswith("Object missing required field"):
        return f"{what.rpartition(' ')[2]} is missing", "send it with the item"
    value = given.get(field) if isinstance(given, dict) else given
    shown = json.dumps(value)
    shown = shown if len(shown) <= 60 else f"{shown[:57]}..."
    return f"{field or 'the item'} is {shown}", wanted(what)
