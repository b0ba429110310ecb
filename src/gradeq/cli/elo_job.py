"""The job of `gradeq elo`: read games, predict, learn, and write predictions and the leaderboard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal, cast

import numpy as np

from gradeq.cli.games import AmbiguousWinner, GameColumnNames, GameRows, drop_self_games, hash_games, parse_games
from gradeq.cli.job import JobPass, run_job
from gradeq.cli.options import (
    CommonOptions,
    LateOptions,
    Step,
    check_distinct,
    errors_in_option_words,
    step_arguments,
)
from gradeq.cli.outcome import Baseline, CalibrationBins, CapSummary, ColumnSums, GroupSums, cap_summary
from gradeq.cli.row_reader import Piece, RowReader, run_times
from gradeq.cli.run_notices import BROKEN, label_notices, not_learned_notice, step_notices, vacuous_reason
from gradeq.cli.run_story import MOST_SWEPT, TRACED, ParameterPath
from gradeq.cli.session import Session
from gradeq.cli.task import log_loss, step_of
from gradeq.errors import BadInput
from gradeq.files import Codebook, guard_formula
from gradeq.files.cells import Floats, Ints
from gradeq.files.writer import Values
from gradeq.leaderboard.ranks import SURE
from gradeq.records import copy_with
from gradeq.report import game_notices
from gradeq.report import notices as say
from gradeq.report.sentences import FEW, ordered
from gradeq.report.story import Notice
from gradeq.tables import some

if TYPE_CHECKING:
    from gradeq.equilibrium import Equilibrium
    from gradeq.layers.elo import Elo, Ties
    from gradeq.layers.layer import Layer
    from gradeq.layers.run import EloRun
    from gradeq.leaderboard.ranks import Board, BoardView, Standing


TINY = 1e-15
ALIKE = 0.8  # below this rank correlation, the two views are reported as different
LEADERBOARD = {
    "rank": int, "rank_low": int, "rank_high": int, "player": str, "elo": float, "elo_low": float, "elo_high": float,
    "games": int, "wins": float, "win_rate": float, "predicted_win_rate": float, "bias": float, "bound": float,
    "rating": float, "elo_all_time": float, "elo_now": float, "tracked": float,
}  # fmt: skip


@dataclass(frozen=True)
class EloTask:
    common: CommonOptions
    games: GameColumnNames
    ties: Ties
    k: float | None
    view: BoardView
    rows_file: str | None
    column_name: str
    command: ClassVar = "elo"

    def __post_init__(self) -> None:
        check_distinct(self.common.output, self.common.report, self.common.state, self.rows_file)

    @property
    def columns(self) -> list[str]:
        return [*self.games.names, *([self.common.id] if self.common.id is not None else [])]

    @property
    def new(self) -> list[str]:
        return [self.column_name]

    @property
    def table_file(self) -> str | None:
        return self.common.output

    def fresh(self, eta: Step, late: LateOptions) -> Layer:
        from gradeq.layers.elo import PLAIN_ETA, Elo
        from gradeq.layers.internals import silenced
        from gradeq.theory.features import step_from_k

        options = self.common
        eta = PLAIN_ETA if eta == "plain" else eta if self.k is None else step_from_k(self.k)
        if eta in (None, "auto") and (options.decay is not None or options.penalty is not None):
            raise BadInput("--decay and --penalty are for plain Elo; give --eta or --k as well")
        late_cap: Literal["auto"] | None = None if options.no_cap else "auto"
        with errors_in_option_words():
            step = step_arguments(options, eta, None)
            layer = Elo(
                cast('float | Literal["auto"] | None', step.get("eta")),
                schedule=step.get("schedule"), penalty=step.get("penalty"), ties=self.ties,
                home_advantage=self.games.sided, dates=late.dated, late_cap=late_cap,
                in_flight=options.in_flight, ttl=late.ttl,
            )  # fmt: skip
            return silenced(layer)


@dataclass(frozen=True)
class EloOutcome:
    task: EloTask
    layer: Elo
    equilibrium: Equilibrium
    standing: Board
    totals: EloPass
    learned: int
    eta: Step
    capped: CapSummary | None
    resized: int
    continued: bool
    notices: tuple[Notice, ...] = ()

    @property
    def board(self) -> list[Standing]:
        return self.standing.rows

    @property
    def games(self) -> int:
        """The games behind the players' figures: this run's or, with a state, all that it has learned from."""
        return self.equilibrium.rows if self.continued else self.totals.labelled


class EloPass(JobPass[GameRows, EloOutcome]):
    """One pass over the games: serves predictions, learns, and sums up errors and losses."""

    layer: Elo

    def __init__(self, task: EloTask, session: Session) -> None:
        super().__init__(session)
        self.task = task
        self.collector = None if task.common.report is None else EloCollector(session.reading)
        self.ties = self.skipped = self.counted = 0
        self.sums = ColumnSums(["bias_before", "bias_after", "loss"])
        self.book = Codebook()
        self.losses = GroupSums(["loss"])
        self.doubtful: AmbiguousWinner | None = None

    def parse(self, piece: Piece) -> GameRows:
        return parse_games(self.task.games, piece)

    def answer(self, games: GameRows) -> dict[str, Floats]:
        self_games = games.against_itself
        ids = self.session.admit(games.piece)
        if self.session.content is not None:
            hash_games(self.session.content, games)
        if ids is not None and self_games.any():
            ids = [id for id, skip in zip(ids, self_games.tolist(), strict=True) if not skip]
        p = np.full(len(self_games), np.nan)
        p[~self_games] = self._run(drop_self_games(games), ids)
        self.rows += len(self_games)
        self.skipped += int(np.count_nonzero(self_games))
        before, now = self.doubtful, games.doubtful
        if now is not None:
            self.doubtful = now if before is None else copy_with(before, many=before.many + now.many)
        return {self.task.column_name: p}

    def _run(self, games: GameRows, ids: list[str] | None) -> Floats:
        piece, y = games.piece, games.scores
        self.dates.add(piece, ~np.isnan(y))
        if piece.never is not None:
            y = np.where(piece.never, np.nan, y)
        turns = None if self.clock is None else self.clock.next_rows(len(y), None)
        times = run_times(self.clock, turns, piece, self.layer)
        with errors_in_option_words():
            run = self.layer.run(games.a, games.b, y, weights=games.weights, home=games.home, ids=ids, **times)
        p: Floats = np.asarray(run.values)
        self.count_late(run)
        self._add(games, p, run)
        return p

    def _add(self, games: GameRows, p: Floats, run: EloRun[Floats]) -> None:
        tied = games.scores == 0.5
        self.ties += int(np.count_nonzero(tied))
        counted = ~np.isnan(games.scores)
        if self.task.ties == "drop":
            counted &= ~tied
        first, second = self.book.codes(games.a)[counted], self.book.codes(games.b)[counted]
        q, y = p[counted], games.scores[counted]
        loss = log_loss(q, y, TINY)
        self.sums.add({"bias_before": 0.5 - y, "bias_after": q - y, "loss": loss}, len(y))
        for codes in (first, second):
            self.losses.add(codes, {"loss": loss}, len(self.book))
        if self.collector is not None:
            self.collector.add(games.piece, q, (first, second, y), run)
            if len(p):
                self.collector.path.add(float(games.piece.x[len(p) - 1]), self.layer.ratings)
        heavy = True if games.weights is None else games.weights > 0.0
        self.counted += int(np.count_nonzero(counted & heavy))

    @property
    def labelled(self) -> int:
        return self.sums.rows

    def outcome(self, before: Baseline, continued: bool) -> EloOutcome:
        check_played(self)
        layer, equilibrium = self.layer, self.layer.equilibrium()
        learned, resized = equilibrium.rows - before.learned, int(layer.steps["resized"]) - before.resized
        board, capped = layer.board(self.task.view), cap_summary(layer, before, self.capped)
        eta = step_of(layer)
        outcome = EloOutcome(self.task, layer, equilibrium, board, self, learned, eta, capped, resized, continued)
        return replace(outcome, notices=(*self.session.notices, *elo_notices(outcome)))

    def table_kinds(self) -> Mapping[str, type]:
        return LEADERBOARD

    def table_columns(self, outcome: EloOutcome) -> Mapping[str, Values]:
        columns = {name: [getattr(row, name) for row in outcome.board] for name in LEADERBOARD}
        columns["player"] = [guard_formula(name) for name in columns["player"]]
        # A rate is off by at most 1, so larger bounds are omitted.
        columns["bound"] = [np.nan if b is None or b > 1.0 else b for b in columns["bound"]]
        return columns

    def page(self, outcome: EloOutcome) -> str:
        from gradeq.cli.elo_summary import run_elo_story
        from gradeq.report.page import html

        assert self.collector is not None
        return html(run_elo_story(outcome, self.collector))


def run_elo(task: EloTask) -> EloOutcome:
    return run_job(task, lambda session, _: EloPass(task, session))


def check_played(pass_: EloPass) -> None:
    dropped = pass_.ties if pass_.task.ties == "drop" else 0
    if pass_.skipped + dropped < pass_.rows:
        return
    why = [f"{pass_.skipped:,} against oneself"] if pass_.skipped else []
    why += [f"{dropped:,} dropped as {'a tie' if dropped == 1 else 'ties'}"] if dropped else []
    raise BadInput(
        f"no games: of {some(pass_.rows, 'row')} {' and '.join(why)}; give a file with games of two "
        f"players{' or --ties half' if dropped else ''}"
    )


class EloCollector:
    def __init__(self, reading: RowReader) -> None:
        self.reading = reading
        self.bins = CalibrationBins()
        self.path = ParameterPath(None)
        self.games: list[tuple[Ints, Ints, Floats]] = []  # emptied once there are too many for the sweep
        self.rows = self.pieces = 0

    def add(self, piece: Piece, q: Floats, games: tuple[Ints, Ints, Floats], run: EloRun[Floats]) -> None:
        """Add the forecasts ``q`` of games with a result; ``games``: codes of both players, and scores."""
        self.bins.add(q, games[2])
        self.rows += len(q)
        self.games = [*self.games, games] if self.rows <= MOST_SWEPT else []
        if self.pieces < TRACED:
            trace = run.trace
            for at, values in zip(trace.rows, trace.theta, strict=True):
                if at:
                    x = float(piece.x[int(at) - 1])
                    self.path.add(x, dict(zip(trace.names, values.tolist(), strict=True)))
        self.pieces += 1


def elo_notices(outcome: EloOutcome) -> tuple[Notice, ...]:
    task, options, totals = outcome.task, outcome.task.common, outcome.totals
    notices = [not_learned_notice(outcome), *label_notices(outcome)]
    if totals.doubtful is not None:
        notices.append(game_notices.doubtful_winners(*totals.doubtful))
    later = options.labels_later
    if outcome.games < FEW and (outcome.games or not later):
        notices.append(say.few_labels(outcome.games))
    notices += step_notices(outcome, task.k is not None or options.eta is not None)
    notices += board_notices(outcome)
    if options.time is None:
        notices.append(game_notices.no_time(task.view != "all-time"))
    unlabelled = totals.rows - totals.labelled - totals.skipped - (totals.ties if task.ties == "drop" else 0)
    if unlabelled > 0:
        open_tickets = len(outcome.layer.internals.tickets.opened) if later else 0
        notices.append(say.no_label(unlabelled, later, min(unlabelled, open_tickets)))
    vacuous = [row.games for row in outcome.board if row.vacuous]
    if vacuous:
        why = vacuous_reason(outcome, min(vacuous), True, "player")
        notices.append(say.vacuous_bounds(len(vacuous), len(outcome.board), "player", why))
    if outcome.equilibrium.gap > BROKEN:
        notices.append(say.identity_broken(outcome.equilibrium.gap))
    return ordered(notices)


def board_notices(outcome: EloOutcome) -> list[Notice]:
    notices, groups = [], outcome.standing.groups
    judged = [row for row in outcome.board if row.games >= FEW]
    off = game_notices.clearly_off(judged)
    if off:
        worst = max(off, key=lambda row: abs(row.bias))
        who = (worst.player, worst.bias, worst.games)
        notices.append(game_notices.predicted_off(*who, len(off), len(judged), "player"))
    if len(groups) > 1:
        notices.append(game_notices.never_met(groups))
    views = np.array([[row.elo_all_time, row.elo_now] for row in outcome.board if row.rank is not None]).T
    agreed = 1.0 if views.size < 6 else float(np.corrcoef(*np.argsort(np.argsort(views)))[0, 1])
    constant = outcome.standing.constant  # None before any game was learned from
    if constant is not None and constant < SURE and agreed < ALIKE:
        notices.append(game_notices.views_differ(agreed))
    return notices
