"""Run experiments one after the other and write what they give; what cannot run is skipped with its reason."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from gradeq.datasets.locate import check_folder
from gradeq.errors import BadInput, GradeqError
from gradeq.experiments.draw import pictures, require_matplotlib
from gradeq.experiments.experiment import Experiment, Result
from gradeq.experiments.gallery import Shown, gallery
from gradeq.experiments.pages import TITLES, page
from gradeq.experiments.registry import TEXTS, choose
from gradeq.experiments.source import Source
from gradeq.experiments.tables import csv_of
from gradeq.files.atomic import atomic
from gradeq.files.failures import writing

GALLERY = "index.html"


class Outcome(NamedTuple):
    """What became of one experiment: its result and files, or the reason why it was skipped."""

    experiment: Experiment
    result: Result | None
    skipped: str
    files: tuple[Path, ...]
    seconds: float


# Called before (outcome None) and after each experiment: how many are done, of how many, which one.
Progress = Callable[[int, int, str, Outcome | None], None]


def run_all(
    names: Sequence[str],
    data: str | os.PathLike[str] | None,
    out: str | os.PathLike[str],
    progress: Progress = lambda done, total, name, outcome: None,
) -> list[Outcome]:
    """Run the named experiments (all of them for no names) into the folder ``out``.

    Each gives a PNG, an SVG, a PDF and a CSV of every plotted series; together they give ``index.html``, with the
    bounds and the errata on pages beside it. An unknown name, a missing matplotlib, data that are no folder or an
    unwritable folder is refused before anything runs.
    """
    chosen = choose(names)
    require_matplotlib()
    check_folder(data)
    folder = Path(out)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    source = Source(data)
    outcomes: list[Outcome] = []
    shown: list[Shown] = []
    for done, experiment in enumerate(chosen):
        progress(done, len(chosen), experiment.name, None)
        outcome, images = _one(experiment, source, folder)
        outcomes.append(outcome)
        shown.append(Shown(experiment, outcome.result, outcome.skipped, images))
        progress(done + 1, len(chosen), experiment.name, outcome)
    if any(item.result is not None for item in shown):
        _write(folder / GALLERY, gallery(shown, {} if names else TEXTS).encode("utf-8"))
        for name in TITLES:
            _write(folder / f"{name}.html", page(name).encode("utf-8"))
    return outcomes


def reproduce(
    names: Sequence[str],
    data: str | os.PathLike[str] | None,
    out: str | os.PathLike[str],
    say: Callable[[str], None],
) -> list[Outcome]:
    """The same, telling one line after each figure; refused when no figure at all could be drawn."""

    def tell(done: int, total: int, name: str, outcome: Outcome | None) -> None:
        if outcome is not None:
            became = (
                f"skipped: {outcome.skipped}" if outcome.skipped else f"{outcome.seconds:.1f} s"
            )
            say(f"[{done}/{total}] {name}: {became}")

    outcomes = run_all(names, data, out, tell)
    skipped = [outcome for outcome in outcomes if outcome.skipped]
    if len(skipped) == len(outcomes):
        which = "" if len(outcomes) == 1 else f"none of {len(outcomes)} figures could be drawn: "
        raise BadInput(f"{which}{skipped[0].experiment.name}: {skipped[0].skipped}")
    left_out = f", {len(skipped)} skipped" if skipped else ""
    drawn = len(outcomes) - len(skipped)
    say(f"{drawn} figure{'s' if drawn != 1 else ''}{left_out}; see {Path(out) / GALLERY}")
    return outcomes


def _one(experiment: Experiment, source: Source, folder: Path) -> tuple[Outcome, dict[str, bytes]]:
    began = time.monotonic()
    try:
        result = experiment.run(source)
    except Exception as error:  # whatever it is, the other figures still run
        reason = " ".join(str(error).split())
        if not isinstance(error, (GradeqError, OSError)):
            reason = f"internal error in gradeq ({type(error).__name__}: {reason})"
        return Outcome(experiment, None, reason, (), time.monotonic() - began), {}
    files: list[Path] = []
    images: dict[str, bytes] = {}
    for suffix, sheet in result.sheets.items():
        stem = f"{experiment.name}-{suffix}" if suffix else experiment.name
        made = pictures(sheet)
        images[stem] = made.pop("page")
        for form, content in {**made, "csv": csv_of(sheet).encode("utf-8")}.items():
            files.append(folder / f"{stem}.{form}")
            _write(files[-1], content)
    return Outcome(experiment, result, "", tuple(files), time.monotonic() - began), images


def _write(path: Path, content: bytes) -> None:
    with atomic(path) as file, writing(path):
        file.write(content)
