"""The report's story of an Elo run, and its page."""

from __future__ import annotations

import math

import numpy as np

from gradeq.cli.elo_follow import EloFollow
from gradeq.cli.elo_job import EloOutcome
from gradeq.cli.story import made
from gradeq.cli.trend import axis_of
from gradeq.report import story as told
from gradeq.report.of_elo import advantage, log_loss, method, player
from gradeq.report.page import html
from gradeq.report.thin import numbers, thin

KS = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
CURVES = 8


def page_of(outcome: EloOutcome, follow: EloFollow, files: list[str]) -> str:
    """The page as text."""
    return html(story_of(outcome, follow, files))


def story_of(outcome: EloOutcome, follow: EloFollow, files: list[str]) -> told.EloStory:
    """Everything the page says, as data."""
    from gradeq.theory.elo import step_from_k

    reached = outcome.equilibrium
    eta = outcome.layer.step
    loss = reached.loss_after if outcome.continued else outcome.sums.mean("loss")
    return told.EloStory(
        made=made(files, outcome.options.state),
        a=outcome.sides.a,
        b=outcome.sides.b,
        games=outcome.games,
        players=len(outcome.board),
        loss=log_loss(outcome.games, loss),
        certificate=told.Certificate(
            abs(reached.largest), reached.bound, reached.gap, reached.exact, bool(reached.vacuous),
        ),
        rows=tuple(player(row) for row in outcome.board),
        k=eta / step_from_k(1.0),
        eta=eta,
        method=method(outcome.layer, outcome.board, reached.exact),
        ties=outcome.ties,
        ties_rule=outcome.ties_rule,
        skipped=outcome.skipped,
        timed=outcome.options.time is not None,
        lines=outcome.standing.lines,
        home=advantage(outcome.layer, outcome.standing.home),
        fitted=outcome.standing.weight,
        residual=None if outcome.standing.fit is None else outcome.standing.fit.residual,
        notices=outcome.notices,
        curves=curves(outcome, follow),
        bins=follow.bins.bins(),
        frontier=frontier(outcome, follow, eta),
        added=outcome.labelled if outcome.continued else None,
    )  # fmt: skip


def curves(outcome: EloOutcome, follow: EloFollow) -> told.Curves | None:
    """Elo over the games for players from the top to the bottom."""
    from gradeq.layers.standings import START
    from gradeq.theory.elo import ELO_POINTS_PER_LOGIT

    path = follow.path
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
        lines.append(told.Line(name, numbers(START + ELO_POINTS_PER_LOGIT * values)))
    axis, title = axis_of(follow.reading)
    title = "game" if axis == "row" else title
    return told.Curves(axis, title, tuple(path.x[i] for i in picked), tuple(lines))


def frontier(outcome: EloOutcome, follow: EloFollow, eta: float) -> tuple[told.StepPoint, ...]:
    """Log loss and worst bias of each K, had it been used on these same games."""
    from gradeq.layers.elo import Elo
    from gradeq.theory.elo import step_from_k

    if not follow.games or not outcome.labelled or not isinstance(outcome.eta, float):
        return ()
    a, b, y = (np.concatenate([part[i] for part in follow.games]) for i in range(3))
    chosen = eta / step_from_k(1.0)
    steps = sorted({step_from_k(k) for k in KS} | {eta})
    swept = Elo.sweep(steps, a, b, y)
    points = []
    for point in swept.points:
        own = math.isclose(point.eta, eta, rel_tol=1e-9)
        k = chosen if own else point.k
        points.append(told.StepPoint(float(f"{k:.3g}"), point.loss, point.worst, own))
    return tuple(points)
