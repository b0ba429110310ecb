"""Strengths of players from their pair table: fit, intervals, rank ranges, and how two views are averaged."""
