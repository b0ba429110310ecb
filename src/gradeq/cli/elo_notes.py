"""The warnings that matter after a run of games."""

from __future__ import annotations

from typing import Any

import numpy as np

from gradeq.cli.notes import BROKEN, gave_up, stepping, taken_at_once, unlearned
from gradeq.cli.options import labels_later
from gradeq.learning import learning_of
from gradeq.report import elo_notices as elo_say
from gradeq.report import late_notices as late_say
from gradeq.report import notices as say
from gradeq.report.numerals import gap as spelled
from gradeq.report.story import Notice
from gradeq.report.words import FEW
from gradeq.standings.words import SURE

ALIKE = 0.8  # rank correlation of the two views below which they are said to differ


def agreement(board: list[Any]) -> float:
    """The rank correlation of both views among ranked players."""
    ranked = [row for row in board if row.rank is not None]
    if len(ranked) < 3:
        return 1.0
    views = np.array([[row.elo_all_time, row.elo_now] for row in ranked]).T
    one, other = np.argsort(np.argsort(views))
    return float(np.corrcoef(one, other)[0, 1])


def notices(outcome: Any, pass_: Any) -> tuple[Notice, ...]:
    """Every warning of an Elo run, the serious ones first."""
    found: list[Notice] = []
    about_labels = (
        unlearned(outcome, outcome.options, pass_.weighing, pass_.waiting, pass_.expired),
        gave_up(pass_.expired, outcome.options),
        taken_at_once(outcome, outcome.options),
        pass_.dates.notice(),
    )
    found += [notice for notice in about_labels if notice is not None]
    if pass_.doubtful is not None:
        found.append(elo_say.winner_twofold(*pass_.doubtful))
    later = labels_later(outcome.options)
    if outcome.games < FEW and (outcome.games or not later):
        found.append(say.few_labels(outcome.games))
    found += stepping(outcome, outcome.options, outcome.whose_step)
    judged = [row for row in outcome.board if row.games >= FEW]
    off = elo_say.clearly_off(judged)
    if off:
        worst = max(off, key=lambda row: abs(row.bias))
        own = (worst.player, worst.bias, worst.games, len(off), len(judged), "player")
        found.append(elo_say.predicted_off(*own))
    if len(outcome.standing.groups) > 1:
        found.append(elo_say.never_met(outcome.standing.groups))
    agreed = agreement(outcome.board)
    constant = outcome.standing.constant  # None before any game was learned from
    if constant is not None and constant < SURE and agreed < ALIKE:
        found.append(elo_say.views_apart(agreed))
    if outcome.options.time is None:
        found.append(elo_say.no_time(outcome.view != "all-time"))
    unlabelled = outcome.rows - outcome.labelled - outcome.skipped
    unlabelled -= outcome.ties if outcome.ties_rule == "drop" else 0
    if unlabelled > 0:
        open_tickets = len(outcome.layer._book.opened) if later else 0
        found.append(late_say.no_label(unlabelled, later, min(unlabelled, open_tickets)))
    vacuous = sum(row.vacuous is True for row in outcome.board)
    if vacuous:
        held, fewest = outcome.capped, min(row.games for row in outcome.board if row.vacuous)
        least = None if held is None else float(f"{held.least:.3g}")
        delay = learning_of(outcome.layer).lateness
        why = say.vacuous_because(fewest, outcome.layer.step, least, delay, True, "player")
        found.append(say.vacuous_bounds(vacuous, len(outcome.board), "player", why))
    if outcome.equilibrium.gap > BROKEN:
        found.append(say.identity_broken(spelled(outcome.equilibrium.gap)))
    return say.ordered(found)
