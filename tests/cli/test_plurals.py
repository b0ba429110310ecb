"""One is one: no plural beside a count of 1."""

import re

import pytest

from cli.calling import here, ok, refused, write
from gradeq.report import game_notices
from gradeq.report import notices as say
from gradeq.report.story import BeforeAfter, LossFigures


def test_a_count_of_one_is_singular(tmp_path):
    page = tmp_path / "r.html"
    file = write(tmp_path / "one.csv", [{"f": 0.5, "y": 1.0}])
    call = ("debias", file, "--prediction", "f", "--label", "y")
    said = ok(here(*call, "--report", page)).out
    assert "over 1 row;" in said and "1 rows" not in said + page.read_text()
    file = write(tmp_path / "two.csv", [{"f": 0.5, "y": 1.0}, {"f": 0.5, "y": ""}])
    said = ok(here("debias", file, *call[2:])).out
    assert "1 labelled of 2 rows" in said and "It was served" in said
    file = write(tmp_path / "none.csv", [{"f": 0.5, "y": ""}])
    assert "1 row served, none labelled" in ok(here("debias", file, *call[2:])).out


def test_one_game_one_tie(tmp_path):
    page = tmp_path / "r.html"
    file = write(tmp_path / "one.csv", [{"a": "ann", "b": "bob", "w": "tie"}])
    said = ok(here("elo", file, "--a", "a", "--b", "b", "--winner", "w", "--report", page)).out
    assert "2 players, 1 game;" in said and "1 tie (half a win)" in said
    assert ", 1 game, 2 " in page.read_text()


TIMED = ("--prediction", "p", "--label", "y", "--time", "t", "--label-time", "known")


def test_the_verb_goes_with_the_count_and_not_with_the_total(tmp_path):
    rows = [{"p": 0.5, "y": i % 2, "t": i, "known": i + 1} for i in range(600)]
    rows[7]["known"] = 3
    said = ok(here("debias", write(tmp_path / "one.csv", rows), *TIMED)).out
    assert "1 of 600 labels is dated before its row;" in said
    rows[8]["known"] = 3
    said = ok(here("debias", write(tmp_path / "two.csv", rows), *TIMED)).out
    assert "2 of 600 labels are dated before their row;" in said


@pytest.mark.parametrize("n", [1, 2])
def test_notices_agree_with_their_counts(n):
    # Every sentence about n things: after 1 no plural, after 2 no singular.
    pair, loss = BeforeAfter(0.5, 0.25), LossFigures("squared error", 0.5, 0.25)
    jumps = [say.LabelChange("row", 5.0, n, BeforeAfter(0.5, after)) for after in (0.0, 1.0, 7.0)]
    made = [
        say.steps_capped(0.01, n, "3 rows"), say.dated_before(n, 600, "row 1"),
        say.no_label(n), say.no_label(n, True, n), say.immature(n, "30d", True),
        say.labels_held_back(n, ""), say.labels_held_back(n, "why"),
        say.not_due(n, 600, True), say.not_due(0, n, True),
        say.not_due(600 - n, 600, False, n), say.not_learned(n, 600, "", ""),
        say.too_late(n, "5d"), say.unknown_ids(n, True, "a", None), say.conflicting(n),
        say.error_from_change(jumps[0], loss), say.outside_range(n, 600, -1.0, 2.0, "shift"),
        say.rows_too_large(n, True, False, True), say.loose_bounds(n, 600),
        *(say.labels_changed(jump, pair, "it", jump.mean.after <= 1.0, (pair, loss)) for jump in jumps),
        say.far_value("label", n, 1e9, "row 1"), say.served_out_of_range(n, 1e9, "row 1"),
        say.means_remember(n, "a", 1.0, 2.0), say.short_series(9, n, 0.1),
        game_notices.doubtful_winners(n, "row 1", "w"), game_notices.never_met([["a", "b"], ["c"] * n]),
    ]  # fmt: skip
    plural = r"\b1 (?:\w+ )?(?:rows|labels|ids|values|games|players|are|were|have|wait)\b|\b[Aa]ll 1\b"
    singular = r"\b2 (?:row|label|id|served value|game|player|is|was|has|waits)\b"
    for notice in made:
        text = " ".join((notice.claim, notice.evidence))
        assert not re.search(plural if n == 1 else singular, text), text


def test_refusals_and_states_agree_with_their_counts(tmp_path):
    state = tmp_path / "s.json"
    file = write(tmp_path / "one.csv", [{"id": "a", "f": 0.5, "y": 1.0}])
    call = ("debias", file, "--prediction", "f", "--label", "y", "--state", state)
    ok(here(*call, "--delay", "2", "--quiet"))
    assert "keeps 1 label with" in refused(here(*call))
    ok(here(*call[:-1], tmp_path / "t.json", "--quiet"))
    assert "has seen this row: run 1 served it;" in refused(here(*call[:-1], tmp_path / "t.json"))
    (tmp_path / "short.csv").write_text("id,f,y\na\n")
    assert "has 1 cell, the header 3" in refused(here("debias", tmp_path / "short.csv", *call[2:6]))
