"""All experiments by name, and how they are run and written."""

from __future__ import annotations

import difflib
import importlib.resources
import os
import time
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path

from gradeq.datasets.catalog import check_folder
from gradeq.errors import BadInput, GradeqError
from gradeq.files.paths import atomic, writing
from gradeq.paper import plot
from gradeq.paper.draw import pictures, require_matplotlib
from gradeq.paper.experiment import Experiment, ExperimentOutcome, Result, Source
from gradeq.paper.gallery import TITLES, gallery, page

# Figures of the paper that no experiment draws.
TEXTS = {"Figure 8": "Two prompts of HelpSteer2 with answers and ratings: text only, nothing to draw"}


def experiments() -> dict[str, Experiment]:
    """Every experiment by its name, in the order of the gallery; its module is imported when it runs."""
    text = (importlib.resources.files("gradeq.paper") / "figures.toml").read_text("utf-8")
    return {name: _experiment(name, **fields) for name, fields in tomllib.loads(text).items()}


def _experiment(name: str, module: str, needs: Sequence[str] = (), **texts: str) -> Experiment:
    def run(source: Source) -> Result:
        drawn: Result = getattr(import_module(f"gradeq.paper.{module}"), name.replace("-", "_"))(source)
        return drawn

    return Experiment(name, run=run, needs=tuple(needs), **texts)


def listing() -> list[tuple[str, str]]:
    """The name of each experiment with what it is, in one line; a figure that is text has a dash for a name."""
    lines = [(experiment.name, experiment.line) for experiment in experiments().values()]
    return [*lines, *(("-", f"{what} ({figure})") for figure, what in TEXTS.items())]


def choose(names: Sequence[str] = ()) -> list[Experiment]:
    """The experiments of these names, all of them without any.

    A figure's number will do for a name: 10, fig10, "figure 10". An unknown name is refused with the nearest one.
    """
    known = experiments()
    numbered = {e.figure.lower(): e for e in known.values()}
    joined: list[str] = []
    for name in names:
        if joined and joined[-1].lower().rstrip(".") in ("figure", "fig") and name.isdigit():
            joined[-1] += f" {name}"  # two words are one name
        else:
            joined.append(name)
    chosen: dict[str, Experiment] = {}
    for name in joined:
        figure = "figure " + name.lower().removeprefix("figure").removeprefix("fig").strip(" .-_")
        experiment = known.get(name) or numbered.get(figure)
        if experiment is None and figure.capitalize() in TEXTS:
            raise BadInput(f"{figure.capitalize()} is text, so there is nothing to draw; see --list")
        if experiment is None:
            near = [other for other in known if name.lower() in other]
            near = near or difflib.get_close_matches(name.lower(), list(known), 1, 0.3)
            nearest = f"; the nearest is {near[0]}" if near else ""
            raise BadInput(f"there is no figure {name!r}{nearest}; see --list")
        chosen[experiment.name] = experiment
    return list(chosen.values()) if names else list(known.values())


GALLERY = "index.html"


def run_all(
    names: Sequence[str],
    data: str | os.PathLike[str] | None,
    out: str | os.PathLike[str],
    say: Callable[[str], None] = lambda line: None,
) -> list[ExperimentOutcome]:
    """Run the named experiments (all of them for no names) into the folder ``out``, saying a line after each.

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
    source, outcomes = Source(data), list[ExperimentOutcome]()
    for done, experiment in enumerate(chosen, 1):
        began = time.monotonic()
        outcome = _run_one(experiment, source, folder)
        outcomes.append(replace(outcome, seconds=time.monotonic() - began))
        became = f"skipped: {outcome.skipped}" if outcome.skipped else f"{outcomes[-1].seconds:.1f} s"
        say(f"[{done}/{len(chosen)}] {experiment.name}: {became}")
    if any(outcome.result is not None for outcome in outcomes):
        _write(folder / GALLERY, gallery(outcomes, {} if names else TEXTS).encode("utf-8"))
        for name in TITLES:
            _write(folder / f"{name}.html", page(name).encode("utf-8"))
    return outcomes


def reproduce(
    names: Sequence[str], data: str | os.PathLike[str] | None, out: str | os.PathLike[str], say: Callable[[str], None]
) -> list[ExperimentOutcome]:
    """The same, with a line at the end; refused when no figure at all could be drawn."""
    outcomes = run_all(names, data, out, say)
    skipped = [outcome for outcome in outcomes if outcome.skipped]
    if len(skipped) == len(outcomes):
        which = "" if len(outcomes) == 1 else f"none of {len(outcomes)} figures could be drawn: "
        raise BadInput(f"{which}{skipped[0].experiment.name}: {skipped[0].skipped}")
    left_out = f", {len(skipped)} skipped" if skipped else ""
    drawn = len(outcomes) - len(skipped)
    say(f"{drawn} figure{'s' if drawn != 1 else ''}{left_out}; see {Path(out) / GALLERY}")
    return outcomes


def _run_one(experiment: Experiment, source: Source, folder: Path) -> ExperimentOutcome:
    try:
        result = experiment.run(source)
    except Exception as error:  # whatever it is, the other figures still run
        reason = " ".join(str(error).split())
        if not isinstance(error, (GradeqError, OSError)):
            reason = f"internal error in gradeq ({type(error).__name__}: {reason})"
        return ExperimentOutcome(experiment, skipped=reason)
    files: list[Path] = []
    images: dict[str, bytes] = {}
    for suffix, sheet in result.sheets.items():
        stem = f"{experiment.name}-{suffix}" if suffix else experiment.name
        drawn = pictures(sheet)
        images[stem] = drawn.pop("page")
        for form, content in {**drawn, "csv": plot.csv_of(sheet).encode("utf-8")}.items():
            files.append(folder / f"{stem}.{form}")
            _write(files[-1], content)
    return ExperimentOutcome(experiment, result, "", tuple(files), images)


def _write(path: Path, content: bytes) -> None:
    with atomic(path) as file, writing(path):
        file.write(content)
