"""``gradeq elo``: the options and their help."""

from __future__ import annotations

from typing import Any

import click

from gradeq.cli.options import Positive, column, common, shared


@click.command(short_help="Rate players so that predicted and actual win rates agree.")
@column("--a", "a", required=True, help="The first player of each game.")
@column("--b", "b", required=True, help="The second player.")
@column(
    "--winner",
    help=(
        "Who won: the player's name, a/b, model_a/model_b, home/away; "
        "tie, draw, `tie (bothbad)`, both_bad."
    ),
)
@column("--score", help="a's score in [0, 1], instead of --winner.")
@click.option(
    "--ties",
    type=click.Choice(["half", "drop"]),
    default="half",
    show_default=True,
    help="A tie is half a win for both, or no game.",
)
@click.option("--k", type=Positive(), metavar="K", help="The chess K-factor: eta = K ln 10 / 400.")
@click.option("--skip-self", is_flag=True, help="Leave out games of a player against itself.")
@click.option(
    "--predictions",
    type=click.Path(),
    metavar="OUT2",
    help="Write the input rows with p, the probability before each game that a wins.",
)
@click.option(
    "--column",
    "column_name",
    default="p",
    metavar="NAME",
    show_default=True,
    help="Name of the new column of --predictions.",
)
@shared
def command(**given: Any) -> None:
    """Rate players so that predicted and actual win rates agree.

    Before each game the ratings give the probability that a wins; after it they move by the step
    times the surprise. Each player's mean predicted win rate approaches the actual one, whatever
    the games: the difference is -rating / (eta games), exactly, for a constant step.

    Without --eta or --k the step is 0.1 (K = 17). -o writes one row per player: player, rating
    (natural log-odds), elo (1000 + 400/ln 10 * rating), games, wins, win_rate,
    predicted_win_rate, bias, bound.

    \b
    Examples
      gradeq elo games.csv --a home --b away --winner winner
      gradeq elo games.csv --a home --b away --winner winner --ties drop --k 20 \\
          -o leaderboard.csv --predictions games-with-p.csv --report elo.html
      gradeq elo games.csv --a home --b away --score score --time day --state elo.json --json

    \b
    Exit code
      0 done   2 wrong usage or bad input   3 damaged state
    An error is one line on stderr; no output is left behind and the state is as it was.
    """
    options = common(given)
    if (given["winner"] is None) == (given["score"] is None):
        raise click.UsageError("give --winner or --score, one of the two")
    if given["k"] is not None and options.eta is not None:
        raise click.UsageError("--k sets the step; leave out --eta")
    from gradeq.cli.elo_job import carry_out
    from gradeq.cli.elo_summary import as_json, terminal

    outcome = carry_out(options, **given)
    if options.json:
        click.echo(as_json(outcome))
    elif not options.quiet:
        click.echo(terminal(outcome))
