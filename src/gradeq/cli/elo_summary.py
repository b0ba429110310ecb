"""The summary of an Elo run: on the terminal, and as JSON."""

from __future__ import annotations

import math
from typing import Any

from gradeq.cli.delay import labels_words
from gradeq.cli.elo_job import EloOutcome
from gradeq.cli.json_summary import concluding, dumped
from gradeq.cli.summary import auto, holds, limit, plain, said, short
from gradeq.report.markup import clean
from gradeq.report.numerals import some
from gradeq.report.words import FEW, forecasts_matched
from gradeq.standings.words import WITHIN
from gradeq.tables import aligned

SHOWN = 20
NAMED = 5
LN2 = math.log(2.0)


def terminal(outcome: EloOutcome) -> str:
    """Everything the terminal shows after a run."""
    parts = [shown(outcome.standing, "; -o writes all"), in_words(outcome), figures(outcome)]
    parts += [said(notice) for notice in outcome.notices]
    options = outcome.options
    named = (
        ("leaderboard", options.output),
        ("predictions", outcome.predictions),
        ("report", options.report),
        ("state", options.state),
    )
    parts.append(
        "\n".join(f"{name}  {clean(path, 200)}" for name, path in named if path is not None)
    )
    return "\n\n".join(part for part in parts if part)


def shown(standing: Any, rest: str = "") -> str:
    """The board: who is first, what being at home is worth, the first players, and who has no rank.

    ``rest``: where those are who do not fit.
    """
    said = [plain(line) for line in standing.lines if line]
    home = standing.home
    if home is not None:
        said.append(
            f"Home advantage: {home.elo:.0f} Elo (95 % interval {home.low:.0f} to {home.high:.0f})."
        )
    parts = [said, table(standing.rows, rest), [without_rank(standing)]]
    return "\n\n".join("\n".join(filter(None, part)) for part in parts if any(part))


def without_rank(standing: Any) -> str:
    """How many players have no rank, and why; a few are named."""
    rows = [row for row in standing.rows if row.rank is None]
    if not rows:
        return ""
    apart = {name for group in standing.groups[1:] for name in group}
    joined = [row for row in rows if row.player not in apart]
    few = sum(row.games < FEW for row in joined)
    why = [
        (few, f"with fewer than {FEW} games"),
        (len(joined) - few, f"whose strength of the moment is not known within {WITHIN} Elo"),
        (len(rows) - len(joined), "outside the largest group"),
    ]
    why = [(number, reason) for number, reason in why if number]
    who, have = some(len(rows), "player"), "has" if len(rows) == 1 else "have"
    said = f"{who} {why[0][1]} {have} no rank"
    if len(why) > 1:
        counts = ", ".join(f"{number:,} {reason}" for number, reason in why)
        said = f"{who} {have} no rank: {counts}"
    named = "; ".join(f"{clean(row.player, 40)}, {some(row.games, 'game')}" for row in rows[:NAMED])
    return plain(f"{said}{f' ({named})' if len(rows) <= NAMED else ''}.")


def figures(outcome: EloOutcome) -> str:
    """players, games, worst bias, log loss, certificate, step; what a run added to a state comes before."""
    own = [some(outcome.labelled, "game")]
    if not outcome.labelled:
        own = [f"{some(outcome.rows, 'game')} served"]
    if outcome.skipped:
        own.append(f"{outcome.skipped:,} against oneself (skipped)")
    if outcome.ties:
        rule = "half a win" if outcome.ties_rule == "half" else "dropped"
        own.append(f"{some(outcome.ties, 'tie')} ({rule})")
    loss = lost(outcome.labelled, outcome.sums.mean("loss"))
    reached, players = outcome.equilibrium, some(len(outcome.board), "player")
    if not outcome.games:
        return f"{', '.join(own)}; {loss}: nothing to judge"
    if not outcome.continued:
        facts = [f"{players}, {own[0]}", *own[1:], worst_bias(outcome), loss]
    else:
        this_run = ", ".join((*own, loss))
        since = f"since the state began {players}, {some(reached.rows, 'game')}"
        whole = lost(reached.rows, reached.loss_after)
        facts = [f"this run {this_run}", since, worst_bias(outcome), whole]
    taken = auto(outcome) if isinstance(outcome.eta, str) else f"{outcome.eta or 0.0:g}"
    return "; ".join((*facts, f"certificate {holds(reached)}", f"step {taken}"))


def worst_bias(outcome: EloOutcome) -> str:
    """largest |bias| 0.239 (Guam, 35 games; no worst-case guarantee yet): the bound is that on this very bias."""
    judged = [row for row in outcome.board if row.games >= FEW] or outcome.board
    if not judged:
        return "no player to judge"
    row = max(judged, key=lambda row: abs(row.bias))
    whose = f"{clean(row.player, 40)}, {some(row.games, 'game')}"
    return f"largest |bias| {short(abs(row.bias))} ({whose}; {player_bound(row)})"


def lost(games: int, after: float | None) -> str:
    """The log loss of a coin and of the forecasts of so many games."""
    if not games or after is None:
        return "no results yet"
    return f"log loss {short(LN2)} -> {short(after)}"


def in_words(outcome: EloOutcome) -> str:
    """How far the forecasts were from the win rates, exactly."""
    judged = [row for row in outcome.board if row.games >= FEW]
    if not judged:
        return f"Too few games to judge the forecasts ({outcome.games:,})."
    return plain(forecasts_matched(max(abs(row.bias) for row in judged), len(judged)))


def table(rows: list[Any], rest: str) -> list[str]:
    """The first players."""
    if not rows:
        return []
    heads = ("player", "rank", "range", "elo", "+-", "games", "win rate", "predicted")
    cells = [heads] + [
        (
            clean(row.player, 40),
            "-" if row.rank is None else f"{row.rank}",
            "-" if row.rank is None else f"{row.rank_low}-{row.rank_high}",
            f"{row.elo:.0f}",
            f"{(row.elo_high - row.elo_low) / 2.0:.0f}",
            f"{row.games:,}",
            f"{row.win_rate:.3f}",
            f"{row.predicted_win_rate:.3f}",
        )
        for row in rows[:SHOWN]
    ]
    widths = [max(len(row[k]) for row in cells) for k in range(len(heads))]
    lines = [aligned(row, widths) for row in cells]
    if len(rows) > SHOWN:
        lines.append(f"... and {len(rows) - SHOWN:,} more{rest}")
    return lines


def as_json(outcome: EloOutcome) -> str:
    """The object that --json prints."""
    from gradeq.theory.elo import step_from_k

    eta, some, reached = outcome.eta, outcome.labelled > 0, outcome.equilibrium
    mean, loss = outcome.sums.mean, {"name": "log loss", "before": LN2}
    learned = reached.loss_after if reached.rows else None
    found: dict[str, Any] = {
        "command": "elo",
        "rows": outcome.rows,
        "labelled": outcome.labelled,
        "learned": outcome.learned,
        "labels": labels_words(outcome.options, outcome.sides.result),
        "players": len(outcome.board),
        "ties": outcome.ties,
        "skipped": outcome.skipped,
        "eta": outcome.layer.step if eta == "auto" else eta,
        "method": "auto" if eta == "auto" else "plain",
        "k": eta / step_from_k(1.0) if isinstance(eta, float) else None,
        "decay": outcome.options.decay,
        "capped": None if outcome.capped is None else outcome.capped._asdict(),
        "resized": outcome.resized,
        "bias": {
            "before": mean("bias_before") if some else None,
            "after": mean("bias_after") if some else None,
        },
        "loss": loss | {"after": mean("loss") if some else None},
        "learned_from": {"rows": reached.rows, "loss": loss | {"after": learned}},
        **board(outcome.standing),
        "theta": outcome.layer.theta,
        "groups": [player(outcome, row) for row in outcome.board],
        **concluding(outcome),
    }
    return dumped(found)


def board(standing: Any) -> dict[str, Any]:
    """Who is first, which games count, how the fit went, and the advantage at home."""
    leader, fit, home = standing.leader, standing.fit, standing.home
    speed, per = standing.drift or (None, None)
    return {
        "headline": " ".join(line for line in standing.lines if line),
        "leader": None if leader is None else leader._asdict(),
        "view": {"constant_weight": standing.constant, "drift": speed, "per": per},
        "fit": None if fit is None else fit._asdict(),
        "home": None if home is None else home._asdict(),
    }


def player_bound(row: Any) -> str:
    """The bound of one player."""
    if row.bound is None:
        return "no bound applies"
    return "no worst-case guarantee yet" if row.vacuous else f"bound {limit(row.bound)}"


def player(outcome: EloOutcome, row: Any) -> dict[str, Any]:
    """One player's entry: bias from the player's own side; the loss over this run's games."""
    loss, games = outcome.players.get(row.player, (0.0, 0.0))
    return {
        "name": row.player,
        "rows": row.games,
        "rank": row.rank,
        "elo": row.elo,
        "bias": {"before": 0.5 - row.win_rate, "after": row.bias},
        "loss": {"name": "log loss", "before": LN2, "after": loss / games if games else None},
        "bound": row.bound,
        "vacuous": None if row.bound is None else row.vacuous,
    }
