"""The state in its file: read whole or refused, written whole or not at all."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

from gradeq.errors import BadInput, StateError

if TYPE_CHECKING:
    from gradeq.layers.layer import Layer


def read_state(path: str) -> Layer | None:
    """The layer saved there, or None when there is no such file."""
    text = read_text(path)
    return None if text is None else layer_of(path, text)


def layer_of(path: str, text: bytes) -> Layer:
    """The layer that the bytes of a state file say."""
    from gradeq.layers.doubts import silenced
    from gradeq.layers.registry import from_json

    try:
        return silenced(from_json(text))
    except StateError as error:
        raise type(error)(f"{path}: {error}") from None


def read_text(path: str) -> bytes | None:
    """The bytes of a state file (or of a pipe, to look at), None when it does not exist."""
    from gradeq.files.failures import reading
    from gradeq.files.pipes import opened
    from gradeq.files.places import refuse_address

    if not path:
        raise BadInput("the name of a state is empty; name a state file")
    if not os.path.exists(path):
        refuse_address(path, "read", "download it first")
    with reading(path, "name a state file"):
        try:
            kind = os.stat(path).st_mode
        except FileNotFoundError:
            return None
        if stat.S_ISCHR(kind) or stat.S_ISBLK(kind):
            raise BadInput(f"{path} is a device; name a state file")
        with opened(path) as file:
            return file.read()


def check_place(path: str) -> None:
    """Refuse at once a state that could not be written at the end."""
    from gradeq.files import check_output

    check_output(path)
    folder = os.path.dirname(os.path.realpath(path))
    if not os.access(folder, os.W_OK):
        raise BadInput(f"{path} cannot be written: no permission in {folder}; choose another place")
