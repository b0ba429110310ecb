"""What went wrong below, as problem details; anything that is not known here is our own fault."""

from __future__ import annotations

from gradeq.errors import GradeqError, OtherSettings
from gradeq.service.failures import Busy, LayerExists, LayerStopped, NoSuchLayer
from gradeq.service.problems import Problem, retry_after, split_remedy
from gradeq.service.store.failures import StoreTaken, StoreUnavailable
from gradeq.service.wording import in_json

KNOWN: tuple[tuple[type[Exception], int, str, bool], ...] = (
    (NoSuchLayer, 404, "no_such_layer", False),
    (LayerExists, 409, "layer_exists", False),
    (LayerStopped, 409, "layer_stopped", False),
    (Busy, 429, "busy", True),
    (StoreUnavailable, 503, "store_unavailable", True),
    (StoreTaken, 503, "store_taken", True),
    (OtherSettings, 409, "other_settings", False),
    (GradeqError, 422, "refused", False),
)
LATER = "send the same again later"
WAIT = 1.0  # seconds, where nothing better is known


def problem_of(error: Exception) -> Problem:
    """The problem details of an error."""
    if isinstance(error, Problem):
        return error
    for kind, status, code, again in KNOWN:
        if isinstance(error, kind):
            told = in_json(str(error))
            detail, remedy = split_remedy(told, LATER) if again else split_remedy(told)
            return Problem(status, code, detail, remedy, retry_after(WAIT) if again else None)
    return Problem(
        500, "internal", f"an internal error ({type(error).__name__})",
        "send the same again (ids make that safe), look into the log of the server, and report it",
    )  # fmt: skip
