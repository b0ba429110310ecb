"""One run on a state: rows that were seen before are refused, and outputs and state take their places as a pair."""

from __future__ import annotations

from functools import partial
from typing import Any, BinaryIO, NamedTuple

from gradeq.cli.content import Content
from gradeq.cli.desk import AGAIN, Desk
from gradeq.cli.lock import Held
from gradeq.cli.options import Common
from gradeq.cli.reading import Piece, Reading
from gradeq.errors import BadInput
from gradeq.files import MISSING_NAME, Codebook, Together
from gradeq.files.cells import shown
from gradeq.files.failures import writing
from gradeq.report.late_notices import clocks_changed, taken_again
from gradeq.report.story import Notice
from gradeq.spans import shown_time


class Session:
    """What a run looks at before it takes rows in, and how it ends; without a state only ids are looked at."""

    def __init__(
        self, command: str, options: Common, reading: Reading, layer: Any, held: Held | None
    ) -> None:
        self.command, self.options, self.reading = command, options, reading
        self.layer, self.held = layer, held
        self.desk = None if held is None else Desk.of(layer, options.again)
        self.content = None if held is None else Content()
        self._ids: set[str] = set()
        self._served_again = 0
        self._refusal: BadInput | None = None  # kept until it is known whether all rows were seen
        self._mark = ""
        told = reading.turns.told
        self.said: list[Notice] = [] if told is None else [clocks_changed(told)]

    def check_columns(self, columns: dict[str, Any]) -> None:
        """Refuse other columns than those that the state was made with."""
        if self.desk is not None:
            self.desk.check_columns(columns, self.options.time is not None)

    def admit(self, piece: Piece) -> list[str] | None:
        """Look at ids and times of a piece; the ids of its rows, where the state keeps their tickets."""
        if self.desk is not None and piece.times is not None:
            self._check_times(self.desk, piece)
        if self.options.id is None:
            return None
        ids = self._checked_ids(piece, self.options.id)
        if self.content is not None:
            self.content.cells("id", piece.cells(self.options.id))
        return None if self.desk is None else ids

    def _check_times(self, desk: Desk, piece: Piece) -> None:
        assert self.reading.time is not None and self.content is not None
        clock = self.reading.time
        if not piece.start:
            desk.check_kind("--time", clock.holds)
            try:
                desk.check_start(piece.times[0], partial(shown_time, dates=clock.kind == "time"))
            except BadInput as refusal:
                self._refusal = refusal
        desk.note_time("row", piece.times[-1], clock.holds)
        self.content.numbers("time", piece.times)
        self.content.numbers("due", piece.due)

    def _checked_ids(self, piece: Piece, column: str) -> list[str]:
        codes = Codebook()
        places = codes.codes(piece.cells(column))
        ids = codes.names
        if len(ids) < len(places) or MISSING_NAME in ids:
            ids = [ids[place] for place in places.tolist()]
        book = self.layer._book if self.desk is not None else None
        for i, id in enumerate(ids):
            if id == MISSING_NAME:
                raise BadInput(f"{piece.row(i)}: column {column!r} has no id; give every row one")
            if id in self._ids:
                raise BadInput(
                    f"{piece.row(i)}: id {shown(id)} appears twice; every row needs an id of its own"
                )
            self._ids.add(id)
            if book is not None and book.knows(id):
                if not self.options.again:
                    became = {"open": "waits for its label"}.get(
                        self.layer.ids[id], "has its label"
                    )
                    known = f"id {shown(id)} is in the state already and {became}"
                    self._refusal = self._refusal or BadInput(f"{piece.row(i)}: {known}; {AGAIN}")
                book.drop(id)
                self._served_again += 1
        return ids

    def check(self) -> None:
        """Once all rows are read: refuse those that the state has seen, and note what is to be told.

        If one of the last runs had the same rows that is said, else the first of them that was known.
        """
        if self.desk is None or self.content is None or self.held is None:
            return
        self._mark = self.content.digest(self.command)
        if self._refusal is not None:
            self.desk.check_content(self._mark)
            raise self._refusal
        if self._served_again:
            self.desk.overridden.append(f"{self._served_again:,} ids were served before")
        self.desk.check_content(self._mark)
        left = self.held.left
        if left is not None and left["run"] > self.desk.number:
            self.said.append(unfinished(left, left["content"] == self._mark))
        if self.desk.overridden:
            self.said.append(taken_again("; ".join(self.desk.overridden)))
        if self.desk.looked_ahead:
            self.said.append(looked_ahead(self.desk.looked_ahead))

    def publish(self, files: Together, place: BinaryIO | None, rows: int) -> None:
        """Put outputs and state in their places: all whole, the state last, so that it names what is there."""
        if place is None or self.desk is None or self.held is None:
            files.publish()
        else:
            run = Run(str(self.options.state), self._mark, rows, self.options.files)
            publish(files, place, self.layer, self.desk, self.held, run)


class Run(NamedTuple):
    """A run as its state remembers it: the state, the content ("" of labels), how many rows, of which files."""

    state: str
    content: str
    rows: int
    inputs: tuple[str, ...]


def publish(files: Together, place: BinaryIO, layer: Any, desk: Desk, held: Held, run: Run) -> None:
    """The state names this run and its outputs; who finds one of these without it knows from the lock's file."""
    outputs = files.marks()
    desk.lay_down(run.content, run.rows, outputs)
    with writing(run.state):
        place.writelines(piece.encode() for piece in layer._written())
    files.seal()
    if outputs:
        named = [path for path, _ in outputs]
        held.promise(run=desk.number, content=run.content, outputs=named, inputs=list(run.inputs))
    try:
        files.publish()
    finally:
        held.promised = files.halfway


def unfinished(left: dict[str, Any], same: bool) -> Notice:
    """An earlier run was killed after an output took its place and before the state did."""
    outputs, inputs = (", ".join(left[name]) for name in ("outputs", "inputs"))
    claim = f"Run {left['run']} ({inputs}) was stopped while it wrote its files."
    if same:
        return Notice(
            "note",
            claim,
            "Its rows were not in the state; this run had the same ones and took its place.",
        )
    return Notice(
        "amber",
        claim,
        f"Its rows are not in the state, though {outputs} may be there.",
        f"Run {inputs} again (with `--again` if its times lie before those seen since), or drop {outputs}.",
    )


def looked_ahead(what: str) -> Notice:
    """Rows were served after labels from later than they are had been learned from."""
    return Notice(
        "amber",
        "Rows were served with labels from their future.",
        f"The first row is of {what} had been learned from.",
        "Post labels after the rows of their time were served.",
    )
