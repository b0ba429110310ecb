"""With --weight every figure of the summary is a plain weighted mean; with equal weights also the certificate's."""

import random
from pathlib import Path

import numpy as np
import pytest

from cli.calling import column, here, ok, prices, write
from gradeq.layers.debiaser import Debiaser

COLUMNS = ("--prediction", "f", "--label", "y", "--weight", "w")


def two_kinds(rows: int = 400) -> list[dict]:
    """Rows of weight 0 that are far too low, among others that are a little too high."""
    rng = random.Random(5)
    made = []
    for _ in range(rows):
        w, f = rng.randrange(2), round(rng.random(), 3)
        made.append({"f": f, "y": f + 1 if w == 0 else f - 0.2, "w": w, "g": rng.choice("ab")})
    return made


@pytest.fixture
def rows() -> list[dict]:
    return two_kinds()


@pytest.fixture
def file(rows, tmp_path: Path) -> Path:
    return write(tmp_path / "w.csv", rows)


def of(rows, name: str) -> np.ndarray:
    return np.array([float(row[name]) for row in rows])


def test_weighted_figures_are_those_of_the_certificate_and_within_their_bounds(file, rows):
    options = ("--by", "g", "--eta", "0.1")
    found = ok(here("debias", file, *COLUMNS, *options, "--json")).json
    layer = Debiaser(eta=0.1, groups=["g"])
    layer.run(of(rows, "f"), of(rows, "y"), groups={"g": [r["g"] for r in rows]}, weights=of(rows, "w"))
    reached = layer.equilibrium()
    assert found["weight"] == "w" and found["labelled"] == len(rows)
    for name in ("bias", "loss"):
        for when in ("before", "after"):
            expected = getattr(reached, f"{name}_{when}")
            assert found[name][when] == pytest.approx(expected, abs=1e-12)
    cells = {c.name: c for c in reached.coordinates}
    for group in found["groups"]:
        cell = cells[group["name"]]
        assert group["bias"]["after"] == pytest.approx(cell.bias_after, abs=1e-12)
        assert group["loss"]["after"] == pytest.approx(cell.loss_after, abs=1e-12)
        assert abs(group["bias"]["after"]) <= group["bound"] + 1e-12
    said = ok(here("debias", file, *COLUMNS, *options)).out
    zero = sum(row["w"] == 0 for row in rows)
    assert f"over 400 rows, weighted by w ({zero} of weight 0); squared error 0.04 ->" in said
    assert "the prediction was 0.200 too high" in said


def test_weighted_coverage_and_log_loss_are_weighted_means(tmp_path):
    rng = random.Random(6)
    rows = [{**row, "w": rng.choice([0, 0.5, 3])} for row in prices()]
    file, out = write(tmp_path / "p.csv", rows), tmp_path / "out.csv"
    options = ("--prediction", "low", "--prediction", "high", "--label", "price", "--weight", "w")
    found = ok(here("quantile", file, *options, "--interval", "0.8", "-o", out, "--json")).json
    y, w = of(rows, "price"), of(rows, "w")
    lower, upper = np.array(column(out, "lower")), np.array(column(out, "upper"))
    inside = ((lower < y) & (y <= upper)).astype(float)
    assert found["coverage"]["after"] == pytest.approx(np.average(inside, weights=w), abs=1e-12)
    inside = ((of(rows, "low") < y) & (y <= of(rows, "high"))).astype(float)
    assert found["coverage"]["before"] == pytest.approx(np.average(inside, weights=w), abs=1e-12)

    made = [{"f": 0.3, "y": rng.randrange(2), "w": rng.choice([0, 1, 4])} for _ in range(200)]
    file = write(tmp_path / "b.csv", made)
    found = ok(here("debias", file, *COLUMNS, "--outcome", "binary", "--json")).json
    loss = np.where(of(made, "y") == 1, -np.log(0.3), -np.log(0.7))
    expected = np.average(loss, weights=of(made, "w"))
    assert found["log_loss"]["before"] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("weight", [1, 2.5])
def test_equal_weights_give_the_figures_without_weights(rows, tmp_path, weight):
    file = write(tmp_path / "w.csv", [{**row, "w": weight} for row in rows])
    options = ("--by", "g", "--eta", "0.1")
    weighted = ok(here("debias", file, *COLUMNS, *options, "--json")).json
    plain = ok(here("debias", file, *COLUMNS[:4], *options, "--json")).json
    assert "weight" not in plain and weighted["weight"] == "w"
    for name in ("bias", "loss"):
        assert weighted[name].pop("name", None) == plain[name].pop("name", None)
        assert weighted[name] == pytest.approx(plain[name], abs=1e-12)
    for one, other in zip(weighted["groups"], plain["groups"], strict=True):
        assert one["bias"] == pytest.approx(other["bias"], abs=1e-12)


def test_the_report_is_weighted_too(file, tmp_path):
    page = tmp_path / "r.html"
    for more in ((), ("--by", "g")):
        ok(here("debias", file, *COLUMNS, *more, "--eta", "0.1", "--report", page, "--quiet"))
        text = page.read_text()
        assert "weighted mean of served" in text and "0.200 too high" in text
        assert "averages on this page are weighted by it" in text
    others = (("--level", "0.5"), ("--interval", "0.8"), ("--level", "0.2", "--level", "0.7"),
              ("--level", "0.5", "--key", "g"),
              ("--level", "0.5", "--ensemble", "0.1,1", "--ensemble-eta", "0.1"))  # fmt: skip
    for options in others:
        ok(here("quantile", file, *COLUMNS, *options, "--report", page, "--quiet"))
        assert "weighted by it" in page.read_text()
