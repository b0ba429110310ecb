"""The pass of label: read all ids and labels, check them, post one after the other; then say what came of it."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gradeq.cli.dates import before
from gradeq.cli.desk import Desk
from gradeq.cli.far import Watch, each
from gradeq.cli.games import scores_of
from gradeq.cli.json_summary import warned
from gradeq.cli.light import arrow_without_pandas
from gradeq.cli.lock import holding
from gradeq.cli.options import check_distinct
from gradeq.cli.session import Run, publish
from gradeq.cli.state_file import check_place, read_state
from gradeq.cli.summary import said
from gradeq.errors import BadInput
from gradeq.files import MISSING_NAME, Clock, Codebook, Times, Together, Writer, open_table
from gradeq.files.cells import row_name
from gradeq.files.formats import format_of
from gradeq.files.numbers import numeric, plain
from gradeq.layers.answering import outcome_of
from gradeq.report.late_notices import conflicting, dated_before, unknown_ids
from gradeq.report.markup import clean
from gradeq.report.notices import ordered
from gradeq.report.numerals import some
from gradeq.report.of_state import covered_since, harm_since, in_short
from gradeq.report.story import Notice
from gradeq.report.surprises import means_remember, not_known

WORDS = (
    "applied", "duplicate", "conflict", "unknown", "expired", "corrected", "skipped", "waiting",
)  # fmt: skip
FAR_OFF = 10.0  # typical errors: a label that was wrong by more is still heard in the means
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
class Labels:
    """The labels of all files: ids, values (nan: blank) and, with --label-time, when each became known."""

    ids: list[str]
    values: list[float]
    times: Any = None
    kind: str | None = None


class Replaced(NamedTuple):
    """A label that was corrected."""

    id: str
    old: float
    new: float


@dataclass(frozen=True)
class Answered:
    """What became of every label, and the layer that learned from them."""

    counts: Counter[str]
    layer: Any
    state: str
    rejected: str | None
    learned: int
    notices: tuple[Notice, ...] = ()


def carry_out(
    files: tuple[str, ...],
    state: str,
    id_column: str,
    label: str,
    label_time: str | None,
    rejected: str | None,
    correct: bool,
    separator: str | None = None,
    decimal: str = ".",
    missing: tuple[str, ...] = (),
) -> Answered:
    """Do what a call asks; a value that is no label, or anything else that is wrong, leaves the state as it was."""
    arrow_without_pandas()
    check_distinct([path for path in (state, rejected) if path is not None])
    form = format_of(separator, decimal, missing)
    table = open_table(files, spool=rejected is not None, empty=True, form=form)
    clock = None if label_time is None else Clock(label_time, decimal=decimal)
    columns = [id_column, label, *([label_time] if label_time is not None else [])]
    table.need(*columns)
    check_place(state)
    with holding(state) as held, Together(table.paths) as outputs:
        assert held is not None
        layer: Any = read_state(state)
        if layer is None:
            raise BadInput(
                f"{state} does not exist; it is written by debias, quantile or elo with --id and --state"
            )
        desk = Desk.of(layer)
        labels = read(table, columns, clock, layer)
        if label_time is not None:
            desk.check_kind("--label-time", labels.kind)
        before = layer.equilibrium().rows
        watch = Watch(layer)
        look(watch, layer, labels)
        swapped = dated(layer, labels)
        replaced: list[Replaced] = []
        outcomes = posted(layer, labels, correct, replaced)
        known = ~np.isnan(labels.values)
        if labels.times is not None and known.any():
            desk.note_time("label", labels.times[known].max(), labels.kind)
        if rejected is not None:
            write_rejected(rejected, table, outcomes, outputs)
        place = outputs.open(state, last=True)
        publish(outputs, place, layer, desk, held, Run(state, "", len(labels.ids), files))
        learned = layer.equilibrium().rows - before
    now = layer.equilibrium()
    found = [
        *unused(layer, labels, outcomes),
        swapped,
        *watch.notices(),
        *remembered(layer, replaced),
        not_known(now.hidden),
    ]
    found += harm_since(layer, now)
    notices = ordered(notice for notice in found if notice is not None)
    return Answered(Counter(outcomes), layer, state, rejected, learned, notices)


def read(table: Any, columns: list[str], clock: Clock | None, layer: Any) -> Labels:
    """All ids and labels, checked; an error names the row in the file."""
    ids: list[str] = []
    values: list[float] = []
    times: list[Any] = []
    for chunk in table.batches(list(dict.fromkeys(columns))):
        book = Codebook()
        codes = book.codes(chunk.cells(columns[0])).tolist()
        own = labels_of(chunk, columns[1], layer)
        ids += [book.names[code] for code in codes]
        values += own.tolist()
        known = ~np.isnan(own)
        check(chunk, columns, [book.names[code] for code in codes], own, known, layer)
        if clock is not None:
            found = chunk.times(clock, missing=True)
            refuse(
                chunk, found.missing & known, f"column {clock.name!r} has no time for this label"
            )
            times.append(found.values)
    kind = None if clock is None else clock.holds
    return Labels(ids, values, np.concatenate(times) if times else None, kind)


def labels_of(chunk: Any, name: str, layer: Any) -> Any:
    """Labels as numbers, nan where blank; of games a word may say who won."""
    column = plain(chunk.column(name))
    if layer.kind == "elo":
        column = scores_of(column)
    decimal = chunk.form.decimal
    return numeric(column, name, chunk.first_row, file=chunk.file, missing=True, decimal=decimal)


def check(chunk: Any, columns: list[str], ids: list[str], own: Any, known: Any, layer: Any) -> None:
    """Refuse labels without an id, and values that the layer does not take as labels."""
    nameless = np.array([id == MISSING_NAME for id in ids])
    refuse(chunk, nameless & known, f"column {columns[0]!r} has no id for this label")
    for i in np.flatnonzero(known).tolist():
        try:
            layer._label(float(own[i]))
        except BadInput as error:
            raise BadInput(
                f"{row_name(chunk.first_row + i, chunk.file)}: column {columns[1]!r}: {error}"
            ) from None


def refuse(chunk: Any, wrong: Any, what: str) -> None:
    """One line for the first row that lacks something."""
    if wrong.any():
        row = row_name(chunk.first_row + int(np.argmax(wrong)), chunk.file)
        raise BadInput(f"{row}: {what}; fill it in, or leave the label blank")


def posted(layer: Any, labels: Labels, correct: bool, replaced: list[Replaced]) -> list[str]:
    """What became of every label, in file order; they are posted in the order of their times."""
    verb = layer.settle if layer.kind == "elo" else layer.update
    order = range(len(labels.ids))
    if labels.times is not None:
        order = np.argsort(labels.times, kind="stable").tolist()
    outcomes = [""] * len(labels.ids)
    for k in order:
        id, y = served_under(layer, labels.ids[k]), labels.values[k]
        if y != y:
            outcomes[k] = "skipped"
            continue
        if labels.times is not None:
            layer._book.give_up(id, float(labels.times[k]))
        came = {}
        if labels.times is not None and layer._book.maturity:
            came["time"] = Times(labels.times[k], np.zeros((), dtype=bool), labels.kind)
        outcome = outcome_of(partial(verb, y, id=id, **came))
        if outcome == "conflict" and correct:
            if id in layer._book.closed:
                replaced.append(Replaced(str(id), layer._book.closed[id].y, y))
            outcome = layer.correct(id, y)
        outcomes[k] = "applied" if outcome == "dropped" else outcome
    return outcomes


def unused(layer: Any, labels: Labels, outcomes: list[str]) -> list[Notice]:
    """Labels that the state has no row for, and labels unlike those it has."""
    counts, found = Counter(outcomes), []
    if counts["unknown"]:
        waiting = next(iter(layer._book.by_id), None)
        alone = counts["unknown"] + counts["skipped"] == len(outcomes) and waiting is not None
        stranger = labels.ids[outcomes.index("unknown")]
        found.append(
            unknown_ids(
                counts["unknown"], alone, stranger, None if waiting is None else str(waiting)
            )
        )
    if counts["conflict"]:
        found.append(conflicting(counts["conflict"]))
    return found


def dated(layer: Any, labels: Labels) -> Notice | None:
    """Labels that are dated before the rows that wait for them."""
    if labels.times is None:
        return None
    book, early, known, first = layer._book, 0, 0, ""
    for id, y, due in zip(labels.ids, labels.values, labels.times.tolist(), strict=True):
        number = book.by_id.get(served_under(layer, id))
        time = None if number is None or y != y else book.opened[number][3]
        if time is None:
            continue
        known += 1
        if due < time:
            first = first or before(f"id {id!r}", due, time, labels.kind)
            early += 1
    return dated_before(early, known, first) if early else None


def remembered(layer: Any, replaced: list[Replaced]) -> list[Notice]:
    """Corrections of labels that were far off, where the means of the automatic step remember the old ones."""
    if layer.kind != "debias" or layer.settings.get("eta") != "auto":
        return []
    loss = layer.equilibrium().loss_after
    spread = 0.0 if loss is None else FAR_OFF * math.sqrt(max(0.0, loss))
    far = [own for own in replaced if abs(own.old - own.new) > spread]
    if not far:
        return []
    return [means_remember(len(far), *max(far, key=lambda own: abs(own.old - own.new)))]


def served_under(layer: Any, id: str) -> str | int:
    """The id as the state has it: text, or a whole number where a layer was saved in Python with such ids."""
    if layer._book.knows(id) or not (id.isascii() and id.isdigit()) or len(id) > 18:
        return id
    return int(id) if str(int(id)) == id and layer._book.knows(int(id)) else id


def look(watch: Watch, layer: Any, labels: Labels) -> None:
    """Before labels are learned from: is one of them far outside, or what was served under its id?"""

    def where(i: int) -> str:
        return f"id {labels.ids[i]!r}"

    book = layer._book
    numbers = [book.by_id.get(served_under(layer, id)) for id in labels.ids]
    tickets = [None if number is None else book.opened[number][0] for number in numbers]
    # The largest forecast of each row that waits: series of keys have scales of their own.
    forecasts = np.array([np.nan if t is None else max(map(abs, each(t.base))) for t in tickets])
    watch.labels.add(np.array(labels.values), where, forecasts if layer.kind == "keyed" else None)
    rows = [i for i, ticket in enumerate(tickets) if ticket is not None]
    if rows and layer.kind != "elo":
        shown = [each(layer._shown(t.base, t.served)) for t in tickets if t is not None]
        watch.look_at_served(
            np.array(shown, dtype=float), forecasts[rows], lambda i: where(rows[i])
        )


def write_rejected(path: str, table: Any, outcomes: list[str], files: Together) -> None:
    """The rows whose label was not used, and why."""
    name = "rejected"
    while name in table.names:
        name += "_"
    with Writer(
        path, table.schema, {name: str}, inputs=table.paths, among=files, form=table.form
    ) as writer:
        for chunk in table.batches():
            own = outcomes[chunk.start : chunk.start + chunk.rows]
            rows = [i for i, outcome in enumerate(own) if outcome in REJECTED]
            if rows:
                writer.write(chunk.batch.take(rows), {name: [own[i] for i in rows]})


def unused_line(answered: Answered) -> str | None:
    """What --strict says: how many labels were not used, and why; None where all were."""
    counts = answered.counts
    many = {word: counts[word] for word in REJECTED if counts[word]}
    if not many:
        return None
    known = counts.total() - counts["skipped"]
    were = "label was" if known == 1 else "labels were"
    why = ", ".join(f"{count:,} {word}" for word, count in many.items())
    where = (
        f"see {clean(answered.rejected, 200)}"
        if answered.rejected
        else "--rejected OUT.csv lists them"
    )
    return f"gradeq: {sum(many.values()):,} of {known:,} {were} not used ({why}); {where}"


def as_dict(answered: Answered) -> dict[str, Any]:
    """The counts, and what is reached since the state began."""
    layer = answered.layer
    now = layer.equilibrium()
    reached = now.as_dict()
    found: dict[str, Any] = {word: answered.counts[word] for word in WORDS}
    found |= {
        "learned": answered.learned,
        "open": layer.in_flight["open"],
        "held_back": len(layer._book.held_back),
        "run": Desk.of(layer).number,
    }
    found |= {name: reached[name] for name in ("bias", "loss", "not_known", "certificate")}
    return found | covered_since(layer, now) | {"warnings": warned(answered.notices)}


def terminal(answered: Answered) -> str:
    """What became of the labels, what is reached since the state began, and what was written where."""
    counts, layer = answered.counts, answered.layer
    others = [f"{counts[word]:,} {said_of}" for word, said_of in IN_WORDS.items() if counts[word]]
    first = f"{some(counts['applied'], 'label')} applied{''.join(f'; {other}' for other in others)}"
    waiting = layer.in_flight["open"] - len(layer._book.waiting)
    waits = "1 row still waits" if waiting == 1 else f"{waiting:,} rows still wait"
    parts = [
        f"{first}; {waits} for a label.",
        f"Since the state began: {in_short(layer, layer.equilibrium())}.",
    ]
    if layer.kind == "elo":
        from gradeq.cli.elo_summary import shown

        parts.append(shown(layer.board()))
    parts += [said(notice) for notice in answered.notices]
    named = (("rejected", answered.rejected), ("state", answered.state))
    parts.append(
        "\n".join(f"{name}  {clean(path, 200)}" for name, path in named if path is not None)
    )
    return "\n\n".join(parts)
