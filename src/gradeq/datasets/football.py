"""International football: men's matches since 1872, and a small sample within the package."""

from __future__ import annotations

import csv
import importlib.resources
import io
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gradeq.datasets.catalog import CsvColumns, Dataset, Days, File, Folder, Texts, read_csv

_COLUMNS = ("date", "home_team", "away_team", "winner", "neutral")


def _with_winner(data: bytes) -> bytes:
    """The public file with a column ``winner``, without matches that were not played yet."""
    rows = csv.DictReader(io.StringIO(data.decode("utf-8"), newline=""))
    out = io.StringIO()
    names = [*(rows.fieldnames or []), "winner"]
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        try:
            home, away = int(row["home_score"]), int(row["away_score"])
        except ValueError:
            continue
        winner = "home" if home > away else "away" if away > home else "draw"
        neutral = row["neutral"].strip().capitalize()
        writer.writerow({**row, "neutral": neutral, "winner": winner})
    return out.getvalue().encode("utf-8")


DATASET = Dataset(
    name="football",
    title="Men's international football results since 1872",
    source="https://github.com/martj42/international_results",
    licence="CC0-1.0",
    # No digest: the public file grows with every match.
    files=(
        File(
            "football_internationals.csv.gz",
            (),
            "https://raw.githubusercontent.com/martj42/international_results/master/results.csv",
            _with_winner,
        ),
    ),
    columns=_COLUMNS,
    about="About 49,500 matches by date, home side first; winner is home, away or draw.",
)


class Matches(NamedTuple):
    """Columns of equal length, by date."""

    date: Days
    home: Texts
    away: Texts
    winner: Texts
    neutral: npt.NDArray[np.bool_]  # on neither side's ground


def load(folder: Folder = None) -> Matches:
    """All matches by date."""
    return _matches(read_csv(DATASET, folder))


def sample() -> Matches:
    """The last 1,500 matches among 40 well-known teams, carried within the package."""
    place = importlib.resources.files("gradeq.datasets") / "football_sample.csv.gz"
    with importlib.resources.as_file(place) as path:
        return _matches(CsvColumns(path, _COLUMNS))


def _matches(columns: CsvColumns) -> Matches:
    return Matches(
        date=columns.moments("date"),
        home=columns.texts("home_team"),
        away=columns.texts("away_team"),
        winner=columns.texts("winner"),
        neutral=columns.texts("neutral") == "True",
    )
