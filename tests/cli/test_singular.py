"""One is one: no plural beside a count of 1."""

from cli.calling import here, ok, write


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
