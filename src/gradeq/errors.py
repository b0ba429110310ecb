"""The exceptions of gradeq.

    GradeqError (ValueError)      every refusal of ours; the message has the value, the rule, the remedy
    ├── BadInput                  a value, column or file that cannot be used
    ├── StepTooLarge              a step size outside the range where the layer is stable
    ├── Diverging                 a parameter left its proven range; the state was not changed
    ├── TicketError               a label that fits no open ticket
    │   ├── UnknownTicket
    │   ├── ExpiredTicket
    │   └── LabelConflict         a second label for the same ticket, with another value
    ├── StateError                a saved state that is damaged, newer, or not ours
    │   └── OtherSettings         a saved state of a layer with other settings
    └── MissingExtra              an optional dependency that is not installed

Refused means unchanged: what was learned is as it was before the call.

Warnings of gradeq's own are a ``GradeqWarning`` (UserWarning):

    GradeqWarning
    └── ReplacedPrediction        a second prediction without an id came before the label of the first
"""

from __future__ import annotations

import sys
import warnings


class GradeqError(ValueError):
    """Every refusal of gradeq's own, in one line: a value that prints in several is joined."""

    def __init__(self, *given: object) -> None:
        super().__init__(*(" ".join(x.splitlines()) if isinstance(x, str) else x for x in given))


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
    """A saved state that is damaged, newer than this version, or not ours."""


class OtherSettings(StateError):
    """A saved state of a layer with other settings; ``name``: the first setting that differs, if known."""

    def __init__(self, *given: object, name: str | None = None) -> None:
        super().__init__(*given)
        self.name = name


class MissingExtra(GradeqError):
    """An optional dependency is not installed; the message says how to install it."""


class GradeqWarning(UserWarning):
    """Every warning of gradeq's own."""


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
    """How many frames above the function that asks stands the line that called gradeq."""
    frame, depth = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("gradeq."):
        frame, depth = frame.f_back, depth + 1
    return depth
