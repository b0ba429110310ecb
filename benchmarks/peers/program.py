"""What `make bench-peers` runs: the tasks, the events, and what grows."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple


class Task(NamedTuple):
    """A line of the table: which task of the systems, and its sizes. ``without``: systems that take too long."""

    name: str
    sizes: Mapping[str, int] = MappingProxyType({})
    without: tuple[str, ...] = ()


TASKS = {
    "one parameter": Task("scalar"),
    "ten groups": Task("groups, integers"),
    "three overlapping group columns": Task("three overlapping groups"),
    "ten features": Task("features"),
    "quantile": Task("quantile, linear"),
    "interval": Task("interval"),
    "23 levels that never cross": Task("23 levels"),
    "ensemble of 8 trackers": Task("ensemble of 8"),
    "Elo forecasts, 150 players": Task("Elo, integers"),
    "ratings from names, 150 players": Task("ratings, names"),
    "ratings from names, 10,000 players": Task("ratings, names", {"players": 10_000}),
    "leaderboard with intervals, 150 players": Task("leaderboard, names"),
    # arena-rank inverts a matrix of players by players, and resampling takes many minutes.
    "leaderboard with intervals, 10,000 players": Task(
        "leaderboard, names", {"players": 10_000}, ("arena-rank", "evalica, resampled")
    ),
    "1,000,000 series, whole numbers": Task("keyed, integers", {"rows": 10_000_000}, ("river",)),
    "1,000,000 series, text": Task("keyed, text", {"rows": 10_000_000}),
    "20,000 series, whole numbers": Task("keyed, integers", {"rows": 200_000}),
}

# One event at a time: our kind, and the task of the systems that take one row at a time.
EVENTS = {
    "scalar": "scalar",
    "scalar, ids": "",
    "ten disjoint groups": "groups, integers",
    "three overlapping groups": "three overlapping groups",
    "quantile, linear": "quantile, linear",
    "quantile, sinh": "",
    "interval": "interval",
    "keyed": "keyed, integers",
    "auto": "",
    "Elo": "Elo, integers",
}


class Axis(NamedTuple):
    """What grows while the rest stays: the task, the size's name, its values, and rows by system."""

    task: str
    size: str
    values: tuple[int, ...]
    rows: dict[str, int]


MANY = (4, 8, 16, 32)
AXES = {
    "rows": Axis("scalar", "rows", (), {"gradeq": 1_600_000, "river": 80_000, "Vowpal Wabbit": 40_000,
                                          "scikit-learn": 2_000, "torch loop": 4_000}),
    "rows of intervals": Axis("interval", "rows", (), {"gradeq": 1_600_000, "river": 80_000, "MAPIE": 2_000}),
    "games rated": Axis("ratings, names", "rows", (), {"gradeq": 1_600_000, "evalica": 800_000, "riix": 80_000,
                                                         "elote": 80_000}),
    "games on a board": Axis("leaderboard, names", "rows", (), {"gradeq": 1_600_000, "openskill": 16_000,
                                                                  "arena-rank": 800_000}),
    "features": Axis("features", "d", MANY, {"gradeq": 200_000, "river": 10_000, "Vowpal Wabbit": 10_000,
                                               "scikit-learn": 1_000, "torch loop": 2_000}),
    "levels": Axis("23 levels", "levels", (6, 12, 23, 46), {"gradeq": 50_000, "scikit-learn": 2_000}),
    "experts": Axis("ensemble of 8", "experts", MANY, {"gradeq": 100_000, "torch loop": 1_000}),
    "series": Axis("keyed, integers", "keys", (1_000, 10_000, 100_000, 1_000_000),
                   {"gradeq": 4_000_000, "river": 100_000}),
    "players rated": Axis("ratings, names", "players", (100, 400, 1_600, 6_400),
                          {"gradeq": 400_000, "evalica": 400_000, "riix": 40_000, "elote": 40_000}),
    "players on a board": Axis("leaderboard, names", "players", (100, 200, 400, 800),
                               {"gradeq": 400_000, "openskill": 8_000, "arena-rank": 100_000}),
    "open tickets": Axis("event: by id, others open", "tickets", (1_000, 10_000, 100_000), {"gradeq": 5_000}),
}  # fmt: skip
