"""Why a whole request is refused; what is wrong with one item is in its answer."""

from __future__ import annotations

from gradeq.errors import GradeqError


class NoSuchLayer(GradeqError):
    """The tenant has no layer of this name."""


class LayerExists(GradeqError):
    """There is a layer of this name, with other settings."""


class LayerStopped(GradeqError):
    """The layer does not learn: its books do not balance, or it left its proven range."""


class Busy(GradeqError):
    """More is waiting to be written than the server takes."""
