"""The pass of elo: read games, predict, learn, add up, write; then the leaderboard."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gradeq.cli.dates import Dates
from gradeq.cli.delay import RowClock, clock_of, times_of
from gradeq.cli.games import Doubtful, Games, Sides, enter, parse, without_own
from gradeq.cli.light import arrow_without_pandas, numba_without_scipy
from gradeq.cli.lock import holding
from gradeq.cli.measure import GroupSums, Sums
from gradeq.cli.notes import whose_step
from gradeq.cli.options import Common, check_distinct
from gradeq.cli.outcome import Before, Capped, capping
from gradeq.cli.progress import progress
from gradeq.cli.reading import reading_of
from gradeq.cli.session import Session
from gradeq.cli.state_file import check_place, read_state
from gradeq.cli.steps import penalty_of, stepped
from gradeq.cli.task import step_of
from gradeq.errors import BadInput
from gradeq.files import Codebook, Together, Writer, guard_formula, open_table
from gradeq.files.failures import writing
from gradeq.files.numbers import Floats
from gradeq.report.numerals import some

if TYPE_CHECKING:
    from gradeq.layers.elo import Ties
    from gradeq.standings.words import Seen

TINY = 1e-15
LEADERBOARD = {
    "rank": int,
    "rank_low": int,
    "rank_high": int,
    "player": str,
    "elo": float,
    "elo_low": float,
    "elo_high": float,
    "games": int,
    "wins": float,
    "win_rate": float,
    "predicted_win_rate": float,
    "bias": float,
    "bound": float,
    "rating": float,
    "elo_all_time": float,
    "elo_now": float,
    "tracked": float,
}


@dataclass(frozen=True)
class EloOutcome:
    """Everything that is said about a run of games."""

    options: Common
    sides: Sides
    ties_rule: Ties
    predictions: str | None
    view: Seen
    layer: Any
    equilibrium: Any
    standing: Any  # the board with what is said about it
    board: list[Any]
    rows: int
    labelled: int
    learned: int
    ties: int
    skipped: int
    eta: float | str | None
    sums: Sums
    players: dict[str, tuple[float, float]]  # log loss and its games in this run
    capped: Capped | None
    resized: int
    whose_step: str
    continued: bool
    notices: tuple[Any, ...] = ()

    @property
    def games(self) -> int:
        """The games that players are judged by: with a state those learned from since it began."""
        reached: int = self.equilibrium.rows
        return reached if self.continued else self.labelled


class EloPass:
    """One run over the games: the ratings move on, the sums grow."""

    def __init__(
        self,
        layer: Any,
        sides: Sides,
        drop: bool,
        follow: Any,
        new: str,
        clock: RowClock | None,
        session: Session,
    ) -> None:
        self.layer, self.sides, self.drop, self.new = layer, sides, drop, new
        self.clock, self.session = clock, session
        self.follow = follow
        self.rows = self.ties = self.skipped = self.weighing = self.waiting = self.expired = 0
        self.sums = Sums(["bias_before", "bias_after", "loss"])
        self.book = Codebook()
        self.losses = GroupSums(["loss"])
        self.doubtful: Doubtful | None = None
        self.dates = Dates()

    def answer(self, games: Games) -> dict[str, Floats]:
        """Play a piece: the probability before each game that a wins; nan against oneself."""
        own = games.against_itself
        ids = self.session.admit(games.piece)
        if self.session.content is not None:
            enter(self.session.content, games)
        if ids is not None and own.any():
            ids = [id for id, alone in zip(ids, own.tolist(), strict=True) if not alone]
        p = np.full(len(own), np.nan)
        p[~own] = self._played(without_own(games), ids)
        self.rows += len(own)
        self.skipped += int(np.count_nonzero(own))
        if games.doubtful is not None:
            before = self.doubtful
            self.doubtful = (
                games.doubtful
                if before is None
                else before._replace(many=before.many + games.doubtful.many)
            )
        return {self.new: p}

    def _played(self, games: Games, ids: list[str] | None) -> Floats:
        piece, y = games.piece, games.scores
        self.dates.add(piece, ~np.isnan(y))
        if piece.never is not None and piece.never.any():
            y = np.where(piece.never, np.nan, y)
        turns = None if self.clock is None else self.clock.turns(len(y), None)
        when = times_of(self.clock, turns, piece, self.layer)
        given: dict[str, Any] = {"weights": games.weights, "home": games.home, "ids": ids, **when}
        run = self.layer.run(games.a, games.b, y, **given)
        p: Floats = np.asarray(run.values)
        self.waiting = run.waiting
        self.expired += run.expired
        self._add(games, p, run)
        return p

    def _add(self, games: Games, p: Floats, run: Any) -> None:
        tied = games.scores == 0.5
        self.ties += int(np.count_nonzero(tied))
        counted = ~np.isnan(games.scores)
        if self.drop:
            counted &= ~tied
        first, second = self.book.codes(games.a), self.book.codes(games.b)
        count = len(self.book)
        q, y = p[counted], games.scores[counted]
        loss = log_loss(q, y)
        columns = {"bias_before": 0.5 - y, "bias_after": q - y, "loss": loss}
        self.sums.add(columns, len(y))
        for codes in (first, second):
            self.losses.add(codes[counted], {"loss": loss}, count)
        if self.follow is not None:
            self.follow.add(games, p, counted, first, second, run)
            self.follow.end(self.layer, games.piece, len(p))
        heavy = True if games.weights is None else games.weights > 0.0
        self.weighing += int(np.count_nonzero(counted & heavy))


def log_loss(p: Floats, y: Floats) -> Floats:
    """Log loss of each game."""
    p = np.clip(p, TINY, 1.0 - TINY)
    return -(y * np.log(p) + (1.0 - y) * np.log1p(-p))


def carry_out(
    options: Common,
    a: str,
    b: str,
    winner: str | None,
    score: str | None,
    ties: Ties,
    k: float | None,
    home: str | None,
    neutral: str | None,
    view: Seen,
    skip_self: bool,
    predictions: str | None,
    column_name: str,
) -> EloOutcome:
    """Do what a call asks: outputs appear together at the end, or not at all; the state last."""
    arrow_without_pandas()
    numba_without_scipy()
    sides = Sides(a, b, winner, score, options.weight, skip_self, home, neutral)
    named = (options.output, options.report, options.state, predictions)
    check_distinct([path for path in named if path is not None])
    table = open_table(options.files, spool=options.time is not None, form=options.form)
    columns = [*sides.columns, *([options.id] if options.id is not None else [])]
    table.need(*columns)
    reading = reading_of(table, list(dict.fromkeys(columns)), options)
    ttl = reading.ttl(options.ttl)
    if options.state is not None:
        check_place(options.state)
    with holding(options.state) as held, Together(table.paths) as files:
        dated = reading.time is not None and reading.time.kind == "time"
        layer, continued = starting_layer(options, ties, k, sides.sided, dated, ttl)
        follow = None
        if options.report is not None:
            from gradeq.cli.elo_follow import EloFollow

            follow = EloFollow(reading)
        clock, now = clock_of(options, layer), layer._book.now
        session = Session("elo", options, reading, layer, held)
        pass_ = EloPass(layer, sides, ties == "drop", follow, column_name, clock, session)
        before = Before.of(layer) if continued else Before()
        with ExitStack() as stack:
            import pyarrow as pa

            board = writer = None
            given: dict[str, Any] = {"inputs": table.paths, "among": files, "form": table.form}
            if options.output is not None:
                board = stack.enter_context(
                    Writer(options.output, pa.schema([]), LEADERBOARD, **given)
                )
            if predictions is not None:
                new = {column_name: float}
                writer = stack.enter_context(Writer(predictions, table.schema, new, **given))
            page = files.open(options.report) if options.report is not None else None
            place = files.open(options.state, last=True) if options.state is not None else None
            step = stack.enter_context(progress("elo", options.quiet or options.json))

            def answer(games: Games) -> dict[str, Floats]:
                results = pass_.answer(games)
                step(pass_.rows, reading.progress())
                return results

            reading.serve(lambda piece: parse(sides, piece), answer, writer, [column_name])
            session.check()
            check_played(pass_)
            whose = whose_step(k is not None or options.eta is not None, continued)
            outcome = concluded(
                options, sides, ties, predictions, view, pass_, before, whose, continued
            )
            if board is not None:
                write_board(board, outcome.board)
        if page is not None and follow is not None:
            from gradeq.cli.elo_story import page_of

            text = page_of(outcome, follow, table.paths).encode()
            with writing(str(options.report)):
                page.write(text)
        if clock is not None and place is not None:
            clock.lay_down(layer, now)
        session.publish(files, place, pass_.rows)
    return outcome


def check_played(pass_: EloPass) -> None:
    """Refuse a file in which nobody played anybody."""
    dropped = pass_.ties if pass_.drop else 0
    if pass_.skipped + dropped < pass_.rows:
        return
    why = [
        f"{pass_.skipped:,} against oneself" if pass_.skipped else "",
        f"{dropped:,} dropped as {'a tie' if dropped == 1 else 'ties'}" if dropped else "",
    ]
    raise BadInput(
        f"no games: of {some(pass_.rows, 'row')} "
        f"{' and '.join(filter(None, why))}; give a file with games of two players"
        f"{' or --ties half' if dropped else ''}"
    )


def starting_layer(
    options: Common, ties: Ties, k: float | None, sided: bool, dated: bool, ttl: float | None
) -> tuple[Any, bool]:
    """The ratings to begin with, and whether they come from a state."""
    from gradeq.layers.doubts import silenced
    from gradeq.layers.elo import PLAIN_ETA, Elo
    from gradeq.layers.making import check_same_settings
    from gradeq.theory.elo import step_from_k

    saved = read_state(options.state) if options.state is not None else None
    eta = PLAIN_ETA if options.eta == "plain" else options.eta
    eta = step_from_k(k) if k is not None else eta
    if saved is not None and eta is None:
        eta = step_of(saved)
    if eta in (None, "auto") and (options.decay is not None or options.penalty is not None):
        raise BadInput("--decay and --penalty are for plain Elo; give --eta or --k as well")
    layer = Elo(
        **stepped(options, eta, None),
        ties=ties,
        home_advantage=sided,
        dates=dated,
        penalty=penalty_of(options),
        late_cap=None if options.no_cap else "auto",
        in_flight=options.in_flight,
        ttl=ttl,
    )
    if saved is None:
        return silenced(layer), False
    check_same_settings(layer, saved)
    return saved, True


def concluded(
    options: Common,
    sides: Sides,
    ties: Ties,
    predictions: str | None,
    view: Seen,
    pass_: EloPass,
    before: Before,
    whose: str,
    continued: bool,
) -> EloOutcome:
    """All that is said about a run, once it is over."""
    from gradeq.cli.elo_notes import notices

    layer = pass_.layer
    equilibrium, standing = layer.equilibrium(), layer.board(view)
    names = pass_.book.names
    losses = {
        name: (pass_.losses.total(code, "loss"), float(pass_.losses.rows[code]))
        for code, name in enumerate(names)
    }
    outcome = EloOutcome(
        options,
        sides,
        ties,
        predictions,
        view,
        layer,
        equilibrium,
        standing,
        standing.rows,
        pass_.rows,
        pass_.sums.rows,
        equilibrium.rows - before.learned,
        pass_.ties,
        pass_.skipped,
        step_of(layer),
        pass_.sums,
        losses,
        capping(layer, before),
        layer.steps["resized"] - before.resized,
        whose,
        continued,
    )
    return replace(outcome, notices=(*pass_.session.said, *notices(outcome, pass_)))


def write_board(writer: Writer, board: list[Any]) -> None:
    """One row per player, names guarded against spreadsheet formulas."""
    import pyarrow as pa

    columns: dict[str, Any] = {name: [getattr(row, name) for row in board] for name in LEADERBOARD}
    columns["player"] = [guard_formula(name) for name in columns["player"]]
    # No rate is off by more than 1: such a bound is left out.
    columns["bound"] = [
        np.nan if bound is None or bound > 1.0 else bound for bound in columns["bound"]
    ]
    nothing = pa.RecordBatch.from_struct_array(pa.array([{}] * len(board), pa.struct([])))
    writer.write(nothing, columns)
