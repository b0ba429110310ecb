"""Layers on Spark: whole tables and streams, many keys spread over machines, the library's own bits."""

from gradeq.spark.batch import Adjusted, adjust, read
from gradeq.spark.refusals import refusals
from gradeq.spark.session import session, stream_settings

__all__ = ["Adjusted", "adjust", "read", "refusals", "session", "stream_settings"]
