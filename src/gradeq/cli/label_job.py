"""The job of label: read and check all labels, post them, summarise the outcome."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np

from gradeq.cli.games import words_to_scores
from gradeq.cli.options import check_distinct
from gradeq.cli.row_reader import early_label_example
from gradeq.cli.run_notices import OutlierWatch, forecasts_of
from gradeq.cli.session import RunHistory, locked_state, publish_run, read_state
from gradeq.cli.summary import notice_text, notices_json, paths_text
from gradeq.engine.tickets import ticket_of
from gradeq.errors import BadInput
from gradeq.files import MISSING_NAME, Chunk, Clock, Codebook, OutputFiles, Table, Times, Writer, open_table
from gradeq.files.cells import Mask, format_of, numeric, plain, row_name
from gradeq.files.times import Moments
from gradeq.layers.run import outcome_of
from gradeq.report.components import clean
from gradeq.report.notices import conflicting, dated_before, figures_not_known, means_remember, unknown_ids
from gradeq.report.sentences import ordered
from gradeq.report.state_facts import coverage_as_json, state_sentence, worse_in_state
from gradeq.report.story import Notice
from gradeq.tables import agreeing, some

if TYPE_CHECKING:
    from gradeq.layers.elo import Elo
    from gradeq.layers.layer import Layer

WORDS = ("applied", "duplicate", "conflict", "unknown", "expired", "corrected", "skipped", "waiting")
FAR_OFF = 10.0  # typical errors: a larger correction still shows in the running means
IN_WORDS = {
    "waiting": "kept for later (waiting)",
    "duplicate": "the same as before (duplicate)",
    "conflict": "unlike the label learned from (conflict)",
    "unknown": "with an unknown id",
    "expired": "too late for --ttl (expired)",
    "corrected": "corrected",
    "skipped": "blank",
}
REJECTED = ("conflict", "unknown", "expired")


@dataclass(frozen=True)
class LabelRows:
    """Labels of all files; nan is blank. ``times``: when each became known."""

    ids: list[str]
    values: list[float]
    times: Moments | None = None
    kind: str | None = None


class CorrectedLabel(NamedTuple):
    id: str
    old: float
    new: float


@dataclass(frozen=True)
class LabelOutcome:
    """Counts of outcomes, and the layer after learning."""

    counts: Counter[str]
    layer: Layer
    state: str
    rejected: str | None
    learned: int
    notices: tuple[Notice, ...] = ()


@dataclass(frozen=True)
class LabelTask:
    files: tuple[str, ...]
    state: str
    id: str
    label: str
    label_time: str | None
    rejected: str | None
    correct: bool
    separator: str | None
    decimal: str
    missing: tuple[str, ...]

    @property
    def columns(self) -> list[str]:
        return [name for name in (self.id, self.label, self.label_time) if name is not None]


def run_label(task: LabelTask) -> LabelOutcome:
    """Post all labels of the files; after any error the state is as it was."""
    state, rejected = task.state, task.rejected
    check_distinct(state, rejected)
    if task.id == task.label:
        raise BadInput(f"{task.label!r} is given as --id and as --label; give each its own column")
    form = format_of(task.separator, task.decimal, task.missing)
    table = open_table(task.files, spool=rejected is not None, empty=True, form=form)
    table.need(*task.columns)
    with locked_state(state) as lock, OutputFiles(table.paths) as outputs:
        assert lock is not None
        layer = read_state(state)
        if layer is None:
            raise BadInput(f"{state} does not exist; it is written by debias, quantile or elo with --id and --state")
        history = RunHistory.of(layer)
        labels = read_labels(task, table, layer)
        if task.label_time is not None:
            history.check_kind("--label-time", labels.kind)
        before = layer.equilibrium().rows
        watch = OutlierWatch(layer)
        watch_outliers(watch, layer, labels)
        early = early_label_notice(layer, labels)
        corrected: list[CorrectedLabel] = []
        outcomes = post_labels(layer, labels, task.correct, corrected)
        known = ~np.isnan(labels.values)
        if labels.times is not None and known.any():
            history.note_time("label", labels.times[known].max(), labels.kind)
        if rejected is not None:
            write_rejected(rejected, table, outcomes, outputs)
        place = outputs.open(state, last=True)
        publish_run(outputs, place, history, lock, "", len(labels.ids))
    now = layer.equilibrium()
    notices = [*label_notices(layer, labels, outcomes, corrected), early, *watch.notices()]
    notices += [figures_not_known(now.hidden), *worse_in_state(layer, now)]
    return LabelOutcome(Counter(outcomes), layer, state, rejected, now.rows - before, ordered(notices))


def read_labels(task: LabelTask, table: Table, layer: Layer) -> LabelRows:
    """All ids and labels, checked; an error names the row in the file."""
    clock = None if task.label_time is None else Clock(task.label_time, decimal=task.decimal)
    ids: list[str] = []
    values: list[float] = []
    times: list[Moments] = []
    for chunk in table.batches(task.columns):
        book = Codebook()
        codes = book.codes(chunk.cells(task.id)).tolist()
        names = [book.names[code] for code in codes]
        column = plain(chunk.column(task.label))
        if layer.kind == "elo":
            column = words_to_scores(column)
        labels = numeric(
            column, task.label, chunk.first_row, file=chunk.file, missing=True, decimal=chunk.form.decimal
        )
        known, nameless = ~np.isnan(labels), np.array([id == MISSING_NAME for id in names])
        refuse_rows(chunk, nameless & known, f"column {task.id!r} has no id for this label")
        for i in np.flatnonzero(known).tolist():
            try:
                layer.validate_label(float(labels[i]))
            except BadInput as error:
                row = row_name(chunk.first_row + i, chunk.file)
                raise BadInput(f"{row}: column {task.label!r}: {error}") from None
        ids += names
        values += labels.tolist()
        if clock is not None:
            known_at = chunk.read_times(clock, missing=True)
            refuse_rows(chunk, known_at.missing & known, f"column {clock.name!r} has no time for this label")
            times.append(known_at.values)
    kind = None if clock is None else clock.description
    return LabelRows(ids, values, np.concatenate(times) if times else None, kind)


def refuse_rows(chunk: Chunk, wrong: Mask, what: str) -> None:
    if wrong.any():
        row = row_name(chunk.first_row + int(np.argmax(wrong)), chunk.file)
        raise BadInput(f"{row}: {what}; fill it in, or leave the label blank")


def post_labels(layer: Layer, labels: LabelRows, correct: bool, replaced: list[CorrectedLabel]) -> list[str]:
    """Post labels in order of time; returns their outcomes in file order."""
    verb: Callable[..., str] = layer.update
    order = range(len(labels.ids))
    if labels.times is not None:
        order = np.argsort(labels.times, kind="stable").tolist()
    outcomes = [""] * len(labels.ids)
    for k in order:
        id, y = stored_id(layer, labels.ids[k]), labels.values[k]
        if y != y:
            outcomes[k] = "skipped"
            continue
        if labels.times is not None:
            layer.internals.tickets.give_up(id, float(labels.times[k]))
        came = {}
        if labels.times is not None and layer.internals.tickets.maturity:
            came["time"] = Times(labels.times[k], np.zeros((), dtype=bool), labels.kind)
        outcome = outcome_of(partial(verb, y, id=id, **came))
        if outcome == "conflict" and correct:
            if id in layer.internals.tickets.closed:
                replaced.append(CorrectedLabel(str(id), layer.internals.tickets.closed[id].y, y))
            outcome = layer.correct(id, y)
        outcomes[k] = "applied" if outcome == "dropped" else outcome
    return outcomes


def label_notices(
    layer: Layer, labels: LabelRows, outcomes: list[str], replaced: list[CorrectedLabel]
) -> Iterator[Notice]:
    """Labels with unknown ids, in conflict with earlier ones, or corrected by more than running means forget."""
    counts = Counter(outcomes)
    if counts["unknown"]:
        waiting = next(iter(layer.internals.tickets.by_id), None)
        alone = counts["unknown"] + counts["skipped"] == len(outcomes) and waiting is not None
        stranger = labels.ids[outcomes.index("unknown")]
        yield unknown_ids(counts["unknown"], alone, stranger, None if waiting is None else str(waiting))
    if counts["conflict"]:
        yield conflicting(counts["conflict"])
    if layer.kind == "debias" and layer.settings.get("eta") == "auto":
        loss = layer.equilibrium().loss_after
        spread = 0.0 if loss is None else FAR_OFF * math.sqrt(max(0.0, loss))
        far = [label for label in replaced if abs(label.old - label.new) > spread]
        if far:
            yield means_remember(len(far), *max(far, key=lambda label: abs(label.old - label.new)))


def early_label_notice(layer: Layer, labels: LabelRows) -> Notice | None:
    if labels.times is None:
        return None
    book, early, known, first = layer.internals.tickets, 0, 0, ""
    for id, y, due in zip(labels.ids, labels.values, labels.times.tolist(), strict=True):
        number = book.by_id.get(stored_id(layer, id))
        time = None if number is None or y != y else book.opened[number][3]
        if time is None:
            continue
        known += 1
        if due < time:
            first = first or early_label_example(f"id {id!r}", due, time, labels.kind)
            early += 1
    return dated_before(early, known, first) if early else None


def stored_id(layer: Layer, id: str) -> str | int:
    """The id as the state has it: text, or int in a state saved from Python with such ids."""
    if layer.internals.tickets.knows(id) or not (id.isascii() and id.isdigit()) or len(id) > 18:
        return id
    return int(id) if str(int(id)) == id and layer.internals.tickets.knows(int(id)) else id


def watch_outliers(watch: OutlierWatch, layer: Layer, labels: LabelRows) -> None:
    def where(i: int) -> str:
        return f"id {labels.ids[i]!r}"

    book = layer.internals.tickets
    numbers = [book.by_id.get(stored_id(layer, id)) for id in labels.ids]
    tickets = [None if number is None else ticket_of(book.opened[number][0]) for number in numbers]
    # The largest forecast of each row that waits: series of keys have scales of their own.
    forecasts = np.array([np.nan if t is None else max(map(abs, forecasts_of(t.base))) for t in tickets])
    watch.labels.add(np.array(labels.values), where, forecasts if layer.kind == "keyed" else None)
    rows = [i for i, ticket in enumerate(tickets) if ticket is not None]
    if rows and layer.kind != "elo":
        shown = [forecasts_of(layer.displayed(t.base, t.served)) for t in tickets if t is not None]
        width = len(shown[0])
        sizes = np.repeat(forecasts[rows], width)
        watch.served.add(np.array(shown, dtype=float).ravel(), lambda i: where(rows[i // width]), sizes)


def write_rejected(path: str, table: Table, outcomes: list[str], files: OutputFiles) -> None:
    name = "rejected"
    while name in table.names:
        name += "_"
    with Writer(path, table.schema, {name: str}, inputs=table.paths, among=files, form=table.form) as writer:
        for chunk in table.batches():
            here = outcomes[chunk.start : chunk.start + chunk.batch.num_rows]
            rows = [i for i, outcome in enumerate(here) if outcome in REJECTED]
            if rows:
                writer.write(chunk.batch.take(rows), {name: [here[i] for i in rows]})


def unused_line(outcome: LabelOutcome) -> str | None:
    """The line of --strict about unused labels; None if all were used."""
    counts = outcome.counts
    many = {word: counts[word] for word in REJECTED if counts[word]}
    if not many:
        return None
    known, unused = counts.total() - counts["skipped"], sum(many.values())
    why = ", ".join(f"{count:,} {word}" for word, count in many.items())
    where = f"--rejected OUT.csv lists {agreeing(unused, 'it', 'them')}"
    if outcome.rejected:
        where = f"see {clean(outcome.rejected, 200)}"
    were = agreeing(unused, "was", "were")
    return f"gradeq: {unused:,} of {some(known, 'label')} {were} not used ({why}); {where}"


def label_json(outcome: LabelOutcome) -> dict[str, object]:
    layer = outcome.layer
    now = layer.equilibrium()
    reached = now.as_dict()
    return {
        **{word: outcome.counts[word] for word in WORDS},
        "learned": outcome.learned,
        "open": layer.traffic["open"],
        "held_back": len(layer.internals.tickets.held_back),
        "run": RunHistory.of(layer).number,
        **{name: reached[name] for name in ("bias", "loss", "not_known", "certificate")},
        **coverage_as_json(layer, now),
        "warnings": notices_json(outcome.notices),
    }


def label_text(outcome: LabelOutcome) -> str:
    counts, layer = outcome.counts, outcome.layer
    others = [f"{counts[word]:,} {words}" for word, words in IN_WORDS.items() if counts[word]]
    first = f"{some(counts['applied'], 'label')} applied{''.join(f'; {other}' for other in others)}"
    waiting = int(layer.traffic["open"]) - len(layer.internals.tickets.waiting)
    waits = f"{some(waiting, 'row')} still {agreeing(waiting, 'waits', 'wait')}"
    since = f"Since the state began: {state_sentence(layer, layer.equilibrium())}."
    parts = [f"{first}; {waits} for a label.", since]
    if layer.kind == "elo":
        from gradeq.cli.elo_summary import leaderboard_text

        parts.append(leaderboard_text(cast("Elo", layer).board()))
    parts += [notice_text(notice) for notice in outcome.notices]
    parts.append(paths_text({"rejected": outcome.rejected, "state": outcome.state}))
    return "\n\n".join(parts)
