"""The light of a layer: green, amber or red, with the reason in a few words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gradeq.report.numerals import some
from gradeq.report.story import EloStory, Notice
from gradeq.report.words import FEW

Level = Literal["green", "amber", "red"]

WORDS: dict[Level, str] = {"green": "healthy", "amber": "worth a look", "red": "learning stopped"}
"""What each light says."""


@dataclass(frozen=True)
class Light:
    """Green: checks hold and nothing is amiss. Amber: still learning, a warning holds. Red: learning stopped."""

    level: Level
    reason: str  # empty while green: what the layer is stands there


def light_of(
    known: Any, frozen: bool, notices: Sequence[Notice], checks: Sequence[Any], story: Any
) -> Light:
    """The light of a layer from what stopped it, from what is warned of, and from the checks of its ledger."""
    failed = [check.name for check in checks if not check.good]
    if failed:  # this also stops it, and says more
        return Light("red", failed[0])
    if known.stopped:
        return Light("red", "Learning stopped")
    if known.unwritable:
        return Light("red", "Store not writable")
    if known.diverged:
        return Light("red", "Diverged")
    if frozen:
        return Light("amber", "Learning paused")
    warned = [notice for notice in notices if notice.level != "note"]
    if warned:
        return Light("amber", SHORT.get(_first_words(warned[0].claim), _cut(warned[0].claim)))
    labels = story.games if isinstance(story, EloStory) else story.labelled
    return Light("green", "" if labels >= FEW else f"{some(labels, 'label')} learned from")


SHORT = {
    "Step capped": "Step capped",
    "Labels stopped": "Labels stopped",
    "The oldest": "Labels overdue",
}


def _first_words(claim: str) -> str:
    return " ".join(claim.split()[:2])


def _cut(claim: str) -> str:
    """The claim in fewer words; the page cuts what does not fit beside a light."""
    return claim.split(" by ")[0].rstrip(".").replace("got worse", "worse")
