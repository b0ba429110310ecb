"""The long description of the package: README.md as a package index can show it.

An index has the text alone, so relative links and images would be dead: images go, and what a link named is written
after its text as a path in the source distribution.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

try:
    from hatchling.metadata.plugin.interface import MetadataHookInterface
except ImportError:  # tests read the text without the build tool
    MetadataHookInterface = object

IMAGE = re.compile(r"^!\[[^\]]*\]\((?!https?://)[^)]*\)\n+", re.MULTILINE)
LINK = re.compile(r"\[([^\]]+)\]\((?!https?://)([^)\s]+)\)")
NOTE = "Pages named `docs/...` and notebooks are in the source distribution."


def long_description(readme: str) -> str:
    """The README without what only a checkout can show."""

    def spelled(link: re.Match[str]) -> str:
        text, target = link.groups()
        if target.startswith("#"):
            return text
        return f"`{target}`" if text == target else f"{text} (`{target}`)"

    return f"{LINK.sub(spelled, IMAGE.sub('', readme)).rstrip()}\n\n{NOTE}\n"


class LongDescription(MetadataHookInterface):  # type: ignore[misc,valid-type,unused-ignore]
    """Gives the metadata its readme when a package is built."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the readme."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": long_description(text)}
