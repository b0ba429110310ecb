"""What is written: pictures, tables and one page that asks for nothing outside; and what is skipped."""

import csv
import dataclasses
import gzip
import io
import os
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from gradeq.errors import BadInput, MissingExtra
from gradeq.paper import GALLERY, Experiment, Number, Result, experiments, plot, reproduce, run_all, running
from gradeq.paper.draw import STYLE, figure_of, pictures
from gradeq.paper.experiment import ExperimentOutcome, Source, numeral
from gradeq.paper.gallery import gallery

LIGHT = ["regret-absolute", "restorative-field", "helpsteer-debias"]


@pytest.fixture(scope="module")
def written(data_dir, tmp_path_factory):
    out = tmp_path_factory.mktemp("figures")
    said: list[str] = []
    outcomes = reproduce(LIGHT, data_dir, out, said.append)
    return out, outcomes, said


def test_each_figure_is_written_as_png_svg_pdf_and_csv(written) -> None:
    out, outcomes, said = written
    for outcome in outcomes:
        name = outcome.experiment.name
        assert {path.name for path in outcome.files} == {f"{name}.{e}" for e in ("png", "svg", "pdf", "csv")}
        assert (out / f"{name}.pdf").read_bytes().startswith(b"%PDF")
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert b"<svg" in (out / f"{name}.svg").read_bytes()
    assert len(said) == len(LIGHT) + 1 and said[-1].endswith(GALLERY)
    assert not [path for path in out.iterdir() if path.name.startswith(".")]


def test_the_table_has_every_plotted_point_with_all_digits(written) -> None:
    out, outcomes, _ = written
    (outcome,) = [o for o in outcomes if o.experiment.name == "helpsteer-debias"]
    rows = list(csv.DictReader((out / "helpsteer-debias.csv").read_text().splitlines()))
    sheet = outcome.result.sheets[""]
    marks = [mark for panel in sheet.panels for mark in panel.marks]
    assert len(rows) == sum(len(series.x) for mark in marks for series in mark.series())
    line = sheet.panels[1].marks[2]
    own = [r for r in rows if r["panel"] == sheet.panels[1].title and r["series"] == line.label]
    assert [float(r["y"]) for r in own] == line.y.tolist()


def test_the_page_asks_for_nothing_outside(written) -> None:
    out, _, _ = written
    page = (out / GALLERY).read_text()
    assert "default-src 'none'" in page
    sources = re.findall(r'\b(?:src|href)="([^"]*)"', page)
    assert sources and all(
        s.startswith(("data:image/png;base64,", "#")) or (out / s.partition("#")[0]).is_file() for s in sources
    )
    assert not re.search(r"<script|<link|url\(|@import|\bstyle=", page)
    for name in LIGHT:
        assert f'id="{name}"' in page


def test_the_same_sheet_gives_the_same_bytes() -> None:
    sheet = plot.Sheet(
        [plot.Panel("a", "x", "y", [plot.course(np.arange(3000.0), "line", plot.AFTER)])], (1, 1), (3, 2)
    )
    assert pictures(sheet) == pictures(sheet)


def test_logarithmic_ticks_are_numbers_and_a_dollar_sign_is_one() -> None:
    line = plot.Line(np.array([1.0, 1e4]), np.array([1e-3, 1.0]), "cost in $ and $")
    panel = plot.Panel("a $ b", "x", "y", [line], x_scale="log", y_scale="log")
    svg = pictures(plot.Sheet([panel], (1, 1), (5, 4)))["svg"].decode()
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    assert "a $ b" in texts and "cost in $ and $" in texts
    assert not any("mathdefault" in text for text in texts)


def test_one_figure_is_not_called_figures() -> None:
    shown = hostile()
    assert "<p>1 figure. " in gallery([shown]) and "<p>2 figures. " in gallery([shown, shown])


def width_of(png: bytes) -> int:
    return int.from_bytes(png[16:20], "big")


def test_the_picture_beside_the_page_has_200_dots_an_inch_and_the_one_on_it_fewer() -> None:
    made = pictures(plot.Sheet([plot.Panel("a", "x", "y", [plot.Level(0.0)])], (1, 1), (3, 2)))
    assert (width_of(made["png"]), width_of(made["page"])) == (600, 300)


@pytest.mark.parametrize("name", ["spirals", "restorative-field", "regret-absolute", "regret-decaying"])
def test_no_title_or_label_leaves_the_picture(name) -> None:
    """Square panels keep their shape, so it is their titles that lack room."""
    from matplotlib import rc_context

    with rc_context(fname=STYLE):
        for sheet in experiments()[name].run(Source()).sheets.values():
            figure = figure_of(sheet)
            box = figure.get_tightbbox(figure.canvas.get_renderer())
            assert box.x0 >= 0 and box.y0 >= 0
            assert box.x1 <= sheet.size[0] and box.y1 <= sheet.size[1]


def hostile() -> ExperimentOutcome:
    name = "</script><img src=x onerror=alert(1)> $\\frac"
    marks = [
        plot.Line(np.array([1.0, 2.0]), np.array([0.5, np.nan]), name),
        plot.Dots(np.array([1.0]), np.array([1.0]), name, names=(name,)),
        plot.Bars(np.array([1.0]), np.array([1.0]), name, width=0.4),
        plot.Level(0.5, name),
    ]
    heat = plot.Panel("heat", "", "", [plot.Heat((name,), (name,), np.ones((1, 1)))])
    sheet = plot.Sheet([plot.Panel(name, name, name, marks), heat], (1, 2), (16, 8))
    result = Result(name, (Number(name, 1.0, 2.0, 3.0),), {"": sheet}, name)
    experiment = Experiment("x", name, name, name, lambda source: result, name, "beyond")
    return ExperimentOutcome(experiment, result, images={"x": pictures(sheet)["png"]})


def test_names_are_escaped_on_the_page_and_quoted_in_the_table() -> None:
    shown = hostile()
    skipped = ExperimentOutcome(shown.experiment, skipped="<b>why</b>")
    page = gallery([shown, skipped])
    assert "<img src=x" not in page and "<b>why" not in page and "</script>" not in page
    table = plot.csv_of(shown.result.sheets[""])
    assert all(len(row) == 4 for row in csv.reader(io.StringIO(table)))


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.061657856, "0.0616579"), (-1.5, "−1.5"), (0.0, "0"), (1.2e-9, "1.2 × 10⁻⁹"), (-3.5e-5, "−3.5 × 10⁻⁵"),
     (6787.0, "6,787"), (0.1**4 - 1e-17, "0.0001"),
     (2e6, "2 × 10⁶"), (float("inf"), "∞")],
)  # fmt: skip
def test_numbers_read_well(value, text) -> None:
    assert numeral(value) == text


def bad_folder(tmp_path: Path, data_dir: Path, kind: str) -> Path:
    folder = tmp_path / kind
    folder.mkdir()
    shutil.copy(data_dir / "helpsteer2_rewards.csv", folder)
    if kind == "checksum":
        text = gzip.decompress((data_dir / "compas.csv.gz").read_bytes())
        (folder / "compas.csv.gz").write_bytes(gzip.compress(text.replace(b"Male", b"Mael", 1), mtime=0))
    elif kind == "columns":
        header = "date,home_team,guest\n1872-11-30,Scotland,England\n"
        (folder / "football_internationals.csv.gz").write_bytes(gzip.compress(header.encode(), mtime=0))
        shutil.copy(data_dir / "arena_140k.csv.gz", folder)
    elif kind == "garbage":
        (folder / "compas.csv.gz").write_bytes(b"not gzip at all")
    return folder


@pytest.mark.parametrize(
    ("kind", "figure", "words"),
    [
        ("missing", "compas-debias", "compas.csv.gz is not in"),
        ("checksum", "compas-debias", "SHA-256"),
        ("garbage", "compas-debias", "cannot be read"),
        ("columns", "arena-wins", "away_team"),
    ],
)
def test_bad_data_skip_their_figure_in_one_line_and_the_others_run(tmp_path, data_dir, kind, figure, words) -> None:
    folder = bad_folder(tmp_path, data_dir, kind)
    said: list[str] = []
    outcomes = reproduce([figure, "helpsteer-debias"], folder, tmp_path / "out", said.append)
    assert [bool(o.skipped) for o in outcomes] == [True, False]
    assert words in outcomes[0].skipped and "\n" not in outcomes[0].skipped
    assert f"{figure}: skipped: " in said[0]
    page = (tmp_path / "out" / GALLERY).read_text()
    assert "skipped" in page
    assert not list((tmp_path / "out").glob(f"{figure}*"))


def test_a_fault_of_one_experiment_does_not_stop_the_others(tmp_path, monkeypatch) -> None:
    def broken(source):
        raise TypeError("two\nlines")

    spoiled = dataclasses.replace(experiments()["spirals"], run=broken)
    good = experiments()["regret-absolute"]
    monkeypatch.setattr(running, "choose", lambda names: [spoiled, good])
    first, second = run_all([], None, tmp_path)
    assert first.skipped == "internal error in gradeq (TypeError: two lines)"
    assert second.result is not None


def test_when_nothing_can_be_drawn_it_is_an_error_and_no_page_is_left(tmp_path) -> None:
    (tmp_path / "none").mkdir()
    with pytest.raises(BadInput, match=r"compas-debias: compas: compas\.csv\.gz is not in"):
        reproduce(["compas-debias"], tmp_path / "none", tmp_path / "out", lambda line: None)
    assert not list((tmp_path / "out").iterdir())


def test_an_unknown_figure_writes_nothing(tmp_path) -> None:
    with pytest.raises(BadInput, match="no figure"):
        run_all(["compas-debias", "nonsense"], None, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="file"):
        run_all(["spirals"], None, tmp_path / "file" / "out")


def test_without_matplotlib_the_command_to_install_it_is_named(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r'pip install "gradeq\[report\]"'):
        run_all(["spirals"], None, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_line_is_said_after_each(tmp_path) -> None:
    lines: list[str] = []
    run_all(["regret-absolute"], None, tmp_path, lines.append)
    assert [re.sub(r"[\d.]+ s$", "# s", line) for line in lines] == ["[1/1] regret-absolute: # s"]


def test_the_command_lists_and_refuses(tmp_path) -> None:
    import subprocess

    def gradeq(*words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "gradeq", "reproduce", *words]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)

    listed = gradeq("--list")
    assert listed.returncode == 0 and len(listed.stdout.splitlines()) == len(experiments()) + 1
    assert "Figure 8" in listed.stdout and "text only" in listed.stdout
    wrong = gradeq("nonsense")
    assert wrong.returncode == 2 and len(wrong.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("data", [os.devnull, __file__, "nowhere", ""])
def test_data_that_are_no_folder_are_refused_before_anything_runs(tmp_path: Path, data: str) -> None:
    said: list[str] = []
    with pytest.raises(BadInput, match="no data folder"):
        reproduce((), data, tmp_path / "figures", said.append)
    assert not said and not (tmp_path / "figures").exists()
