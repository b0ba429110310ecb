"""Headlines that hold: groups that got worse are named, ticks are earned, a vacuous bound gives its cause."""

import random
import re

import pytest

from cli.calling import here, ok, scores, write


def said(folder, rows, *options: str) -> tuple[str, str]:
    """What the terminal and the page of a run say."""
    file, out = write(folder / "rows.csv", rows), folder / "page.html"
    base = ("--prediction", "f", "--label", "y", "--report", out)
    return ok(here("debias", file, *base, *options)).out, out.read_text(encoding="utf-8")


def numbers(rows: int, bias: dict[str, float], seed: int = 1) -> list[dict[str, object]]:
    rng = random.Random(seed)
    made = []
    for i in range(rows):
        group = sorted(bias)[i % len(bias)]
        f = 100.0 + 10.0 * rng.gauss(0.0, 1.0)
        made.append({"g": group, "f": f, "y": f + bias[group] + rng.gauss(0.0, 1.0)})
    return made


def test_groups_that_got_worse_are_named_with_both_numbers(tmp_path):
    rows = numbers(900, {"a": 5.0, "b": 5.0, "right": 0.0})
    out, page = said(tmp_path, rows, "--by", "g", "--eta", "0.05")
    assert "1 of 3 groups got worse. Squared error: g=right (" in out  # noise was followed
    out, page = said(tmp_path, numbers(900, {"a": 5.0, "b": 3.0}), "--by", "g", "--eta", "0.05")
    assert "got worse" not in out
    noisy = numbers(900, {"a": 0.0, "b": 0.0, "c": 0.0})
    out, page = said(tmp_path, noisy, "--by", "g", "--eta", "0.9")
    worse = re.search(r"Warning: 3 of 3 groups got worse\. (.*)", out)
    assert worse is not None and all(f"g={name} (" in worse.group(1) for name in "abc")
    assert "groups got worse" in page


@pytest.mark.parametrize(("eta", "tick"), [("0.05", True), ("0.0000001", False)])
def test_a_green_tick_stands_only_beside_a_change_for_the_better(tmp_path, eta, tick):
    out, page = said(tmp_path, numbers(500, {"a": 5.0}), "--eta", eta)
    assert ("Bias removed." in out) == tick and ("Little changed." in out) != tick
    assert ('class="tag ok"' in page) == tick
    assert ">exact</span>" in page


@pytest.mark.parametrize(
    ("rows", "options", "cause"),
    [
        (40, (), "It shrinks as step × rows grows, which is still small here (40 rows, step 0.01)."),
        (5000, ("--eta", "0.000001"), "still small here (5,000 rows, step 0.000001)."),
        (1500, ("--eta", "0.1", "--delay", "1100"), "Labels arrived up to 1,100 rows late: steps went"),
    ],
)  # fmt: skip
def test_a_vacuous_bound_gives_its_cause_and_never_calls_many_rows_few(tmp_path, rows, options, cause):
    out, _ = said(tmp_path, numbers(rows, {"a": 0.5}), *options)
    assert "no worst-case guarantee" in out and cause in out
    assert "few rows" not in out


def test_probabilities_with_0_1_labels_ask_for_the_binary_outcome(tmp_path):
    file = write(tmp_path / "scores.csv", scores(400))
    call = ("debias", file, "--prediction", "score", "--label", "outcome")
    line = "Warning: These look like probabilities with 0/1 labels"
    out = ok(here(*call, "--by", "region", "--eta", "0.9")).out
    assert out.count(line) == 1 and "--outcome binary" in out
    assert re.search(r"served values? left \[0, 1\], from -?[\d.]+ to [\d.]+\.", out)
    assert line not in ok(here(*call, "--outcome", "binary")).out
    other = write(tmp_path / "other.csv", numbers(400, {"a": 1.0}))
    assert line not in ok(here("debias", other, "--prediction", "f", "--label", "y")).out


def test_beside_a_bound_stands_what_it_bounds_and_not_the_bias_of_all_groups(tmp_path):
    rows = [{"f": 0, "y": 1, "g": i % 20} for i in range(400)]
    file = write(tmp_path / "g.csv", rows)
    given = ("debias", file, "--prediction", "f", "--label", "y", "--by", "g", "--eta", 0.1)
    line = ok(here(*given)).out.splitlines()[0]
    found = ok(here(*given, "--json")).json
    bias, held = abs(found["bias"]["after"]), found["certificate"]
    assert bias > 10.0 * held["bound"] > 0.0  # so the two may not stand side by side
    largest = min(held["average_gradient"].values())
    assert f"over all rows {largest:.3g} (proven limit {held['bound']:.3g});" in line
    assert abs(largest) <= held["bound"]
