"""The page of a file whose labels are all still to come shows no figure as if it had been measured."""

import pytest

from cli.calling import here, ok, write

GIVEN = {
    "groups": ("debias", "--by", "g"),
    "interval": ("quantile", "--interval", "0.8", "--by", "g"),
    "series": ("quantile", "--level", "0.9", "--key", "g"),
}


@pytest.mark.parametrize("name", GIVEN)
def test_a_morning_page_tells_what_the_state_has_learned_by_then(name, tmp_path):
    state, page = tmp_path / "s.json", tmp_path / "page.html"
    command, *given = GIVEN[name]
    call = (*given, "--prediction", "p", "--id", "id", "--state", state, "--report", page)
    for day in range(2):
        rows = [{"id": f"{day}-{i}", "g": "ab"[i % 2], "p": i % 7} for i in range(90)]
        said = ok(here(command, write(tmp_path / "asked.csv", rows), *call)).out
        assert "nothing is claimed" not in said
        told = write(tmp_path / "told.csv", [{"id": r["id"], "y": r["p"] + 3} for r in rows[:77]])
        if not day:
            assert "No labels yet" in page.read_text()
            ok(here("label", told, "--state", state, "--id", "id", "--label", "y"))
    text = page.read_text()
    assert "No labels yet" not in text and "77 labels learned from since the state began" in text
    assert "The 90 rows of this file have no label yet." in text and "asked.csv" in text
    assert ("<h2>Groups" in text) == ("--by" in given)
    assert "<code>p</code>" in text


def test_a_page_without_labels_shows_no_measured_figure(tmp_path):
    rows = "\n".join(f"{i},{'ab'[i % 2]},{i % 7}" for i in range(40))
    (tmp_path / "morning.csv").write_text("id,g,p\n" + rows + "\n")
    page = tmp_path / "page.html"
    given = ("--prediction", "p", "--by", "g", "--id", "id", "--state", tmp_path / "s.json")
    ok(here("debias", tmp_path / "morning.csv", *given, "--report", page))
    text = page.read_text()
    lede = text[text.index('class="lede"') :].split("</h1>")[1][:1500]
    assert "0.00" not in lede and "Labelled rows" in lede
    assert " against " not in text[: text.index("</h1>")]
