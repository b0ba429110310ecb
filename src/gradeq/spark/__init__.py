"""Layers on Spark: whole tables and streams, many keys spread over machines, the library's own bits."""

from gradeq.spark.batch import Adjusted, adjust, read
from gradeq.spark.boards import elo
from gradeq.spark.refusals import refusals
from gradeq.spark.session import session, stream_settings
from gradeq.spark.stream import Followed, certificates_of, events_of, follow, states_in, together
from gradeq.spark.whole import Whole, adjust_whole
from gradeq.spark.whole_stream import layer_in, whole_stream

__all__ = [
    "Adjusted",
    "Followed",
    "Whole",
    "adjust",
    "certificates_of",
    "elo",
    "events_of",
    "follow",
    "layer_in",
    "read",
    "refusals",
    "adjust_whole",
    "session",
    "states_in",
    "stream_settings",
    "together",
    "whole_stream",
]
