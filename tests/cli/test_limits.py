"""--min and --max: what is served stays inside, and what is said of it is true; ties of labels are told."""

import re

import numpy as np
import pytest

from cli.calling import column, here, ok, table, write
from gradeq.cli.outcome import CommonLabel
from gradeq.report.notices import tied_labels


@pytest.fixture
def demand(tmp_path):
    """Four series of demand, about half of it none, around forecasts that go below 0."""
    rng = np.random.default_rng(2)
    lines = ["day,sku,low,high,sold"]
    for day in range(150):
        for sku in range(4):
            f = rng.uniform(0.0, 1.5)
            lines.append(f"{day},{sku},{f - 1.0:.3f},{f + 0.6:.3f},{rng.poisson(0.2 + 0.4 * sku)}")
    path = tmp_path / "demand.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def columns(path, *names):
    return [np.array(column(path, name)) for name in names]


@pytest.mark.parametrize("more", [[], ["--key", "sku"], ["--by", "sku"], ["--eta", 0.1]])
def test_what_debias_serves_is_inside_and_judged_there(demand, tmp_path, more):
    out = tmp_path / "out.csv"
    given = ["--prediction", "low", "--label", "sold", "--min", 0, "--max", 9, "-o", out, *more]
    said = ok(here("debias", demand, *given, "--json")).json
    served, y = columns(out, "adjusted", "sold")
    assert served.min() == 0.0 and served.max() <= 9.0
    assert said["bias"]["after"] == pytest.approx(np.mean(served - y), abs=1e-12)
    assert said["loss"]["after"] == pytest.approx(np.mean((served - y) ** 2), abs=1e-12)
    assert said["certificate"]["gap"] < 1e-12


@pytest.mark.parametrize("more", [[], ["--key", "sku"], ["--by", "sku"], ["--delay", 3]])
def test_quantiles_are_judged_before_the_limit_and_shown_inside(demand, tmp_path, more):
    free, held = tmp_path / "free.csv", tmp_path / "held.csv"
    given = ["quantile", demand, "--prediction", "low", "--label", "sold", "--level", 0.2, *more]
    without = ok(here(*given, "-o", free, "--json")).json
    said = ok(here(*given, "--min", 0, "-o", held, "--json")).json
    before, y = columns(free, "adjusted", "sold")
    (shown,) = columns(held, "adjusted")
    assert before.min() < 0.0 and np.array_equal(shown, np.maximum(before, 0.0))
    assert {k: said["coverage"][k] for k in without["coverage"]} == without["coverage"]
    assert said["certificate"] == without["certificate"]
    raw = np.maximum(columns(held, "low")[0], 0.0)
    for when, values in (("before", raw), ("after", shown)):
        covered = pytest.approx(np.mean(y <= values), abs=1e-12)
        assert said["coverage"]["clipped"][when] == covered
        loss = np.mean(np.maximum(0.2 * (y - values), -0.8 * (y - values)))
        assert said["loss"]["clipped"][when] == pytest.approx(loss, abs=1e-12)
    assert any("stays at 0 or above" in one["claim"] for one in said["warnings"])


def test_the_lower_end_of_an_interval_is_inclusive_at_the_limit(demand, tmp_path):
    out = tmp_path / "out.csv"
    given = ["--prediction", "low", "--prediction", "high", "--label", "sold", "--interval", 0.8]
    said = ok(here("quantile", demand, *given, "--min", 0, "-o", out, "--json")).json
    lower, upper, y = columns(out, "lower", "upper", "sold")
    raw = [np.maximum(end, 0.0) for end in columns(out, "low", "high")]
    found = said["coverage"]["clipped"]
    for when, (low, high) in (("before", raw), ("after", (lower, upper))):
        inside = ((low < y) | ((low == 0.0) & (y == 0.0))) & (y <= high)
        assert found[when] == pytest.approx(np.mean(inside), abs=1e-12)
    assert abs(found["after"] - np.mean((lower < y) & (y <= upper))) > 0.2


@pytest.mark.parametrize("floor", [-9.0, 0.0], ids=["free", "floored"])
@pytest.mark.parametrize("levels", [["--interval", 0.8], ["--level", 0.2], ["--level", 0.2, "--level", 0.9]])
def test_the_verdict_is_true_of_the_values_in_the_file(demand, tmp_path, levels, floor):
    head, *lines = demand.read_text().splitlines()
    cells = [line.split(",") for line in lines]
    lines = [",".join([*c[:2], str(max(float(c[2]), floor)), *c[3:]]) for c in cells]
    demand.write_text("\n".join([head, *lines]) + "\n")
    page = tmp_path / "page.html"
    raw = ["--prediction", "low", *(["--prediction", "high"] if levels[1:] != [0.2] else [])]
    given = ["quantile", demand, *raw, "--label", "sold", *levels, "--min", 0]
    verdict = ok(here(*given, "--report", page)).out.splitlines()[2]
    found = ok(here(*given, "--json")).json["coverage"]
    each = found if isinstance(found, list) else [found]
    sides = ("after", "before")
    apart = max(abs(one["clipped"][when] - one[when]) for one in each for when in sides)
    assert verdict.startswith("As served, ") == (apart > 0.01)
    assert apart > 0.01 or floor < 0.0
    used = [one["clipped"] | {"target": one["target"]} if apart > 0.01 else one for one in each]
    if len(each) > 1:
        off = [100 * max(abs(one[when] - one["target"]) for one in used) for when in sides]
        told = [f"within {share:.1f} points" for share in off]
    else:
        shares = [100 * used[0][when] for when in sides]
        places = 2 if len({f"{share:.1f}" for share in shares}) == 1 else 1
        told = [f"{share:.{places}f} %" for share in shares]
    words = re.sub("<[^>]*>", "", page.read_text()).replace("\u202f", " ").replace("\xa0", " ")
    for where in (verdict, words):
        assert re.search(f"{told[0]}.*{told[1]}", where)


@pytest.mark.parametrize("levels", [[0.2], [0.2, 0.9]])
def test_the_loss_of_each_series_is_also_that_of_its_values_in_the_file(demand, tmp_path, levels):
    out, keys = tmp_path / "out.csv", tmp_path / "keys.csv"
    given = [word for level in levels for word in ("--level", level)]
    ok(here("quantile", demand, "--prediction", "low", "--label", "sold", *given, "--key", "sku",
            "--min", 0, "-o", out, "--keys-out", keys))  # fmt: skip
    y, sku = columns(out, "sold", "sku")
    for level in levels:
        mark = f"_{level}" if len(levels) > 1 else ""
        (shown,) = columns(out, f"adjusted{mark}")
        lost = np.maximum(level * (y - shown), (level - 1.0) * (y - shown))
        own = [lost[sku == one].mean() for one in range(4)]
        told, judged = columns(keys, f"loss_clipped{mark}", f"loss_after{mark}")
        np.testing.assert_allclose(told, own, rtol=1e-9)
        assert (told <= judged + 1e-12).all()  # labels lie inside the limits


def test_a_state_keeps_its_limits(demand, tmp_path):
    state = tmp_path / "state.json"
    given = ["--prediction", "low", "--label", "sold", "--level", 0.2, "--state", state]
    ok(here("quantile", demand, *given, "--min", 0))
    kept = state.read_text()
    other = here("quantile", demand, *given, "--min", 1e-3)
    assert other.code == 2 and state.read_text() == kept
    other = here("quantile", demand, *given)
    assert other.code == 2 and "with --min 0, this run without --min" in other.err and state.read_text() == kept
    ok(here("quantile", demand, *given, "--min", 0, "--again"))


@pytest.mark.parametrize(
    "given, said",
    [
        (["--min", 1], "column 'sold' has 0.0, which lies below --min 1"),
        (["--max", 1], "which lies above --max 1; correct it, or give a larger --max"),
        (["--min", 3, "--max", 2], "--min 3 is not below --max 2"),
        (["--min", "inf"], "inf is not finite; give a finite number"),
        (["--max", "nan"], "nan is not finite"),
        (["--min", "none"], "'none' is not a number"),
        (["--min", 0, "--link", "exp"], "--min and --max do not go with --link exp"),
    ],
)
def test_limits_that_make_no_sense_are_refused_in_one_line(demand, tmp_path, given, said):
    out = tmp_path / "out.csv"
    done = here("debias", demand, "--prediction", "high", "--label", "sold", *given, "-o", out)
    assert done.code == 2 and done.err.count("\n") == 1
    assert said in done.err
    assert not out.exists()


def test_ties_are_told_and_what_is_told_holds(demand):
    y = columns(demand, "sold")[0]
    said = ok(here("quantile", demand, "--prediction", "low", "--label", "sold", "--level", 0.2))
    assert "labels are exactly 0" in said.out and "no single value covers 20 %" in said.out
    common = CommonLabel()
    for piece in (y[:100], y[:0], y[100:]):
        common.add(piece)
    assert (common.value, common.below, common.equal) == (0.0, 0, np.count_nonzero(y == 0.0))
    quiet = ok(here("quantile", demand, "--prediction", "low", "--label", "high", "--level", 0.2))
    assert "exactly" not in quiet.out


@pytest.mark.parametrize("below, equal", [(0.0, 0.4026), (0.25049, 0.39951), (0.1, 0.9)])
def test_shares_of_a_tie_are_never_rounded_to_more_than_is_true(below, equal):
    said = tied_labels(1.0, below, equal, ["0.3"], False).evidence
    least, most = (said.partition(word)[2].partition(" %")[0] for word in ("at least ", "at most "))
    assert float(least) <= 100.0 * (below + equal) < float(least) + 0.1001
    assert not below or float(most) >= 100.0 * below


@pytest.mark.parametrize("options", [("--level", "0.3"), ("--interval", "0.6")])
def test_groups_and_levels_show_what_was_served_and_no_bound_of_something_else(tmp_path, options):
    rng = np.random.default_rng(9)
    rows = [{"g": "ab"[i % 2], "f": 0.6, "y": max(0, round(rng.normal(0.2 + i % 2, 1.0)))} for i in range(600)]
    file, out, page = write(tmp_path / "d.csv", rows), tmp_path / "o.csv", tmp_path / "r.html"
    given = ("--prediction", "f", "--label", "y", *options, "--by", "g", "--min", "0")
    done = ok(here("quantile", file, *given, "-o", out, "--report", page))
    said = ok(here("quantile", file, *given, "--json")).json
    served, changed = table(out), []
    for group in "ab":
        own = [row for row in served if row["g"] == group]
        if "--level" in options:
            covered = np.mean([float(r["y"]) <= float(r["adjusted"]) for r in own])
        else:
            covered = np.mean([
                (float(r["lower"]) < float(r["y"]) or float(r["lower"]) == float(r["y"]) == 0.0)
                and float(r["y"]) <= float(r["upper"]) for r in own
            ])  # fmt: skip
        line = next(line for line in done.out.splitlines() if line.startswith(f"g={group} "))
        assert float(line.split()[3]) == pytest.approx(covered, abs=6e-4)
        shown = re.search(rf'name">{group}</bdi>.*?data-head="After">([\d.]+)', page.read_text())
        assert float(shown.group(1)) == pytest.approx(100.0 * covered, abs=0.051)
        told = next(g for g in said["groups"] if g["name"] == f"g={group}")["coverage"]
        changed.append(told["clipped"]["after"] != told["after"])
        assert (line.split()[-1] == "-") == changed[-1]
    # An end of an interval that lies at a limit is inclusive there, so nothing changes for it.
    assert any(changed) == ("--level" in options)
    assert ("bounds are on coverage before --min and --max" in done.out) == any(changed)
    told = "a bound is on the coverage before --min and --max" in page.read_text()
    assert told == any(changed)


def test_a_page_of_series_says_which_coverage_is_theirs(demand, tmp_path):
    page = tmp_path / "series.html"
    given = ("--prediction", "low", "--label", "sold", "--level", 0.2, "--key", "sku", "--report", page)
    for limit, said in ((("--min", 0), True), ((), False)):
        ok(here("quantile", demand, *given, *limit))
        assert ("Coverage of series is judged before --min and --max" in page.read_text()) == said
