"""What can be wrong with a store."""

from __future__ import annotations

from gradeq.errors import GradeqError, StateError


class StoreUnavailable(GradeqError):
    """The store cannot be read or written now; nothing was changed."""


class StoreStopped(StoreUnavailable):
    """The disk failed to keep what it was given: it must not be trusted again before a restart and an audit."""


class StoreDamaged(StateError):
    """The store holds what no server of ours wrote."""


class StoreTaken(GradeqError):
    """Another server is at work on this store."""
