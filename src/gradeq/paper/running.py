"""All experiments by name: how they are run, and how their files are written."""

from __future__ import annotations

import difflib
import importlib.resources
import os
import re
import time
import tomllib
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from gradeq.datasets.catalog import check_folder
from gradeq.errors import BadInput, GradeqError
from gradeq.files.paths import atomic, writing
from gradeq.paper import plot
from gradeq.paper.draw import pictures, require_matplotlib
from gradeq.paper.experiment import Experiment, ExperimentOutcome, Result, Source
from gradeq.paper.gallery import TITLES, gallery, page

# Figures of the paper without a drawing.
TEXT_FIGURES = {"Figure 8": "Two prompts of HelpSteer2 with answers and ratings: text only, nothing to draw"}


def experiments() -> dict[str, Experiment]:
    """Every experiment by name, in the order of the gallery; its module is imported when it runs."""
    text = (importlib.resources.files("gradeq.paper") / "figures.toml").read_text("utf-8")
    return {name: _experiment(name, **fields) for name, fields in tomllib.loads(text).items()}


def _experiment(name: str, module: str, needs: Sequence[str] = (), **texts: str) -> Experiment:
    def run(source: Source) -> Result:
        result: Result = getattr(import_module(f"gradeq.paper.{module}"), name.replace("-", "_"))(source)
        return result

    return Experiment(name, run=run, needs=tuple(needs), **texts)


def listing() -> list[tuple[str, str]]:
    """The name and a one-line description of each experiment; figures without a drawing have a dash as their name."""
    lines = [(experiment.name, experiment.line) for experiment in experiments().values()]
    return [*lines, *(("-", f"{what} ({figure})") for figure, what in TEXT_FIGURES.items())]


def choose(names: Sequence[str] = ()) -> list[Experiment]:
    """The experiments with these names; all of them if no names are passed.

    A figure's number is also a name: 10, fig10, "figure 10". The error for an unknown name suggests the nearest one.
    """
    known = experiments()
    if not names:
        return list(known.values())
    numbered = {e.figure.lower(): e for e in known.values()}
    chosen: dict[str, Experiment] = {}
    # On a command line, "figure 10" is two words.
    for name in re.sub(r"(?im)^(fig(?:ure)?\.?)\n(?=\d+$)", r"\1 ", "\n".join(names)).split("\n"):
        figure = "figure " + name.lower().removeprefix("figure").removeprefix("fig").strip(" .-_")
        experiment = known.get(name) or numbered.get(figure)
        if experiment is None and figure.capitalize() in TEXT_FIGURES:
            raise BadInput(f"{figure.capitalize()} is text, so there is nothing to draw; see --list")
        if experiment is None:
            similar = [other for other in known if name.lower() in other]
            similar = similar or difflib.get_close_matches(name.lower(), list(known), 1, 0.3)
            nearest = f"; the nearest is {similar[0]}" if similar else ""
            raise BadInput(f"there is no figure {name!r}{nearest}; see --list")
        chosen[experiment.name] = experiment
    return list(chosen.values())


GALLERY = "index.html"


def run_all(
    names: Sequence[str],
    data: str | os.PathLike[str] | None,
    out: str | os.PathLike[str],
    say: Callable[[str], None] = lambda line: None,
) -> list[ExperimentOutcome]:
    """Run the named experiments (all if none are named), write their files to ``out``, call ``say`` after each.

    Each experiment writes a PNG, an SVG, a PDF and a CSV of every plotted series. ``index.html`` shows all of them,
    next to pages on the bounds and the errata. An unknown name, missing matplotlib, a missing data folder or an
    unwritable output folder raises before anything runs.
    """
    chosen = choose(names)
    require_matplotlib()
    check_folder(data)
    folder = Path(out)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    source, outcomes = Source(data), []
    for number, experiment in enumerate(chosen, 1):
        began = time.monotonic()
        outcomes.append(_run_one(experiment, source, folder))
        skipped = outcomes[-1].skipped
        status = f"skipped: {skipped}" if skipped else f"{time.monotonic() - began:.1f} s"
        say(f"[{number}/{len(chosen)}] {experiment.name}: {status}")
    if any(outcome.result is not None for outcome in outcomes):
        _write(folder / GALLERY, gallery(outcomes, {} if names else TEXT_FIGURES).encode("utf-8"))
        for name in TITLES:
            _write(folder / f"{name}.html", page(name).encode("utf-8"))
    return outcomes


def reproduce(
    names: Sequence[str], data: str | os.PathLike[str] | None, out: str | os.PathLike[str], say: Callable[[str], None]
) -> list[ExperimentOutcome]:
    """The same, then one line that sums up; raises ``BadInput`` if no figure could be drawn."""
    outcomes = run_all(names, data, out, say)
    skipped = [outcome for outcome in outcomes if outcome.skipped]
    if len(skipped) == len(outcomes):
        which = "" if len(outcomes) == 1 else f"none of {len(outcomes)} figures could be drawn: "
        raise BadInput(f"{which}{skipped[0].experiment.name}: {skipped[0].skipped}")
    drawn = len(outcomes) - len(skipped)
    also = f", {len(skipped)} skipped" if skipped else ""
    say(f"{drawn} figure{'s' if drawn != 1 else ''}{also}; see {Path(out) / GALLERY}")
    return outcomes


def _run_one(experiment: Experiment, source: Source, folder: Path) -> ExperimentOutcome:
    try:
        result = experiment.run(source)
    except Exception as error:  # the other figures still run
        reason = " ".join(str(error).split())
        if not isinstance(error, (GradeqError, OSError)):
            reason = f"internal error in gradeq ({type(error).__name__}: {reason})"
        return ExperimentOutcome(experiment, skipped=reason)
    files, images = [], {}
    for name, sheet in result.sheets.items():
        stem = f"{experiment.name}-{name}" if name else experiment.name
        contents = pictures(sheet)
        images[stem] = contents.pop("page")
        for suffix, content in {**contents, "csv": plot.csv_of(sheet).encode("utf-8")}.items():
            files.append(folder / f"{stem}.{suffix}")
            _write(files[-1], content)
    return ExperimentOutcome(experiment, result, "", tuple(files), images)


def _write(path: Path, content: bytes) -> None:
    with atomic(path) as file, writing(path):
        file.write(content)
