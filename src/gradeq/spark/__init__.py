"""Layers on Spark: tables and streams with many keys, spread over machines, bit for bit as the library."""

from gradeq.spark.batch import Adjusted, adjust, elo, read
from gradeq.spark.global_layer import Whole, adjust_whole, layer_in, whole_stream
from gradeq.spark.roles import refusals, session, stream_settings
from gradeq.spark.stream import Followed, certificates_of, events_of, follow, states_in, together

__all__ = [
    "Adjusted", "Followed", "Whole", "adjust", "certificates_of", "elo", "events_of", "follow", "layer_in", "read",
    "refusals", "adjust_whole", "session", "states_in", "stream_settings", "together", "whole_stream",
]  # fmt: skip
