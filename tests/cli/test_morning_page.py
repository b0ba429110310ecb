"""The page of a file whose labels are all still to come shows no figure as if it had been measured."""

from cli.calling import here, ok


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
