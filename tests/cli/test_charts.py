"""The report's pictures are of the run's own rows: each number is recomputed from the output file."""

import csv
import math
from collections import defaultdict
from datetime import date, timedelta

import pytest

from cli.calling import here, ok, prices, scores, write
from gradeq.report import page


@pytest.fixture
def stories(monkeypatch):
    """Every story that a page is made of, as it is made."""
    seen, html = [], page.html
    monkeypatch.setattr(page, "html", lambda story: seen.append(story) or html(story))
    return seen


def run(folder, stories, command, rows, *options):
    file, out = write(folder / "rows.csv", rows), folder / "out.csv"
    ok(here(command, file, *options, "-o", out, "--report", folder / "r.html", "--quiet"))
    with open(out, newline="", encoding="utf-8") as lines:
        return stories[-1], list(csv.DictReader(lines))


def dated(rows):
    first = date(2023, 1, 5)
    return [{**row, "day": str(first + timedelta(days=i // 2))} for i, row in enumerate(rows)]


@pytest.mark.parametrize("weight", [(), ("--weight", "weight")])
def test_a_cell_of_the_heat_map_is_the_bias_of_its_group_in_its_month(tmp_path, stories, weight):
    options = ("--prediction", "score", "--label", "outcome", "--outcome", "binary", "--time", "day")
    story, rows = run(tmp_path, stories, "debias", dated(scores(900)), *options, "--by", "sex", *weight)
    cells = defaultdict(list)
    weights = [float(row["weight"]) if weight else 1.0 for row in rows]
    for row, w in zip(rows, weights, strict=True):
        if row["outcome"] and w > 0.0:
            y = float(row["outcome"])
            cells[row["sex"], row["day"][:7]].append((w, float(row["score"]) - y, float(row["adjusted"]) - y))
    months = sorted({month for _, month in cells})
    assert len(story.heat.periods) == len(months) and story.heat.periods[0] == "Jan 2023"
    for line in story.heat.rows:
        for j, month in enumerate(months):
            own = cells[line.name, month]
            assert line.rows[j] == len(own)
            if len(own) < 10:
                assert line.after[j] is None
                continue
            whole = sum(w for w, _, _ in own)
            assert line.before[j] == pytest.approx(sum(w * b for w, b, _ in own) / whole, abs=1e-9)
            assert line.after[j] == pytest.approx(sum(w * a for w, _, a in own) / whole, abs=1e-9)


def test_long_spans_join_months_and_rows_without_dates_have_no_map(tmp_path, stories):
    rows = scores(900)
    for i, row in enumerate(rows):
        row["day"] = str(date(2000, 1, 1) + timedelta(days=8 * i))
    base = ("--prediction", "score", "--label", "outcome", "--by", "sex")
    story, _ = run(tmp_path, stories, "debias", rows, *base, "--time", "day")
    assert len(story.heat.periods) == 20 and story.heat.periods[0] == "2000"
    story, _ = run(tmp_path, stories, "debias", rows, *base)
    assert story.heat is None


def test_reliability_is_the_mean_label_of_the_rows_in_a_bin(tmp_path, stories):
    options = ("--prediction", "score", "--label", "outcome", "--outcome", "binary")
    story, rows = run(tmp_path, stories, "debias", scores(600), *options)
    rows = [row for row in rows if row["outcome"]]
    for bins, column in ((story.reliability.before, "score"), (story.reliability.after, "adjusted")):
        found = defaultdict(list)
        for row in rows:
            found[min(int(float(row[column]) * 20), 19)].append(row)
        assert [b.games for b in bins] == [len(found[k]) for k in sorted(found)]
        for b, k in zip(bins, sorted(found), strict=True):
            own = found[k]
            assert b.predicted == pytest.approx(sum(float(r[column]) for r in own) / len(own))
            assert b.actual == pytest.approx(sum(float(r["outcome"]) for r in own) / len(own))
    after = sum((float(r["adjusted"]) - float(r["outcome"])) ** 2 for r in rows) / len(rows)
    assert story.reliability.brier[1] == pytest.approx(after)
    page = (tmp_path / "r.html").read_text()
    assert "Brier score" in page and ">Calibration<" in page


def test_the_mean_width_of_an_interval_is_told_before_and_after(tmp_path, stories):
    options = ("--prediction", "low", "--prediction", "high", "--label", "price", "--interval", "0.8")
    story, rows = run(tmp_path, stories, "quantile", prices(600), *options)
    known = [row for row in rows if row["price"]]

    def width(low, high):
        return math.fsum(float(r[high]) - float(r[low]) for r in known) / len(known)

    assert story.width.before == pytest.approx(width("low", "high"))
    assert story.width.after == pytest.approx(width("lower", "upper"))
    assert len(story.rolling.width_after) == len(story.rolling.x)
    assert "Mean width" in (tmp_path / "r.html").read_text()


@pytest.mark.parametrize(
    ("options", "changes"),
    [(("--eta", "0.1"), False), (("--eta", "0.1", "--delay", "30"), True),
     (("--eta", "0.5", "--decay", "0.5"), True)],
)  # fmt: skip
def test_the_step_in_force_is_drawn_where_it_changed(tmp_path, stories, options, changes):
    base = ("--prediction", "score", "--label", "outcome")
    story, _ = run(tmp_path, stories, "debias", scores(600), *base, *options)
    assert (story.steps is not None) == changes
    if changes:
        steps = [v for v in story.steps.lines[0].values if v is not None]
        assert all(0.0 < step <= 0.5 for step in steps) and min(steps) < 0.9 * max(steps)
    if "--decay" in options:  # each is the scheduled step of the next row
        for x, step in zip(story.steps.x, steps, strict=True):
            assert step == pytest.approx(0.5 * (x + 1.0) ** -0.5)
