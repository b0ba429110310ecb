"""Values far outside everything seen before are warned of, and only they."""

import os
from pathlib import Path

import numpy as np
import pytest

from cli.calling import here, ok
from gradeq.cli.run_notices import Magnitudes, count_powers

DATA = os.environ.get("GRADEQ_DATA")


def far_of(values, before=()):
    seen = Magnitudes(counts=count_powers(np.abs(np.array(before, dtype=float))))
    seen.add(np.asarray(values, dtype=float), lambda i: f"row {i + 1}")
    return seen.outliers()


@pytest.mark.parametrize("unit", [1e-200, 1e-6, 1.0, 1e9])
@pytest.mark.parametrize("absurd", [1e8, -1e12, 1e90])
def test_an_absurd_value_is_found_in_any_unit(unit, absurd):
    usual = np.random.default_rng(2).normal(3.0, 1.0, 300)
    values = usual * unit
    assert far_of(values) is None
    values[123] = absurd * unit
    assert far_of(values) == (1, values[123], "row 124")
    assert far_of([absurd * unit], usual * unit) == (1, absurd * unit, "row 1")


@pytest.mark.parametrize("seed", range(5))
def test_heavy_tails_zeros_and_blanks_are_not_far(seed):
    rng = np.random.default_rng(seed)
    for values in (
        rng.lognormal(0.0, 2.0, 50_000), rng.standard_t(2.0, 50_000), np.zeros(500),
        np.where(rng.random(5000) < 0.995, 0.0, rng.lognormal(8.0, 1.0, 5000)),
        np.full(30, np.nan), rng.pareto(1.5, 50_000),
    ):  # fmt: skip
        assert far_of(values) is None


@pytest.mark.skipif(DATA is None, reason="GRADEQ_DATA is not set")
@pytest.mark.parametrize("name", ["compas.csv.gz", "elec2.csv.gz", "daily-climate.csv"])
def test_real_streams_have_no_far_value(name):
    path = Path(str(DATA)) / name
    table = np.genfromtxt(path, delimiter=",", skip_header=1, invalid_raise=False)
    assert all(far_of(column) is None for column in table.T)


def days(folder, label="50.0", forecast="40.0"):
    """A first day of 200 rows whose labels came, and a second of one row."""
    rows = [(f"a{i}", 40.0 + i % 7, 42.0 + i % 5) for i in range(200)]
    (folder / "a.csv").write_text("id,p\n" + "".join(f"{i},{p}\n" for i, p, _ in rows))
    (folder / "al.csv").write_text("id,y\n" + "".join(f"{i},{y}\n" for i, _, y in rows))
    (folder / "b.csv").write_text(f"id,p\nb0,{forecast}\n")
    (folder / "bl.csv").write_text(f"id,y\nb0,{label}\n")
    said = []
    for day in "ab":
        served = here("debias", f"{day}.csv", "--prediction", "p", "--id", "id", "--state", "s.json", "--json",
                      "-o", f"{day}o.csv")  # fmt: skip
        told = here("label", f"{day}l.csv", "--id", "id", "--label", "y", "--state", "s.json", "--json")
        said.append([ok(r).json["warnings"] for r in (served, told)])
    return said


def claims(warnings):
    return [w["claim"] for w in warnings if "far o" in w["claim"]]


def test_the_day_of_an_absurd_value_says_so_and_no_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first, second = days(tmp_path, label="1711929600000", forecast="1e12")
    assert not claims(first[0]) and not claims(first[1])
    assert claims(second[0]) == ["1 prediction lies far outside everything seen before: id 'b0' has 1e+12."]
    assert claims(second[1]) == ["1 label lies far outside everything seen before: id 'b0' has 1.71193e+12."]
    (tmp_path / "fix.csv").write_text("id,y\nb0,50\n")
    shown = here("label", "fix.csv", "--id", "id", "--label", "y", "--state", "s.json", "--correct").out
    assert "A label that was far off was corrected: id 'b0' from 1.71193e+12 to 50." in shown
    assert here("audit", "s.json").code == 0


def test_ordinary_days_and_corrections_have_no_such_warning(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert not any(claims(warnings) for day in days(tmp_path) for warnings in day)
    (tmp_path / "fix.csv").write_text("id,y\nb0,49\n")
    shown = here("label", "fix.csv", "--id", "id", "--label", "y", "--state", "s.json", "--correct").out
    assert "1 corrected" in shown and "far off" not in shown


QUANTILES = {
    "one": ("--prediction", "p", "--level", "0.9"),
    "interval": ("--prediction", "p", "--prediction", "q", "--interval", "0.8"),
    "keyed": ("--prediction", "p", "--level", "0.9", "--key", "k"),
}


def claimed(folder, rows, *options):
    text = "k,p,q,y\n" + "".join(",".join(map(str, row)) + "\n" for row in rows)
    (folder / "rows.csv").write_text(text)
    command = "quantile" if "--level" in options or "--interval" in options else "debias"
    done = ok(here(command, folder / "rows.csv", "--label", "y", *options, "--json"))
    return claims(done.json["warnings"])


@pytest.mark.parametrize("kind", [*QUANTILES, "keyed debias"])
def test_quantiles_and_series_are_watched_too(kind, tmp_path):
    options = QUANTILES.get(kind, ("--prediction", "p", "--key", "k"))
    rows = [(f"k{i % 3}", 40 + i % 7, 50 + i % 7, 42 + i % 5) for i in range(300)]
    assert not claimed(tmp_path, rows, *options)
    said = "far outside everything seen before: row 121 has 1.7e+12."
    wrong = [*rows[:120], ("k0", 41, 51, 1.7e12), *rows[121:]]
    assert claimed(tmp_path, wrong, *options) == [f"1 label lies {said}"]
    wrong = [*rows[:120], ("k0", 1.7e12, 1.7e12, 44), *rows[121:]]
    found = claimed(tmp_path, wrong, *options)
    assert len(found) == 1 and found[0].endswith(said) and "prediction" in found[0]


def test_a_series_of_its_own_scale_is_not_far(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [(f"k{i % 3}", 40 + i % 7, 50, 42 + i % 5) for i in range(1000)]
    rows[500] = ("China", 1.4e9, 1.4e9, 1.41e9)
    assert not claimed(tmp_path, rows, "--prediction", "p", "--key", "k")
    text = "id,k,p\n" + "".join(f"{i},{k},{p}\n" for i, (k, p, _, _) in enumerate(rows))
    (tmp_path / "served.csv").write_text(text)
    ok(here("debias", "served.csv", "--prediction", "p", "--key", "k", "--id", "id", "--state", "s.json"))
    for label, far in (("1.41e9", False), ("1.41e16", True)):
        (tmp_path / "labels.csv").write_text(f"id,y\n500,{label}\n1,44\n")
        (tmp_path / "t.json").write_bytes((tmp_path / "s.json").read_bytes())
        done = ok(here("label", "labels.csv", "--id", "id", "--label", "y", "--state", "t.json", "--json"))
        assert bool(claims(done.json["warnings"])) == far


def astray(done):
    """What is said in red of served values."""
    return [w["claim"] for w in ok(done).json["warnings"] if "out of all proportion" in w["claim"]]


@pytest.mark.parametrize("corrected", [True, False])
def test_values_served_after_an_absurd_label_are_not_to_be_used(corrected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [(i, 50 + i % 100, 51 + i % 100) for i in range(300)]

    def day(first, wrong=None):
        served = "".join(f"{first + i},{p}\n" for i, p, _ in rows)
        labels = "".join(f"{first + i},{y if i != wrong else 1_700_000_000}\n" for i, _, y in rows)
        (tmp_path / "p.csv").write_text("id,p\n" + served)
        (tmp_path / "y.csv").write_text("id,y\n" + labels)
        state = ("--id", "id", "--state", "s.json", "--json")
        told = ("label", "y.csv", "--label", "y", *state)
        done = [here("debias", "p.csv", "--prediction", "p", "-o", "o.csv", *state), here(*told)]
        if wrong is not None and corrected:
            (tmp_path / "y.csv").write_text(f"id,y\n{wrong},51\n")
            done.append(here(*told, "--correct"))
        return done

    assert not any(astray(done) for done in day(0, wrong=150))
    for done in day(1000):
        assert len(astray(done)) == 1 and "300 served values are" in astray(done)[0]
        assert "id '1" in astray(done)[0]


def test_rare_outcomes_heavy_tails_and_large_corrections_are_not_astray(tmp_path):
    rng = np.random.default_rng(4)
    labels = {
        "rare": (np.full(3000, 1e-7), (rng.random(3000) < 0.004).astype(float), "binary"),
        "heavy": (rng.lognormal(0.0, 2.0, 3000), rng.lognormal(0.0, 2.0, 3000), "real"),
        "wrong unit": (rng.normal(1.0, 0.1, 3000), rng.normal(5000.0, 10.0, 3000), "real"),
        "nothing": (np.zeros(3000), np.where(rng.random(3000) < 0.004, 1e6, 0.0), "real"),
    }
    for f, y, outcome in labels.values():
        text = "p,y\n" + "".join(f"{a:.17g},{b:.17g}\n" for a, b in zip(f, y, strict=True))
        (tmp_path / "rows.csv").write_text(text)
        done = here("debias", tmp_path / "rows.csv", "--prediction", "p", "--label", "y", "--outcome", outcome,
                    "--eta", "0.5", "--json")  # fmt: skip
        assert not astray(done)
