"""A churn stream through the daily commands: who left is known when it happens, who stayed after 30 days."""

import csv
import random
from datetime import date, timedelta
from pathlib import Path

import pytest

import gradeq as gq
from cli.calling import here, ok

RATE, DAYS, EACH = 0.084, 42, 40


def written(folder: Path, never: bool) -> None:
    """A file of new customers and one of outcomes for every day."""
    rng, known = random.Random(5), {}
    for day in range(DAYS):
        rows = []
        for k in range(EACH):
            left = rng.random() < RATE
            rows.append(f"{day}-{k},{date(2024, 1, 1) + timedelta(day)},{RATE}")
            if left or not never:
                known.setdefault(day + (rng.randint(1, 29) if left else 30), []).append(f"{day}-{k},{int(left)}")
        (folder / f"new-{day}.csv").write_text("\n".join(["customer,day,p", *rows]))
        (folder / f"known-{day}.csv").write_text("\n".join(["customer,churned", *known.get(day, [])]))


def lived(folder: Path, *options: str) -> tuple[list[float], list[dict]]:
    """The mean of what was served on every day, and what the labels of every day came to."""
    state, means, said = folder / "state.json", [], []
    for day in range(DAYS):
        out = folder / "out.csv"
        given = ("--prediction", "p", "--outcome", "binary", "--time", "day", "--id", "customer", "--state", state)
        ok(here("debias", folder / f"new-{day}.csv", *given, "-o", out, "--quiet", *options))
        with open(out) as file:
            served = [float(row["adjusted"]) for row in csv.DictReader(file)]
        means.append(sum(served) / len(served))
        named = ("--state", state, "--id", "customer", "--label", "churned")
        said.append(ok(here("label", folder / f"known-{day}.csv", *named, "--json")).json)
    return means, said


@pytest.mark.parametrize(
    ("never", "options"),
    [(False, ()), (False, ("--maturity", "30d")), (True, ("--maturity", "30d", "--missing-is", "0")), (True, ())],
    ids=["not asked", "maturity", "missing is 0", "never known"],
)
def test_what_is_served_stays_near_a_calibrated_model(tmp_path: Path, never: bool, options: tuple[str, ...]) -> None:
    written(tmp_path, never)
    means, said = lived(tmp_path, *options)
    assert means[:31] == pytest.approx([RATE] * 31)
    assert max(abs(mean - RATE) for mean in means) < 0.06
    early = [found["waiting"] for found in said[:30]]
    assert sum(early) > 20 and sum(found["applied"] for found in said[:30]) == 0
    warned = any("come earlier" in own["claim"] for own in said[20]["warnings"])
    assert warned == (not options)
    assert (said[-1]["held_back"] > 0) == (not options)
    layer = gq.load(tmp_path / "state.json")
    assert (layer.equilibrium().rows > 200) == (bool(options) or not never)


def test_a_file_with_label_times_is_learned_when_rows_are_mature(tmp_path: Path) -> None:
    file = tmp_path / "all.csv"
    rows = [
        f"{date(2024, 1, 1) + timedelta(k // 5)},0.3,{k % 2},{date(2024, 1, 2) + timedelta(k // 5)}"
        for k in range(200)
    ]
    file.write_text("\n".join(["day,p,y,known", *rows]))
    given = ("--prediction", "p", "--label", "y", "--outcome", "binary", "--time", "day", "--json")
    late = ok(here("debias", file, *given, "--label-time", "known", "--maturity", "10d")).json
    delayed = ok(here("debias", file, *given, "--delay", "10d")).json
    assert late["theta"] == delayed["theta"]
    assert late["labels"] == "label time known, maturity 10d"
    assert (late["rows"], late["labelled"]) == (200, 150)
    assert any("50 rows are younger than --maturity 10d" in own["claim"] for own in late["warnings"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--missing-is", "0"), "give --maturity as well"),
        (("--maturity", "10d"), "give --time as well"),
        (("--time", "day", "--maturity", "10"), "is not a duration"),
        (("--time", "day", "--maturity", "soon"), "is not a duration"),
        (("--time", "day", "--maturity", "10d", "--delay", "3d"), "leave out --maturity"),
        (("--time", "day", "--maturity", "10d", "--ttl", "5d"), "is not above --maturity"),
    ],
)
def test_options_that_make_no_sense_are_one_line(tmp_path: Path, options: tuple[str, ...], words: str) -> None:
    file = tmp_path / "a.csv"
    file.write_text("day,p,y\n2024-01-01,0.3,1\n2024-01-02,0.3,0\n")
    done = here("debias", file, "--prediction", "p", "--label", "y", *options)
    assert done.code == 2 and done.err.count("\n") == 1 and words in done.err


def test_a_row_of_the_very_age_is_counted_only_if_it_was_learned(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("id,t,p,y\na,0,0.5,\nb,5,0.5,\nc,5,0.5,1\nd,10,0.5,\n")
    given = ("--prediction", "p", "--label", "y", "--time", "t", "--maturity", "5")
    given = ("debias", tmp_path / "in.csv", *given, "--missing-is", "0", "--json")
    kept = ok(here(*given, "--id", "id", "--state", tmp_path / "s.json")).json
    assert kept["labelled"] == kept["learned"] == kept["learned_from"]["rows"] == 2
    assert kept["open"] == 2  # the label of b may still come on this day
    alone = ok(here(*given)).json
    assert alone["labelled"] == alone["learned"] == 3
