"""What gradeq elo says of its figures: which games they are about, which bound is theirs; no results yet."""

import re
from argparse import Namespace

import pytest

from cli.calling import column, games, here, ok, refused, write
from cli.test_elo_files import SIDES, WINNER, played
from gradeq import load
from gradeq.layers.elo import Elo
from gradeq.report.game_notices import clearly_off, predicted_off


@pytest.fixture
def rows():
    return games()


@pytest.fixture
def file(rows, tmp_path):
    return write(tmp_path / "games.csv", rows)


def test_games_without_results_claim_no_loss(rows, tmp_path):
    """Neither in a first run nor with a state behind it; what stands there is said to be since the state began."""
    state, page = tmp_path / "elo.json", tmp_path / "elo.html"
    given = (*WINNER, "--id", "id", "--state", state)
    known = [{**row, "id": i} for i, row in enumerate(rows)]
    fixtures = [{**row, "winner": "", "id": len(rows) + i} for i, row in enumerate(rows[:4])]
    files = [write(tmp_path / "g.csv", known), write(tmp_path / "h.csv", fixtures)]
    first = ok(here("elo", files[1], *WINNER, "--eta", 0.1, "--report", page)).out
    assert "4 games served; no results yet: nothing to judge" in first
    assert "log loss" not in first and "Log loss" not in page.read_text()
    assert "No results yet" in page.read_text() and "Choice of K" not in page.read_text()
    ok(here("elo", files[0], *given))
    text = ok(here("elo", files[1], *given, "--report", page)).out
    reached = load(state).equilibrium()
    assert "this run 4 games served, no results yet; since the state began" in text
    assert f"{reached.rows:,} games; largest |bias|" in text and "Too few" not in text
    assert f"log loss 0.693 -> {reached.loss_after:.3f}" in text
    words = re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", page.read_text()))
    assert f"{reached.rows:,} games since the state began, none in this run" in words
    assert f"Log loss of the forecasts is {reached.loss_after:.3f}" in words


def test_a_few_games_more_are_not_judged_as_if_they_were_all(rows, tmp_path):
    state, page = tmp_path / "elo.json", tmp_path / "elo.html"
    files = [write(tmp_path / "g.csv", rows[:-4]), write(tmp_path / "h.csv", rows[-4:])]
    ok(here("elo", files[0], *WINNER, "--state", state))
    text = ok(here("elo", files[1], *WINNER, "--state", state, "--report", page)).out
    whole, _ = played(rows)
    assert "this run 4 games, " in text and "Too few" not in text
    assert f"since the state began {len(whole.ratings)} players, {len(rows):,} games; " in text
    assert f"log loss 0.693 -> {whole.equilibrium().loss_after:.3f}; certificate" in text
    told = re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", page.read_text()))
    assert f"{len(rows):,} games since the state began, 4 in this run" in told


def test_the_bound_beside_the_largest_bias_is_the_one_of_that_player(file):
    """A bound on another average was once printed there, smaller than the bias."""
    for eta in (0.02, 0.1, 1.0):
        line = ok(here("elo", file, *WINNER, "--eta", eta)).out
        found = re.search(r"largest \|bias\| (\S+) \((\S+), ([\d,]+) games?; (?:bound )?([^)]+)\)", line)
        board = ok(here("elo", file, *WINNER, "--eta", eta, "--json")).json["groups"]
        worst = max(board, key=lambda row: abs(row["bias"]["after"]))
        assert (found[2], int(found[3])) == (worst["name"], worst["rows"])
        assert float(found[1]) == pytest.approx(abs(worst["bias"]["after"]), rel=0.05)
        shown = "no guarantee" if worst["vacuous"] else pytest.approx(worst["bound"], rel=0.05)
        assert (found[4] if worst["vacuous"] else float(found[4])) == shown
        summary = next(said for said in line.splitlines() if "largest |bias|" in said)
        assert summary.count("bound") == (0 if worst["vacuous"] else 1)


def test_a_page_from_a_state_does_not_deny_ties(tmp_path):
    elo = Elo()
    for i in range(200):
        elo.play("ann", "bob", 0.5 if i % 2 else 1.0)
    elo.report(tmp_path / "t.html")
    assert "no ties" not in (tmp_path / "t.html").read_text()


def test_fixtures_need_no_column_of_results_and_are_settled_later(rows, tmp_path):
    """Predicted without a winner, then labelled: the state of a run in which the winners were blank."""
    known = [{**row, "id": i} for i, row in enumerate(rows)]
    late = known[-40:]
    blank = [{**row, "winner": ""} for row in late]
    bare = [{"id": row["id"], "home": row["home"], "away": row["away"]} for row in late]
    scores = write(tmp_path / "s.csv", [{"id": row["id"], "score": row["score"]} for row in late])
    first = write(tmp_path / "g.csv", known[:-40])
    found = []
    for name, fixtures, options in (("blank", blank, WINNER), ("bare", bare, SIDES)):
        state, p = tmp_path / f"{name}.json", tmp_path / f"{name}-p.csv"
        given = ("--id", "id", "--state", state)
        file = write(tmp_path / f"{name}.csv", fixtures)
        ok(here("elo", first, *WINNER, *given))
        said = ok(here("elo", file, *options, *given, "--predictions", p, "--json")).json
        assert (said["rows"], said["labelled"], said["open"]) == (40, 0, 40)
        assert said["labels"] == ("later" if name == "bare" else "at once")
        ok(here("label", scores, *given, "--label", "score"))
        elo = load(state)
        found.append((column(p, "p"), elo.theta, elo.equilibrium().as_dict()))
    assert found[0] == found[1] and found[0][2]["rows"] == len(rows)


def test_without_a_place_to_wait_results_are_asked_for(file, tmp_path):
    for options in ((), ("--id", "home"), ("--state", tmp_path / "s.json")):
        assert "--winner or --score is missing" in refused(here("elo", file, *SIDES, *options))
    both = (*WINNER, "--score", "score")
    assert "one of the two" in refused(here("elo", file, *both))
    given = ("--id", "winner", "--state", tmp_path / "s.json", "--delay", 3)
    assert "give --winner or --score as well" in refused(here("elo", file, *SIDES, *given))


def test_a_winner_given_as_a_number_is_told_of_score(tmp_path):
    rows = [{"x": "ann", "y": "bob", "w": k % 2} for k in range(40)]
    line = refused(here("elo", write(tmp_path / "g.csv", rows), "--a", "x", "--b", "y", "--winner", "w"))
    assert line.endswith("; if it is the score of the first player, give --score w")
    ok(here("elo", tmp_path / "g.csv", "--a", "x", "--b", "y", "--score", "w"))


def test_a_player_within_chance_of_the_win_rate_is_not_warned_of():
    """1.6 points are less than one standard error of 728 games, 10 points more than five."""
    near, far = (Namespace(player=str(b), bias=b, games=728, win_rate=0.4) for b in (0.016, -0.1))
    assert clearly_off([near]) == []
    assert clearly_off([near, far]) == [far]
    said = predicted_off(far.player, far.bias, far.games, 1, 2, "player")
    assert "It " not in said.evidence and "728 games" in said.evidence
