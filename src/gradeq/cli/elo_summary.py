"""The summary and the report of an Elo run."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gradeq.certificates.figures import NO_GUARANTEE, agreement_in_words
from gradeq.cli.elo_job import EloCollector, EloOutcome
from gradeq.cli.row_reader import label_timing
from gradeq.cli.run_story import provenance
from gradeq.cli.summary import closing_json, notice_text, paths_text, plain, step_text, steps_json, to_json
from gradeq.leaderboard.ranks import WIDEST_RANKED
from gradeq.records import as_dict
from gradeq.report.components import clean
from gradeq.report.layer_story import elo_story
from gradeq.report.numerals import short
from gradeq.report.rolling import numbers, thin
from gradeq.report.sentences import FEW, forecasts_matched
from gradeq.report.story import Curves, EloStory, LossFigures, NamedCurve, StepPoint
from gradeq.tables import agreeing, aligned_table, some

if TYPE_CHECKING:
    from gradeq.leaderboard.ranks import Board, Standing

SHOWN = 20
NAMED = 5
LN2 = math.log(2.0)
KS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
CURVES = 8


def elo_text(outcome: EloOutcome) -> str:
    judged = [abs(row.bias) for row in outcome.board if row.games >= FEW]
    verdict = f"Too few games to judge the forecasts ({outcome.games:,})."
    if judged:
        verdict = plain(forecasts_matched(max(judged), len(judged)))
    parts = [leaderboard_text(outcome.standing, "; -o writes all"), verdict, elo_figures(outcome)]
    parts += [notice_text(notice) for notice in outcome.notices]
    options = outcome.task.common
    paths = {"leaderboard": options.output, "predictions": outcome.task.rows_file}
    parts.append(paths_text({**paths, "report": options.report, "state": options.state}))
    return "\n\n".join(part for part in parts if part)


def leaderboard_text(standing: Board, rest: str = "") -> str:
    """Leader, home advantage, top players, and who has no rank. ``rest`` says where the others are."""
    lines = [plain(line) for line in standing.lines if line]
    home = standing.home
    if home is not None:
        lines.append(f"Home advantage: {home.elo:.0f} Elo (95 % interval {home.low:.0f} to {home.high:.0f}).")
    parts = [lines, player_table(standing.rows, rest), [without_rank(standing)]]
    return "\n\n".join("\n".join(filter(None, part)) for part in parts if any(part))


def without_rank(standing: Board) -> str:
    rows = [row for row in standing.rows if row.rank is None]
    if not rows:
        return ""
    apart = {name for group in standing.groups[1:] for name in group}
    joined = [row for row in rows if row.player not in apart]
    few = sum(row.games < FEW for row in joined)
    why = [
        (few, f"with fewer than {FEW} games"),
        (len(joined) - few, f"whose current strength is not known within {WIDEST_RANKED} Elo"),
        (len(rows) - len(joined), "outside the largest group"),
    ]
    why = [(number, reason) for number, reason in why if number]
    who, have = some(len(rows), "player"), agreeing(len(rows), "has", "have")
    claim = f"{who} {why[0][1]} {have} no rank"
    if len(why) > 1:
        counts = ", ".join(f"{number:,} {reason}" for number, reason in why)
        claim = f"{who} {have} no rank: {counts}"
    named = "; ".join(f"{clean(row.player, 40)}, {some(row.games, 'game')}" for row in rows[:NAMED])
    return plain(f"{claim}{f' ({named})' if len(rows) <= NAMED else ''}.")


def elo_figures(outcome: EloOutcome) -> str:
    totals = outcome.totals
    games = [some(totals.labelled, "game") if totals.labelled else f"{some(totals.rows, 'game')} served"]
    if totals.skipped:
        games.append(f"{totals.skipped:,} against oneself (skipped)")
    if totals.ties:
        rule = "half a win" if outcome.task.ties == "half" else "dropped"
        games.append(f"{some(totals.ties, 'tie')} ({rule})")
    reached, run_loss = outcome.equilibrium, totals.sums.mean("loss") if totals.labelled else None
    loss, whole = (
        "no results yet" if after is None else f"log loss {short(LN2)} -> {short(after)}"
        for after in (run_loss, reached.loss_after if reached.rows else None)
    )
    players = some(len(outcome.board), "player")
    if not outcome.games:
        return f"{', '.join(games)}; {loss}: nothing to judge"
    judged, worst = [row for row in outcome.board if row.games >= FEW] or outcome.board, "no player to judge"
    if judged:  # largest |bias| 0.239 (Guam, 35 games; no guarantee)
        row = max(judged, key=lambda row: abs(row.bias))
        bound = "no bound applies" if row.bound is None else f"bound {short(row.bound, up=True)}"
        bound = NO_GUARANTEE if row.bound is not None and row.vacuous else bound
        whose = f"{clean(row.player, 40)}, {some(row.games, 'game')}"
        worst = f"largest |bias| {short(abs(row.bias))} ({whose}; {bound})"
    if outcome.continued:
        since = f"since the state began {players}, {some(reached.rows, 'game')}"
        facts = [f"this run {', '.join((*games, loss))}", since, worst, whole]
    else:
        facts = [f"{players}, {games[0]}", *games[1:], worst, loss]
    step = step_text(outcome.eta or 0.0)
    agreement = agreement_in_words(reached.balance, reached.exact, f"{reached.gap:.0e}")
    return "; ".join((*facts, f"certificate {agreement}", step))


def player_table(rows: list[Standing], rest: str) -> list[str]:
    if not rows:
        return []
    cells = [["player", "rank", "range", "elo", "+-", "games", "win rate", "predicted"]]
    for row in rows[:SHOWN]:
        ranks = ["-", "-"] if row.rank is None else [f"{row.rank}", f"{row.rank_low}-{row.rank_high}"]
        elo = [f"{row.elo:.0f}", f"{(row.elo_high - row.elo_low) / 2.0:.0f}", f"{row.games:,}"]
        cells.append([clean(row.player, 40), *ranks, *elo, f"{row.win_rate:.3f}", f"{row.predicted_win_rate:.3f}"])
    lines = aligned_table(cells)
    if len(rows) > SHOWN:
        lines.append(f"... and {len(rows) - SHOWN:,} more{rest}")
    return lines


def elo_json(outcome: EloOutcome) -> str:
    from gradeq.theory.features import step_from_k

    totals, eta, reached, standing = outcome.totals, outcome.eta, outcome.equilibrium, outcome.standing
    loss: dict[str, object] = {"name": "log loss", "before": LN2}
    measures = ("bias_before", "bias_after", "loss")
    means = {name: totals.sums.mean(name) if totals.labelled else None for name in measures}
    leader, fit, home = standing.leader, standing.fit, standing.home
    speed, per = standing.drift or (None, None)
    found: dict[str, object] = {
        "command": "elo",
        "rows": totals.rows,
        "labelled": totals.labelled,
        "learned": outcome.learned,
        "labels": label_timing(outcome.task.common, outcome.task.games.result),
        "players": len(outcome.board),
        "ties": totals.ties,
        "skipped": totals.skipped,
        "k": eta / step_from_k(1.0) if isinstance(eta, float) else None,
        **steps_json(outcome),
        "bias": {"before": means["bias_before"], "after": means["bias_after"]},
        "loss": loss | {"after": means["loss"]},
        "learned_from": {
            "rows": reached.rows,
            "loss": loss | {"after": reached.loss_after if reached.rows else None},
        },
        "headline": " ".join(line for line in standing.lines if line),
        "leader": None if leader is None else as_dict(leader),
        "view": {"constant_weight": standing.constant, "drift": speed, "per": per},
        "fit": None if fit is None else as_dict(fit),
        "home": None if home is None else as_dict(home),
        "theta": outcome.layer.theta,
        "groups": [player_json(outcome, row) for row in outcome.board],
        **closing_json(outcome),
    }
    return to_json(found)


def player_json(outcome: EloOutcome, row: Standing) -> dict[str, object]:
    """One player: bias from their side, log loss over this run's games."""
    losses, code = outcome.totals.losses, outcome.totals.book.find(row.player)
    loss = losses.mean(code, "loss") if code is not None and losses.rows[code] else None
    return {
        "name": row.player,
        "rows": row.games,
        "rank": row.rank,
        "elo": row.elo,
        "bias": {"before": 0.5 - row.win_rate, "after": row.bias},
        "loss": {"name": "log loss", "before": LN2, "after": loss},
        "bound": row.bound,
        "vacuous": None if row.bound is None else row.vacuous,
    }


def run_elo_story(outcome: EloOutcome, collector: EloCollector) -> EloStory:
    """The report as data: the story of the layer, and what only a run knows."""
    task, games = outcome.task, outcome.games
    after = outcome.equilibrium.loss_after if outcome.continued else outcome.totals.sums.mean("loss")
    return replace(
        elo_story(outcome.layer, outcome.standing),
        made=provenance(collector.reading.table.paths, task.common.state),
        a=task.games.a,
        b=task.games.b,
        games=games,
        loss=None if not games or after is None else LossFigures("log loss", LN2, after),
        ties=outcome.totals.ties,
        ties_rule=task.ties,
        skipped=outcome.totals.skipped,
        timed=task.common.time is not None,
        notices=outcome.notices,
        curves=curves(outcome, collector),
        bins=collector.bins.bins(),
        frontier=frontier(outcome, collector),
        added=outcome.totals.labelled if outcome.continued else None,
    )


def curves(outcome: EloOutcome, collector: EloCollector) -> Curves | None:
    from gradeq.layers.board import START
    from gradeq.theory.features import ELO_POINTS_PER_LOGIT

    path = collector.path
    ranked = [row for row in outcome.board if row.rank is not None]
    if len(path.x) < 2 or not ranked:
        return None
    picked = thin(len(path.x)).tolist()
    spread = [*range(min(3, len(ranked)))]
    if len(ranked) > 3:
        spread += np.unique(np.linspace(3, len(ranked) - 1, CURVES - 3).astype(int)).tolist()
    lines = []
    for k in spread:
        name = ranked[k].player
        values = np.array([path.thetas[i].get(name, 0.0) for i in picked])
        lines.append(NamedCurve(name, numbers(START + ELO_POINTS_PER_LOGIT * values)))
    axis = collector.reading.axis
    title = "game" if axis == "row" else collector.reading.axis_title
    return Curves(axis, title, tuple(path.x[i] for i in picked), tuple(lines))


def frontier(outcome: EloOutcome, collector: EloCollector) -> tuple[StepPoint, ...]:
    from gradeq.layers.elo import Elo
    from gradeq.theory.features import step_from_k

    eta = outcome.layer.step
    if not collector.games or not outcome.totals.labelled or not isinstance(outcome.eta, float):
        return ()
    a, b, y = (np.concatenate([part[i] for part in collector.games]) for i in range(3))
    points = []
    for point in Elo.sweep(sorted({step_from_k(k) for k in KS} | {eta}), a, b, y).points:
        chosen = math.isclose(point.eta, eta, rel_tol=1e-9)
        k = eta / step_from_k(1.0) if chosen else point.k
        points.append(StepPoint(float(f"{k:.3g}"), point.loss, point.worst, chosen))
    return tuple(points)
