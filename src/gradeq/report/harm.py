"""What the layer made worse: the loss, and groups by name. The run of a file and a state are told of it alike."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from gradeq.equilibrium import Equilibrium, column_of
from gradeq.ledger import facts as fact
from gradeq.report import notices as say
from gradeq.report.story import Loss, Notice, Pair
from gradeq.report.words import FEW, loss_change, turn, typical
from gradeq.theory.cap import JUDGED


class Measured(NamedTuple):
    """A group with labels: its bias, or its coverage where it has a ``target``, and its loss."""

    name: str
    rows: int
    error: Pair
    loss: Pair
    target: float | None = None
    negligible: float = 0.0

    def off(self, value: float) -> float:
        """How far a bias is from 0, a coverage from its target."""
        return abs(value - (self.target or 0.0))

    @property
    def grew(self) -> bool:
        """Whether its error went away from where it should be."""
        scale = 1.0 if self.target else typical(self._loss)
        return turn(self.off(self.error.before), self.off(self.error.after), scale) == "worse"

    @property
    def dearer(self) -> bool:
        """Whether its loss rose."""
        return loss_change(self._loss) == "rose"

    @property
    def _loss(self) -> Loss:
        return Loss("", self.loss.before, self.loss.after, self.negligible)

    @property
    def clear(self) -> bool:
        """Whether the error that is left exceeds twice its standard error."""
        spread = self.target * (1.0 - self.target) if self.target else self.loss.after
        return self.off(self.error.after) > 2.0 * math.sqrt(spread / self.rows)


def harm(
    layer: Any, loss: Loss, labels: int, groups: Sequence[Measured], weighted: bool
) -> list[Notice]:
    """The loss got worse, groups got worse; nothing where neither did, or where labels are too few to tell."""
    if labels < FEW:
        return []
    known = [g for g in groups if is_known(g.error) and is_known(g.loss)]
    found = [worse([g._replace(negligible=loss.negligible) for g in known], loss.name)]
    if is_known(loss):
        found.insert(0, say.loss_worse(loss, moves_less(layer, weighted)))
    return [notice for notice in found if notice is not None]


def is_known(pair: Pair | Loss) -> bool:
    """Whether both figures are numbers: rounding may have destroyed them."""
    return not (math.isnan(pair.before) or math.isnan(pair.after))


def moves_less(layer: Any, weighted: bool) -> str:
    """What costs less than the automatic step."""
    settings = getattr(layer, "layer", layer).settings
    if settings.get("eta") != "auto":
        if clip_of(settings) > JUDGED:
            return f"Try a `--clip` below {settings['clip']:g}, then a smaller `--eta`."
        return "" if layer._takes_auto else "Try a smaller `--eta`."
    # Results B1 and C4 are of labels known before the next row; the sinh link of quantiles has no such limit.
    proven = "outcome" in settings and not weighted
    if not proven or layer.in_flight["longest_delay"]:
        return "`--eta plain` makes smaller corrections."
    if clip_of(settings) > JUDGED:
        return f"A `--clip` below {settings['clip']:g} costs less; so does `--eta plain`."
    loss = "log loss" if settings["outcome"] == "binary" else "squared error"
    return f"`--eta plain` makes smaller corrections, with a proven limit on the extra {loss}."


def clip_of(settings: dict[str, Any]) -> float:
    """How far from 0 and 1 predictions are kept before they are corrected."""
    logit = settings.get("outcome") == "binary" and settings.get("link") != "shift"
    return float(settings["clip"]) if logit else 0.0


def ever_weighted(layer: Any, reached: Equilibrium) -> bool:
    """Whether labels of a state had weights other than 1."""
    heavy = layer._state.facts[fact.HEAVIEST] != 1.0
    rows, weights = (column_of(reached.coordinates, name) for name in ("rows", "weight"))
    return bool(heavy) or rows != weights


def worse(groups: Sequence[Measured], loss: str) -> Notice | None:
    """The groups whose bias, coverage or loss got worse, named."""
    grown = sorted(
        (g for g in groups if g.grew), key=lambda g: g.off(g.error.before) - g.off(g.error.after)
    )
    dearer = [g for g in groups if g.dearer]
    if len(groups) < 2 or not (grown or dearer):
        return None
    return say.worse_groups(
        [(g.name, g.error) for g in grown],
        [(g.name, g.loss) for g in dearer],
        len(groups),
        "Bias" if groups[0].target is None else "Coverage",
        loss.capitalize(),
        bool(dearer) or any(g.clear for g in grown),
    )
