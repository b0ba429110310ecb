"""The exceptions and warnings of gradeq.

Every refusal is a ``GradeqError`` (a ``ValueError``): one line with the value, the rule and the remedy;
the call changed nothing. Every warning is a ``GradeqWarning`` (a ``UserWarning``).
"""

from __future__ import annotations

import sys
import warnings


class GradeqError(ValueError):
    """Every refusal of gradeq, in one line."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(" ".join(x.splitlines()) if isinstance(x, str) else x for x in args))


class BadInput(GradeqError):
    """A value, column or file that cannot be used."""


class StepTooLarge(GradeqError):
    """A step size outside the range where the layer is stable."""


class Diverging(GradeqError):
    """A parameter left its proven range or is no longer finite; the state was not changed."""


class TicketError(GradeqError):
    """A label that fits no open ticket."""


class UnknownTicket(TicketError):
    """No prediction was served under this id."""


class ExpiredTicket(TicketError):
    """The ticket's time to live had passed before its label came."""


class LabelConflict(TicketError):
    """A second label for the same ticket, with another value."""


class StateError(GradeqError):
    """A saved state that is damaged, of a newer version, or not a state of gradeq."""


class OtherSettings(StateError):
    """A saved state of a layer with other settings; ``name``: the first setting that differs, if known."""

    def __init__(self, *args: object, name: str | None = None) -> None:
        super().__init__(*args)
        self.name = name


class MissingExtra(GradeqError):
    """An optional dependency is not installed; the message says how to install it."""


class GradeqWarning(UserWarning):
    """Every warning of gradeq."""


class ReplacedPrediction(GradeqWarning):
    """A prediction without an id was replaced by the next one before its label came."""


def missing_extra(extra: str, purpose: str) -> MissingExtra:
    """The error for an absent optional dependency, with the exact command to run."""
    return MissingExtra(f'gradeq[{extra}] is needed for {purpose}: pip install "gradeq[{extra}]"')


def warn_deprecated(old: str, new: str) -> None:
    """Warn of an old spelling where gradeq was called."""
    message = f"{old} is deprecated and goes with the next version; use {new}"
    warnings.warn(message, DeprecationWarning, stacklevel=calling_depth())


def calling_depth() -> int:
    """How many frames above the caller of this function the line is that called gradeq."""
    frame, depth = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("gradeq."):
        frame, depth = frame.f_back, depth + 1
    return depth
