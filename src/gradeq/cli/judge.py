"""How served values are judged against labels: bias and loss, or coverage and pinball loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from gradeq.files.numbers import Floats
from gradeq.layers.support import limits_of

CLIP = 1e-6
ROUNDING = 2.0**-48  # of a label: some sixteen times what one operation may lose


class Judge(Protocol):
    """What each labelled row is measured by; every measure has a before and an after."""

    @property
    def names(self) -> tuple[str, ...]:
        """The measures, each with ``_before`` and ``_after`` at its end."""
        ...

    def columns(self, base: Floats, served: Floats, y: Floats) -> dict[str, Floats]:
        """The measures of labelled rows."""
        ...


@dataclass(frozen=True)
class Bias:
    """Error served - y and its square; for probabilities the log loss too."""

    binary: bool

    @property
    def names(self) -> tuple[str, ...]:
        """bias, loss and perhaps log."""
        both = ("bias_before", "bias_after", "loss_before", "loss_after")
        return (*both, "log_before", "log_after") if self.binary else both

    def columns(self, base: Floats, served: Floats, y: Floats) -> dict[str, Floats]:
        """Errors, squares, log losses."""
        raw, now = errors(base, y), errors(served, y)
        found = {
            "bias_before": raw,
            "bias_after": now,
            "loss_before": raw * raw,
            "loss_after": now * now,
        }
        if self.binary:
            found["log_before"] = log_loss(base, y)
            found["log_after"] = log_loss(served, y)
        return found


@dataclass(frozen=True)
class Cover:
    """Whether y <= served at each level (an interval: lower < y <= upper), and the pinball loss."""

    levels: tuple[float, ...]
    interval: bool = False
    support: tuple[float | None, float | None] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """cover_k and loss_k for each level, loss for their mean, inside for an interval.

        With limits each also as ``_clipped``, the raw and the served values held inside; without it ``_after`` is
        that of the values before the limits.
        """
        found = ["loss_before", "loss_after"]
        for k in range(len(self.levels)):
            found += [f"cover{k}_before", f"cover{k}_after", f"loss{k}_before", f"loss{k}_after"]
        found += ["inside_before", "inside_after"] if self.interval else []
        if self.support is None:
            return tuple(found)
        return (*found, *("_clipped_".join(name.rsplit("_", 1)) for name in found))

    def columns(self, base: Floats, served: Floats, y: Floats) -> dict[str, Floats]:
        """Coverage and pinball loss, level by level; base and served have a column for each."""
        found: dict[str, Floats] = {}
        limits = limits_of(self.support)
        sides = [("before", base), ("after", served)]
        if self.support is not None:
            sides += [(f"clipped_{when}", np.clip(values, *limits)) for when, values in sides]
        for when, values in sides:
            mean = np.zeros(len(y))
            for k, level in enumerate(self.levels):
                covered = y <= values[:, k]
                found[f"cover{k}_{when}"] = covered.astype(float)
                loss = (y - values[:, k]) * (level - covered)
                found[f"loss{k}_{when}"] = loss
                mean += loss
            found[f"loss_{when}"] = mean / len(self.levels)
            if self.interval:
                lower = values[:, 0]
                above = lower < y
                if when.startswith("clipped"):  # at a limit the lower end is inclusive
                    above |= (lower == y) & ((lower == limits[0]) | (lower == limits[1]))
                inside = above & (y <= values[:, -1])
                found[f"inside_{when}"] = inside.astype(float)
        return found


def errors(values: Floats, y: Floats) -> Floats:
    """Values - y; what rounding alone may have left of a difference is none."""
    found: Floats = values - y
    found[np.abs(found) <= ROUNDING * np.abs(y)] = 0.0
    return found


def log_loss(p: Floats, y: Floats) -> Floats:
    """Log loss of each row, p clipped to [1e-6, 1 - 1e-6]."""
    p = np.clip(p, CLIP, 1.0 - CLIP)
    return -(y * np.log(p) + (1.0 - y) * np.log1p(-p))


def as_levels(texts: Sequence[str]) -> tuple[float, ...]:
    """The levels as numbers."""
    return tuple(float(text) for text in texts)
