"""Records of a large JSON array, one at a time: the file is never in memory as a whole."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from typing import Any

from gradeq.errors import BadInput

_BLOCK = 1 << 20


def battles_in(path: str | os.PathLike[str], columns: Sequence[str]) -> Iterator[dict[str, Any]]:
    """The objects of the file's array; each must have these columns."""
    where = os.fspath(path)
    for number, record in enumerate(_records(where), start=1):
        if not isinstance(record, dict):
            raise BadInput(f"{where}: record {number} is no object; is it the battles file?")
        for name in columns:
            if name not in record:
                raise BadInput(f"{where}: record {number} has no {name!r}; is it the battles file?")
        yield record


def _records(where: str) -> Iterator[Any]:
    decoder = json.JSONDecoder()
    with open(where, encoding="utf-8") as file:
        text = file.read(_BLOCK).lstrip()
        if not text.startswith("["):
            raise BadInput(f"{where} is not a JSON array of records")
        at, whole = 1, False
        while True:
            while at < len(text) and text[at] in " \t\r\n,":
                at += 1
            if at < len(text) and text[at] == "]":
                return
            try:
                record, at = decoder.raw_decode(text, at)
            except json.JSONDecodeError:
                if whole:
                    raise BadInput(f"{where} is damaged or cut short: no whole record") from None
                more = file.read(_BLOCK)
                whole = not more
                text, at = text[at:] + more, 0
                continue
            yield record
