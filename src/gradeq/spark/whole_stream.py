"""One layer over a whole stream of Spark: a micro-batch is a round, the state a file written with its number."""

from __future__ import annotations

import json
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from gradeq.errors import BadInput, StateError
from gradeq.files.atomic import write_text
from gradeq.layers.debiaser import Debiaser
from gradeq.layers.making import check_same_settings
from gradeq.layers.registry import from_json
from gradeq.layers.rounds import Round, Sums, check_layer, posted
from gradeq.spark.refusals import refusals
from gradeq.spark.session import check_spark
from gradeq.spark.whole import Columns, check_fresh, checked, parts_of, with_served

FILE = "whole.json"


class Kept(NamedTuple):
    """What is written at each round of a stream: its number, the layer before and after, exact sums, and itself."""

    batch: int
    before: str
    after: str
    sums: dict[str, list[Any]]
    round: list[Any]


def whole_stream(
    folder: str | PathLike[str],
    layer: Debiaser,
    *,
    prediction: str,
    label: str,
    write: Callable[[Any, int], None] | None = None,
) -> Callable[[Any, int], None]:
    """What to give to ``foreachBatch``: each micro-batch is a round, and ``folder`` holds the state from run to run.

    The state and the number of the micro-batch are written together, whole or not at all, before ``write`` is given
    the rows with what was served. After a crash Spark repeats the last micro-batch: one whose number is written
    changes nothing more, and its rows are served from the state that they were served from. ``write`` may see a
    micro-batch twice, with the same rows; let it overwrite by number.
    """
    check_spark()
    check_layer(layer)
    check_fresh(layer)
    path = Path(folder) / FILE
    kept_in(path, layer)

    def batch_done(frame: Any, batch: int) -> None:
        columns = checked(frame, layer, prediction, label)
        known = kept_in(path, layer)
        if known is not None and batch < known.batch:
            raise BadInput(
                f"micro-batch {batch} comes after {known.batch} was written to {path}; "
                "use the checkpoint that belongs to this folder, or a new folder for both"
            )
        frame = frame.persist()
        try:
            if known is None or batch > known.batch:
                known = advanced(known, layer, frame, columns, batch)
                Path(folder).mkdir(parents=True, exist_ok=True)
                write_text(path, [json.dumps(known._asdict())])
            if write is not None:
                with refusals():
                    write(with_served(frame, {"": known.before}, columns), batch)
        finally:
            frame.unpersist()

    return batch_done


def advanced(known: Kept | None, layer: Debiaser, frame: Any, columns: Columns, batch: int) -> Kept:
    """What is to be written once a micro-batch is posted."""
    now = layer.copy() if known is None else from_json(known.after)
    assert isinstance(now, Debiaser)
    sums = {} if known is None else {name: Sums.of(own) for name, own in known.sums.items()}
    new, sums, done = posted(now, sums, parts_of(frame, now, columns))
    plain = {name: own.state() for name, own in sums.items()}
    return Kept(batch, now.to_json(), new.to_json(), plain, list(done))


def layer_in(folder: str | PathLike[str]) -> tuple[Debiaser, Round]:
    """The layer that a stream has left in a folder, and its last round."""
    known = kept_in(Path(folder) / FILE)
    if known is None:
        raise BadInput(f"{folder} has no {FILE}; no micro-batch has ended yet")
    found = from_json(known.after)
    assert isinstance(found, Debiaser)
    return found, Round(*known.round)


def kept_in(path: Path, layer: Debiaser | None = None) -> Kept | None:
    """What was written last, None if nothing was; damaged or of other settings it is refused."""
    try:
        known = Kept(**json.loads(path.read_text(encoding="utf-8")))
        after = from_json(known.after)
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        if isinstance(error, StateError):
            raise
        raise StateError(f"{path} is damaged: it is not what a stream of rounds writes") from None
    if layer is not None:
        check_same_settings(layer, after)
    return known
