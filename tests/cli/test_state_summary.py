"""What a state says of all its labels: when they come, in an audit, and in the summary of the next morning."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gradeq as gq
from cli.calling import column, here, ok, write

SETTINGS = {
    "level": ("--level", "0.9", "--by", "g"),
    "levels": ("--level", "0.1", "--level", "0.8"),
    "interval": ("--interval", "0.8", "--by", "g"),
    "series": ("--level", "0.9", "--key", "g"),
    "series of intervals": ("--interval", "0.8", "--key", "g"),
}


def days(count: int = 4, rows: int = 40) -> list[list[dict[str, Any]]]:
    rng = random.Random(8)
    made = []
    for day in range(count):
        own = []
        for k in range(rows):
            f = rng.gauss(10.0, 2.0)
            row = {"id": f"{day}-{k}", "g": rng.choice("abc"), "f": f, "y": f + rng.gauss(1.0, 2.0)}
            own.append(row)
        made.append(own)
    return made


def lived(folder: Path, given: tuple[str, ...]) -> tuple[Any, Any, list[float]]:
    """Days of forecasts, their labels a day late: the last answer of label, what was served, all labels."""
    state, served, labels, answer = folder / "state.json", [], [], None
    call = ("--prediction", "f", *given, "--id", "id", "--state", state, "-o", folder / "out.csv")
    for own in days():
        asked = write(folder / "asked.csv", [{k: r[k] for k in ("id", "g", "f")} for r in own])
        told = write(folder / "told.csv", [{k: r[k] for k in ("id", "y")} for r in own])
        ok(here("quantile", asked, *call))
        names = [name for name in table_names(folder / "out.csv") if name not in ("id", "g", "f")]
        served.append(np.column_stack([column(folder / "out.csv", name) for name in names]))
        labels += [r["y"] for r in own]
        answer = ok(here("label", told, "--state", state, "--id", "id", "--label", "y", "--json"))
    assert answer is not None
    return answer.json, np.concatenate(served), labels


def table_names(path: Path) -> list[str]:
    return path.read_text().split("\n")[0].split(",")


@pytest.mark.parametrize("name", SETTINGS)
def test_the_coverage_of_a_state_is_that_of_what_was_served(name, tmp_path):
    answer, served, labels = lived(tmp_path, SETTINGS[name])
    y = np.array(labels)
    inside = "--interval" in SETTINGS[name]
    shares = [float(np.mean(y <= column)) for column in served.T]
    shares = [shares[1] - shares[0]] if inside else shares
    told = answer["coverage"] if isinstance(answer["coverage"], list) else [answer["coverage"]]
    assert [c["after"] for c in told] == pytest.approx(shares)
    state = tmp_path / "state.json"
    audit = ok(here("audit", state, "--json")).json
    assert audit["coverage"] == answer["coverage"]
    morning = write(tmp_path / "next.csv", [{"id": "next", "g": "a", "f": 1.0}])
    said = [ok(here("audit", state)).out]
    given = ("--prediction", "f", *SETTINGS[name], "--id", "id", "--state", state)
    said.append(ok(here("quantile", morning, *given)).out)
    label = write(tmp_path / "late.csv", [{"id": "none", "y": 1.0}])
    said.append(ok(here("label", label, "--state", state, "--id", "id", "--label", "y")).out)
    shown = "; ".join(f"coverage {c['before']:.3g} -> {c['after']:.3g}, target {c['target']:g}" for c in told)
    for text in said:
        assert f"{shown} over {len(y):,} rows; pinball loss" in text
        assert "farthest off" not in text


def test_a_vacuous_bound_is_called_so_and_not_printed_as_a_number(tmp_path):
    rows = [{"id": k, "f": 0.5, "g": "ab"[k % 2]} for k in range(40)]
    file, state = write(tmp_path / "asked.csv", rows), tmp_path / "state.json"
    call = ("--prediction", "f", "--by", "g", "--id", "id")
    ok(here("debias", file, *call, "--state", state))
    told = write(tmp_path / "told.csv", [{"id": k, "y": k % 2} for k in range(40)])
    posted = ok(here("label", told, "--state", state, "--id", "id", "--label", "y")).out
    audited, layer = ok(here("audit", state)).out, gq.load(state)
    reached = layer.equilibrium()
    assert reached.vacuous and reached.bound is not None
    for text in (posted, audited, str(reached)):
        assert "no worst-case guarantee" in text
        assert f"{reached.bound:.4g}" not in text


def test_text_and_page_of_one_state_describe_its_certificate_alike(tmp_path):
    answer, _, _ = lived(tmp_path, SETTINGS["level"])
    state, page = tmp_path / "state.json", tmp_path / "page.html"
    assert answer["certificate"]["exact"] is False  # labels were late: steps varied
    assert "0, by the stored sums)" in ok(here("audit", state)).out
    gq.load(state).report(page)
    tile = page.read_text().split(">Certificate<")[1][:700]
    assert "exact" in tile and "stored sums and the move of θ agree" in tile
    assert "≤" not in tile or "no guarantee" not in tile
