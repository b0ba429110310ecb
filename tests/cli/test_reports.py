"""--report writes one self-contained page that names cannot break."""

import json
import re
from pathlib import Path

import pytest

from cli.calling import games, here, ok, prices, scores, write

HOSTILE = "</script><img src=x onerror=alert(1)>"
BASE = ("--prediction", "score", "--label", "outcome", "--outcome", "binary")


def embedded(page: str) -> dict:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found.group(1))


def sound(path: Path) -> str:
    """The page, once it is known to be whole, small, and free of outside parts."""
    page = path.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>") and page.rstrip().endswith("</html>")
    assert len(page.encode()) < 300_000
    assert "<img" not in page and not re.search(r"(src|href)=[\"']?(https?:)?//", page)
    assert embedded(page)
    return page


def test_a_debias_report_tells_the_run_and_escapes_names(tmp_path):
    rows = scores(800)
    for row in rows[::3]:
        row["region"] = HOSTILE
    file = write(tmp_path / "scores.csv", rows)
    out = tmp_path / "r.html"
    done = ok(here("debias", file, *BASE, "--by", "region", "--link", "shift", "--report", out))
    assert str(out) in done.out
    page = sound(out)
    assert "&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;" in page
    for heading in ("Over time", "Groups", "Step size", "Served values", "Method"):
        assert f">{heading}<" in page
    assert "without a label" in page


@pytest.mark.parametrize(
    "options",
    [
        ("--time", "day"),
        ("--time", "day", "--label-time", "known", "--by", "sex"),
        ("--feature", "x", "--eta", "0.05"),
        ("--key", "shop"),
        ("--eta", "auto"),
        ("--eta", "0.2", "--decay", "0.5"),
    ],
)
def test_every_kind_of_debias_run_has_a_report(tmp_path, options):
    file = write(tmp_path / "scores.csv", scores(500))
    out = tmp_path / "r.html"
    ok(here("debias", file, *BASE, *options, "--report", out, "--quiet"))
    sound(out)


@pytest.mark.parametrize(
    "options",
    [
        ("--prediction", "forecast", "--level", "0.9", "--by", "weekday"),
        ("--prediction", "low", "--prediction", "high", "--interval", "0.8"),
        ("--prediction", "forecast", "--level", "0.1", "--level", "0.5", "--level", "0.9"),
        ("--prediction", "forecast", "--level", "0.9", "--ensemble", "0.1,1", "--ensemble-eta",
         "0.5"),
    ],
)  # fmt: skip
def test_every_kind_of_quantile_run_has_a_report(tmp_path, options):
    file = write(tmp_path / "prices.csv", prices(500))
    out = tmp_path / "r.html"
    ok(here("quantile", file, "--label", "price", *options, "--report", out, "--quiet"))
    assert "Coverage" in sound(out)


def test_an_elo_report_has_the_leaderboard_and_escapes_names(tmp_path):
    rows = games(900)
    for row in rows:
        for side in ("home", "away"):
            row[side] = HOSTILE if row[side] == "bob" else row[side]
    file = write(tmp_path / "games.csv", rows)
    out = tmp_path / "r.html"
    options = ("--a", "home", "--b", "away", "--winner", "winner", "--time", "day")
    ok(here("elo", file, *options, "--report", out, "--quiet"))
    page = sound(out)
    assert "Leaderboard" in page and "Rating curves" in page and "Calibration" in page


def test_a_report_of_few_rows_or_of_no_label_still_is_a_page(tmp_path):
    for k, rows in enumerate((scores(1), scores(12))):
        for row in rows:
            row["outcome"] = "" if k == 0 else row["outcome"]
        file = write(tmp_path / f"{k}.csv", rows)
        out = tmp_path / f"{k}.html"
        ok(here("debias", file, *BASE, "--by", "sex", "--report", out, "--quiet"))
        assert ("Too few labels to judge" if k else "No labels yet") in sound(out)
