"""The summary of an Elo run: on the terminal, and as JSON."""

from __future__ import annotations

import math
from typing import Any

from gradeq.cli.delay import labels_words
from gradeq.cli.elo_job import EloOutcome
from gradeq.cli.json_summary import concluding, dumped
from gradeq.cli.summary import auto, certified, plain, short
from gradeq.equilibrium import aligned
from gradeq.report.markup import clean
from gradeq.report.numerals import some
from gradeq.report.words import FEW, within_a_point

SHOWN = 20
LN2 = math.log(2.0)


def terminal(outcome: EloOutcome) -> str:
    """Everything the terminal shows after a run."""
    parts = [figures(outcome), in_words(outcome), "\n".join(table(outcome))]
    for notice in outcome.notices:
        mark = {"red": "STOP", "amber": "Warning", "note": "Note"}[notice.level]
        remedy = f" {notice.remedy}" if notice.remedy else ""
        parts.append(plain(f"{mark}: {notice.claim} {notice.evidence}{remedy}"))
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


def figures(outcome: EloOutcome) -> str:
    """players, games, worst bias, log loss, certificate, step."""
    ranked = [row for row in outcome.board if row.games >= FEW] or outcome.board
    worst = max((abs(row.bias) for row in ranked), default=0.0)
    facts = [
        f"{some(len(outcome.board), 'player')}, {some(outcome.labelled, 'game')}",
        f"largest |bias| {short(worst)}",
        f"log loss {short(LN2)} -> {short(outcome.sums.mean('loss'))}",
        certified(outcome),
        f"step {auto(outcome) if isinstance(outcome.eta, str) else f'{outcome.eta or 0.0:g}'}",
    ]
    if outcome.ties:
        rule = "half a win" if outcome.ties_rule == "half" else "dropped"
        facts.insert(1, f"{some(outcome.ties, 'tie')} ({rule})")
    if outcome.skipped:
        facts.insert(1, f"{outcome.skipped:,} against oneself (skipped)")
    return "; ".join(facts)


def in_words(outcome: EloOutcome) -> str:
    """How many players are predicted within a point of their win rate."""
    ranked = [row for row in outcome.board if row.games >= FEW]
    if not ranked:
        return f"Too few games to judge ({outcome.labelled:,})."
    return (
        f"Predicted win rates match actual ones within 1 point for {within_a_point(ranked):,} of "
        f"{some(len(ranked), 'player')} with {FEW} games or more."
    )


def table(outcome: EloOutcome) -> list[str]:
    """The first players."""
    heads = ("player", "elo", "games", "win rate", "predicted", "bias", "bound")
    cells = [heads] + [
        (
            clean(row.player, 40),
            f"{row.elo:.0f}",
            f"{row.games:,}",
            f"{row.win_rate:.3f}",
            f"{row.predicted_win_rate:.3f}",
            f"{row.bias:+.4f}",
            "-" if row.bound is None else "vacuous" if row.vacuous else short(row.bound),
        )
        for row in outcome.board[:SHOWN]
    ]
    widths = [max(len(row[k]) for row in cells) for k in range(len(heads))]
    lines = [aligned(row, widths) for row in cells]
    if len(outcome.board) > SHOWN:
        lines.append(f"... and {len(outcome.board) - SHOWN:,} more; -o writes all")
    return lines


def as_json(outcome: EloOutcome) -> str:
    """The object that --json prints."""
    from gradeq.theory.elo import step_from_k

    eta, some = outcome.eta, outcome.labelled > 0
    mean = outcome.sums.mean
    return dumped(
        {
            "command": "elo",
            "rows": outcome.rows,
            "labelled": outcome.labelled,
            "learned": outcome.learned,
            "labels": labels_words(outcome.options),
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
            "loss": {"name": "log loss", "before": LN2, "after": mean("loss") if some else None},
            "theta": outcome.layer.theta,
            "groups": [player(outcome, row) for row in outcome.board],
            **concluding(outcome),
        }
    )


def player(outcome: EloOutcome, row: Any) -> dict[str, Any]:
    """One player's entry: bias from the player's own side; the loss over this run's games."""
    loss, games = outcome.players.get(row.player, (0.0, 0.0))
    return {
        "name": row.player,
        "rows": row.games,
        "bias": {"before": 0.5 - row.win_rate, "after": row.bias},
        "loss": {"name": "log loss", "before": LN2, "after": loss / games if games else None},
        "bound": row.bound,
        "vacuous": row.vacuous,
    }
