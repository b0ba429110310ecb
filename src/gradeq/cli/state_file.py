"""The state in its file: read whole or refused, written whole or not at all."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from gradeq.errors import BadInput, StateError

if TYPE_CHECKING:
    from gradeq.layers.layer import Layer


def read_state(path: str) -> Layer | None:
    """The layer saved there, or None when there is no such file."""
    from gradeq.layers.registry import from_json

    text = read_text(path)
    if text is None:
        return None
    try:
        return from_json(text)
    except StateError as error:
        raise type(error)(f"{path}: {error}") from None


def read_text(path: str) -> bytes | None:
    """The bytes of a state file, or None when it does not exist."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}; name a state file") from None


def check_place(path: str) -> None:
    """Refuse at once a state that could not be written at the end."""
    from gradeq.files import check_output

    check_output(path)
    folder = os.path.dirname(os.path.realpath(path))
    if not os.access(folder, os.W_OK):
        raise BadInput(f"{path} cannot be written: no permission in {folder}; choose another place")
