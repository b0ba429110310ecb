"""The report draws the correction as it was served, on an axis that fits its rates."""

import json
import re

import numpy as np

from cli.calling import here


def rates(path, n=6000):
    """Scores of about 8 %, half of what they should be in group b."""
    rng = np.random.default_rng(9)
    g = rng.integers(0, 2, n)
    p = rng.uniform(0.04, 0.12, n)
    odds = p / (1.0 - p) * np.where(g == 1, np.exp(0.5), 1.0)
    y = (rng.random(n) < odds / (1.0 + odds)).astype(int)
    lines = [f"{a:.6f},{b},{'ab'[c]}" for a, b, c in zip(p, y, g, strict=True)]
    path.write_text("\n".join(["p,y,g", *lines]) + "\n")


def charts(page):
    """The data of the charts of a page."""
    found = re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', page, re.S)
    return json.loads(found[1])


def test_the_correction_is_drawn_as_it_was_served(tmp_path):
    rates(tmp_path / "rows.csv")
    page = tmp_path / "page.html"
    out = tmp_path / "out.csv"
    done = here(
        "debias", tmp_path / "rows.csv", "--prediction", "p", "--label", "y", "--outcome", "binary", "--by", "g",
        "--report", page, "-o", out,
    )  # fmt: skip
    assert done.code == 0, done.err
    text = page.read_text()
    assert "Correction as served" in text
    assert "final, certified step on top" not in text
    rows = [line.split(",") for line in out.read_text().splitlines()[1:]]
    p, g, served = (np.array([row[k] for row in rows]) for k in (0, 2, 3))
    p, served = p.astype(float), served.astype(float)
    moved = np.log(served / (1 - served)) - np.log(p / (1 - p))
    last = moved[g == "b"][-100:].mean()
    assert 0.2 < last < 0.9  # what was served, not the final step's own parameter
    drawn = re.findall(r"0\.\d+", text)
    assert any(abs(float(x) - last) < 0.1 for x in drawn)


def test_the_means_of_small_rates_fill_their_axis(tmp_path):
    from gradeq.report import page

    rates(tmp_path / "rows.csv", 3000)
    seen = []
    scale = page.axis_scale

    def spy(*args, **given):
        found = scale(*args, **given)
        seen.append(found)
        return found

    page.axis_scale = spy
    try:
        done = here(
            "debias", tmp_path / "rows.csv", "--prediction", "p", "--label", "y", "--outcome", "binary",
            "--report", tmp_path / "page.html",
        )  # fmt: skip
    finally:
        page.axis_scale = scale
    assert done.code == 0, done.err
    assert seen[0].high < 0.3
