"""``gradeq elo``: the options and their help."""

from __future__ import annotations

from typing import Any

import click

from gradeq.cli.kinds import Positive
from gradeq.cli.options import Once, column, common, need_label, shared


@click.command(cls=Once, short_help="Rate players so that predicted and actual win rates agree.")
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
@click.option(
    "--home",
    metavar="a|COL",
    help="Who is at home: a in every game, or a column of 1/0/-1, a/neutral/b or true/false.",
)
@column(
    "--neutral",
    help=(
        "Whether the ground is neutral (true/false): nobody is at home there, whatever --home "
        "says; elsewhere a is, unless --home names a column."
    ),
)
@click.option(
    "--view",
    type=click.Choice(["auto", "all-time", "now"]),
    default="auto",
    show_default=True,
    help="All games alike, the strengths of the moment, or what the games say about drift.",
)
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

    The leaderboard is a Bradley-Terry fit of all games, with 95 % intervals and the ranks they
    leave open; where strengths drift, recent games count more. Recent is by --time, or without
    it by the order of the file; --view all-time does not depend on any order.
    1000 is the mean of the ranked players. No rank: fewer than 30 games, a strength of the
    moment that is not known within 240 Elo, or no chain of games to the largest group.

    Before each game a forecast is made: by filters that expect more or less drift, mixed by
    their log loss, or with --eta or --k by plain Elo. Each player's mean predicted win rate
    approaches the actual one, whatever the games: the difference is -tracked / (eta games),
    exactly, for a constant step.

    With --id and --state games may have no result yet, and --winner and --score may be left out:
    they are predicted and wait until gradeq label brings their results.

    -o writes one row per player: rank, rank_low, rank_high, player, elo, elo_low, elo_high,
    games, wins, win_rate, predicted_win_rate, bias, bound, rating (elo in natural log-odds),
    elo_all_time, elo_now, tracked.

    \b
    Examples
      gradeq elo games.csv --a home --b away --winner winner --home a
      gradeq elo games.csv --a home --b away --winner winner --ties drop --k 20 \\
          -o leaderboard.csv --predictions games-with-p.csv --report elo.html
      gradeq elo games.csv --a home --b away --score score --time day --state elo.json --json
      gradeq elo fixtures.csv --a home --b away --time day --id game --state elo.json \\
          --predictions fixtures-with-p.csv

    \b
    Exit code
      0 done   2 wrong usage or bad input   3 damaged state
    An error is one line on stderr; no output is left behind and the state is unchanged.
    """
    options = common(given)
    winner, score = given["winner"], given["score"]
    if winner is not None and score is not None:
        raise click.UsageError("give --winner or --score, one of the two")
    need_label(winner if score is None else score, options, "--winner or --score")
    if given["k"] is not None and options.eta is not None:
        raise click.UsageError("--k sets the step; leave out --eta")
    from gradeq.cli.elo_job import carry_out
    from gradeq.cli.elo_summary import as_json, terminal

    outcome = carry_out(options, **given)
    if options.json:
        click.echo(as_json(outcome))
    elif not options.quiet:
        click.echo(terminal(outcome))
