"""Figures are those of the rows whatever their size, and text, JSON and page say the same of them."""

import json
import re
from fractions import Fraction

import numpy as np
import pytest

from cli.calling import Done, column, here, ok

COLUMNS = ["--prediction", "p", "--label", "y"]


def written(path, p, y, **more):
    names = ["p", "y", *more]
    lines = zip(map(repr, p), map(repr, y), *(map(str, own) for own in more.values()), strict=True)
    path.write_text("\n".join([",".join(names), *map(",".join, lines)]) + "\n")
    return path


def runs(command, path, *options) -> tuple[Done, dict, str]:
    """The text, the object of --json and the page of one call."""
    page = path.with_suffix(".html")
    done = ok(here(command, path, *COLUMNS, *options, "--report", page))
    found = json.loads(ok(here(command, path, *COLUMNS, *options, "--json")).out)
    return done, found, page.read_text()


def mean(values) -> float:
    whole = sum(values, Fraction(0)) / len(values)
    try:
        return float(whole)
    except OverflowError:
        return float("inf")


def errors(served, y):
    return [Fraction(s) - Fraction(t) for s, t in zip(served, y, strict=True)]


def streams():
    rng, n = np.random.default_rng(24), 300
    z, e = rng.normal(size=n), rng.normal(size=n)
    near = 1e16 + np.round(3 * z) * 2
    stamps = 1.6e18 + np.cumsum(rng.integers(0, 10**9, n)).astype(float)
    yield "few ulps", np.full(n, 1e16), near
    yield "few ulps too low", np.full(n, 1e16), np.full(n, 1e16) + 6 * (z > 0)
    yield "nanoseconds", stamps + np.round(1000 * z) * 256, stamps
    for size in (1e-300, 1e-160, 1e-16, 1e15, 1e100, 1e150):
        yield f"{size:g}", size * (5 + z), size * (6 + z + e)
    yield "perfect", 5 + z, 5 + z
    yield "nearly perfect", 5 + z, (5 + z) * (1 + 3e-16 * (np.arange(n) % 3))
    yield "zeros", np.zeros(n), np.zeros(n)
    yield "labels of zero", 1e-16 * z, np.zeros(n)
    yield "two sizes", np.where(z > 0, 1e12, 1.0) * (5 + z), np.where(z > 0, 1e12, 1.0) * (6 + z)


@pytest.mark.parametrize("name", [name for name, *_ in streams()])
@pytest.mark.parametrize("eta", ["auto", "plain"])
def test_bias_and_loss_are_those_of_the_rows(name, eta, tmp_path):
    p, y = next((p.tolist(), y.tolist()) for own, p, y in streams() if own == name)
    path = written(tmp_path / "rows.csv", p, y)
    out = tmp_path / "out.csv"
    found = json.loads(ok(here("debias", path, *COLUMNS, "--eta", eta, "--json", "-o", out)).out)
    for when, served in (("before", p), ("after", column(out, "adjusted"))):
        off = errors(served, y)
        size = mean([abs(one) for one in off])
        for said in (found["bias"], found["learned_from"]["bias"]):
            assert said[when] == pytest.approx(mean(off), rel=1e-12, abs=1e-12 * size)
        squares = mean([one * one for one in off])
        for said in (found["loss"], found["learned_from"]["loss"]):
            assert said[when] == pytest.approx(squares, rel=1e-12, abs=1e-307)


@pytest.mark.parametrize("name", [name for name, *_ in streams()])
def test_the_page_draws_the_errors_of_the_rows(name, tmp_path):
    """Sums of values of 1e18 have no digits left for errors of 1,000: they are summed themselves."""
    from gradeq.cli.job import Pass  # the trend is what the page draws

    seen = []
    p, y = next((p, y) for own, p, y in streams() if own == name)
    path = written(tmp_path / "rows.csv", p.tolist(), y.tolist())
    original = Pass.__init__

    def watched(self, *given, **named):
        original(self, *given, **named)
        seen.append(self)

    Pass.__init__ = watched
    try:
        ok(here("debias", path, *COLUMNS, "--report", tmp_path / "page.html"))
    finally:
        Pass.__init__ = original
    counts, _, sums = seen[-1].trend.blocks.blocks()
    size = np.abs(p - y).mean()
    assert sums["bias_before"].sum() / counts.sum() == pytest.approx(
        mean(errors(p.tolist(), y.tolist())), rel=1e-12, abs=1e-12 * size
    )


def test_a_difference_of_the_last_digits_is_shown_and_called_rounding(tmp_path):
    p, y = next((p.tolist(), y.tolist()) for own, p, y in streams() if own == "few ulps too low")
    done, found, page = runs("debias", written(tmp_path / "rows.csv", p, y))
    assert found["bias"]["before"] < -2 and f"bias {found['bias']['before']:.4g} -> " in done.out
    assert "No bias to remove beyond rounding." in done.out
    assert "No bias to remove beyond rounding." in page


def test_sums_that_cancel_have_their_digits_and_are_the_same_everywhere(tmp_path):
    """A sum of 1e16, small numbers and -1e16 taken in order is another one than taken in pairs."""
    rng, n = np.random.default_rng(5), 400
    p = 5 + rng.normal(size=n)
    y = p + 1 + rng.normal(size=n)
    y[[100, 300]] = 1e14, -1e14
    path = written(tmp_path / "rows.csv", p.tolist(), y.tolist())
    for options in ([], ["--eta", "plain"], ["--eta", "0.01", "--decay", "0.5"]):
        found = json.loads(ok(here("debias", path, *COLUMNS, *options, "--json")).out)
        assert found["bias"] == found["learned_from"]["bias"]
        true = mean(errors(p.tolist(), y.tolist()))
        # Each difference from 1e14 is itself rounded, to 1/64.
        assert found["bias"]["before"] == pytest.approx(true, abs=2 / 64 / n)


def test_a_bound_is_not_held_against_a_standard_error_that_is_no_number(tmp_path):
    """Labels of 1e160 on both sides: their squares overflow, their mean does not."""
    rng, n = np.random.default_rng(5), 400
    p = 5 + rng.normal(size=n)
    y = p + rng.normal(size=n)
    y[[100, 300]] = 1e160, -1e160
    path = written(tmp_path / "rows.csv", p.tolist(), y.tolist())
    for options in ([], ["--eta", "plain"], ["--eta", "0.5"]):
        done, found, _ = runs("debias", path, *options)
        assert found["certificate"]["vacuous"] is not False
        assert "proven limit" not in done.out.partition("\n")[0]


def test_values_of_every_size_at_once_have_a_page(tmp_path):
    rng, n = np.random.default_rng(5), 400
    p, y = 10.0 ** rng.uniform(-300, 300, (2, n))
    p[0], p[1] = 1e-200, 1e299
    path = written(tmp_path / "rows.csv", p.tolist(), y.tolist())
    for command in (["debias"], ["quantile", "--level", "0.9"], ["quantile", "--interval", "0.8"]):
        runs(*command[:1], path, *command[1:])


def test_a_state_says_of_a_loss_too_large_for_a_number_what_its_run_says(tmp_path):
    rng, n = np.random.default_rng(6), 300
    p = 1e200 * (5 + rng.normal(size=n))
    path, state = tmp_path / "rows.csv", tmp_path / "state.json"
    written(path, p.tolist(), (p + 1e200 * rng.normal(size=n)).tolist())
    done = ok(here("debias", path, *COLUMNS, "--state", state))
    for said in (done.out, ok(here("audit", state)).out):
        assert "squared error - -> -" in said and "inf" not in said


@pytest.mark.parametrize("options", [[], ["--link", "linear", "--eta", "0.1"], ["--eta", "plain"]])
def test_both_bounds_of_an_interval_are_named_in_text_and_json(options, tmp_path):
    rng, n = np.random.default_rng(6), 3000
    p = 5 + rng.normal(size=n)
    path = written(tmp_path / "rows.csv", p.tolist(), (p + 1 + rng.normal(size=n)).tolist())
    done, found, page = runs("quantile", path, "--interval", "0.8", *options)
    held, line = found["certificate"], done.out.partition("\n")[0]
    assert held["bound_on"] == "largest average gradient"
    assert held["coverage_bound"] != held["bound"]
    on_coverage = re.search(r"proven limit ([\d.]+) on coverage", line)
    on_gradient = re.search(r"largest average gradient \S+ \(proven limit ([\d.]+)", line)
    assert bool(on_coverage) is not held["coverage_vacuous"]
    assert bool(on_gradient) is not held["vacuous"]
    if on_coverage:
        assert float(on_coverage[1]) == pytest.approx(held["coverage_bound"], rel=0.02)
        assert "points off its target" in page
    if on_gradient:
        assert float(on_gradient[1]) == pytest.approx(held["bound"], rel=0.02)


def far_label():
    rng, n = np.random.default_rng(1), 400
    p = 5 + rng.normal(size=n)
    y = p + 1 + rng.normal(size=n)
    y[200] = 1e160
    return p.tolist(), y.tolist()


@pytest.mark.parametrize(
    "given", [["debias"], ["debias", "--eta", "plain"], ["quantile", "--level", "0.9"],
              ["quantile", "--interval", "0.8"]], ids=" ".join
)  # fmt: skip
def test_a_verdict_does_not_praise_what_a_warning_says_to_stop(given, tmp_path):
    path = written(tmp_path / "rows.csv", *far_label())
    done, found, page = runs(*given[:1], path, *given[1:])
    if not any(notice["level"] == "red" for notice in found["warnings"]):
        return
    assert "STOP: " in done.out
    for said in (done.out, page):
        assert "Do not rely on this run" in said
        assert not re.search(r"Bias (removed|reduced)\.|bias was (removed|reduced)|improved", said)


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e159, 1e200])
@pytest.mark.parametrize("bias", [0.0, 0.1, 3.0])
def test_a_bound_is_informative_in_every_unit_alike(size, bias, tmp_path):
    rng, n = np.random.default_rng(3), 2000
    p = rng.integers(1, 9, n).astype(float)
    y = p + bias + rng.choice([-1.0, 1.0, 2.0, -2.0], n)
    scale = 2.0 ** round(np.log2(size))
    found = []
    for unit in (1.0, scale):
        path = written(tmp_path / "rows.csv", (unit * p).tolist(), (unit * y).tolist())
        found.append(json.loads(ok(here("debias", path, *COLUMNS, "--eta", "plain", "--json")).out))
    ordinary, odd = (own["certificate"] for own in found)
    assert odd["bound"] == pytest.approx(scale * ordinary["bound"], rel=0.01)
    raw = abs(found[1]["bias"]["before"])
    if odd["bound"] < raw:
        assert odd["vacuous"] is False
    elif not (ordinary["bound"] < abs(found[0]["bias"]["before"])):
        assert odd["vacuous"] is True or ordinary["vacuous"] is False
    if ordinary["vacuous"]:
        assert odd["vacuous"]


def test_one_wording_where_more_labels_would_not_bring_a_guarantee(tmp_path):
    rng, n = np.random.default_rng(0), 300
    p = (5 + rng.normal(size=n)).tolist()
    path = written(tmp_path / "rows.csv", p, (rng.normal(size=n) * 3 + 5).tolist(), g=[k % 2 for k in range(n)])
    for options in ([], ["--by", "g"], ["--by", "g", "--eta", "plain"], ["--decay", "0.9"]):
        done, found, page = runs("debias", path, *options)
        never = found["certificate"]["vacuous"] and found["certificate"]["labels_needed"] is None
        if never:
            assert "no worst-case guarantee yet" not in done.out
            assert "no worst-case guarantee yet" not in page


@pytest.mark.parametrize("size", [1e-9, 1e-12, 1e-15, 1e-40, 1e-200])
def test_tiny_numbers_are_written_with_a_power_of_ten(size, tmp_path):
    rng, n = np.random.default_rng(0), 300
    z = rng.normal(size=n)
    path = written(tmp_path / "rows.csv", (size * z).tolist(), (size * (z + 1)).tolist(), g=[k % 2 for k in range(n)])
    done, _, page = runs("debias", path, "--by", "g")
    for said in (done.out, re.sub(r"<(svg|script|style).*?</\1>", "", page, flags=re.S)):
        assert not re.search(r"0\.0000000", said), re.findall(r".{20}0\.0000000.{20}", said)
    power = f"{1.0 * size:.0e}".split("e")[1].lstrip("-").lstrip("0")
    raised = power.translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    assert f"10⁻{raised} too low" in done.out
