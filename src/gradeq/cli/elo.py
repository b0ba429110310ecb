"""``gradeq elo``: its options."""

from __future__ import annotations

from typing import Any

import click

from gradeq.cli.options import (
    POSITIVE,
    SingleUseCommand,
    column,
    option_group,
    require_label,
    shared_options,
    take_common,
)

elo_options = option_group(
    column("--a", "a", required=True, help="The first player of each game."),
    column("--b", "b", required=True, help="The second player."),
    column("--winner", help=(
        "Who won: the player's name, a/b, model_a/model_b, home/away; tie, draw, `tie (bothbad)`, both_bad.")),
    column("--score", help="a's score in [0, 1], instead of --winner."),
    click.option("--ties", type=click.Choice(["half", "drop"]), default="half", show_default=True, help=(
        "A tie is half a win for both, or no game.")),
    click.option("--k", type=POSITIVE, metavar="K", help="The chess K-factor: eta = K ln 10 / 400."),
    click.option("--home", metavar="a|COL", help=(
        "Who is at home: a in every game, or a column of 1/0/-1, a/neutral/b or true/false.")),
    column("--neutral", help=(
        "Whether the venue is neutral (true/false), whatever --home says. Elsewhere a is at home, unless --home "
        "names a column.")),
    click.option("--view", type=click.Choice(["auto", "all-time", "now"]), default="auto", show_default=True, help=(
        "All games equally, current strengths, or whichever the drift in the games suggests.")),
    click.option("--skip-self", is_flag=True, help="Leave out games of a player against itself."),
    click.option("--predictions", "rows_file", type=click.Path(), metavar="OUT2", help=(
        "Write the input rows with p, the probability before each game that a wins.")),
    click.option("--column", "column_name", default="p", metavar="NAME", show_default=True, help=(
        "Name of the new column of --predictions.")),
    shared_options,
)  # fmt: skip


@click.command(cls=SingleUseCommand, short_help="Rate players so that predicted and actual win rates agree.")
@elo_options
def command(**values: Any) -> None:
    """Rate players so that predicted and actual win rates agree.

    The leaderboard is a Bradley-Terry fit of all games, with 95 % intervals and the ranks they
    leave open; where strengths drift, recent games count more. Recent is by --time, or without
    it by the order of the file; --view all-time does not depend on any order.
    1000 is the mean of the ranked players. No rank: fewer than 30 games, a current
    strength that is not known within 240 Elo, or no chain of games to the largest group.

    Each game is predicted beforehand, by filters that expect more or less drift, weighted by their
    log loss, or with --eta or --k by plain Elo. Each player's mean predicted win rate approaches
    the actual one, whatever the games: with a constant step the difference is exactly
    -tracked / (eta games).

    With --id and --state, games may lack a result, and --winner and --score are optional: games
    are predicted and wait until `gradeq label` posts their results.

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
    common = take_common(values)
    winner, score = values["winner"], values["score"]
    if winner is not None and score is not None:
        raise click.UsageError("give --winner or --score, one of the two")
    require_label(winner if score is None else score, common, "--winner or --score")
    if values["k"] is not None and common.eta is not None:
        raise click.UsageError("--k sets the step; leave out --eta")
    from gradeq.cli.elo_job import EloTask, run_elo
    from gradeq.cli.elo_summary import elo_json, elo_text
    from gradeq.cli.games import GameColumnNames

    names = ("a", "b", "winner", "score", "skip_self", "home", "neutral")
    games = GameColumnNames(weight=common.weight, **{name: values.pop(name) for name in names})
    outcome = run_elo(EloTask(common, games, **values))
    if common.json:
        click.echo(elo_json(outcome))
    elif not common.quiet:
        click.echo(elo_text(outcome))
