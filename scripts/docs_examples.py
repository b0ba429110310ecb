"""For the site of the documentation: the ``>>>`` examples of docstrings become blocks of code."""

from __future__ import annotations

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"(?:^ *>>> .*\n(?: *\S.*(?:\n|$))*)+", re.MULTILINE)


def fenced(text: str) -> str:
    """The text with a fence around every example, from its first ``>>>`` to the next empty line."""
    return EXAMPLE.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", text + "\n").rstrip()


class Examples(griffe.Extension):
    """Fences the examples of everything that is documented."""

    def on_instance(self, *, obj: Any, **given: Any) -> None:
        """Change the docstring of an object as soon as it is read."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
