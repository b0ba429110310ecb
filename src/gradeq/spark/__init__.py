"""Layers on Spark: whole tables and streams, many keys spread over machines, the library's own bits."""

from gradeq.spark.batch import Adjusted, adjust, read
from gradeq.spark.refusals import refusals
from gradeq.spark.session import session, stream_settings
from gradeq.spark.stream import Followed, certificates_of, events_of, follow, states_in, together

__all__ = [
    "Adjusted",
    "Followed",
    "adjust",
    "certificates_of",
    "events_of",
    "follow",
    "read",
    "refusals",
    "session",
    "states_in",
    "stream_settings",
    "together",
]
