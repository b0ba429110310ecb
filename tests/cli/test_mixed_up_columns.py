"""What is easily got wrong at the first try is said: swapped columns, a column twice, a key with one row each."""

import random

import pytest

from cli.calling import here, ok, refused


def table(path, head, rows):
    path.write_text("\n".join([head, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


def warned(done, level="amber"):
    return [own["claim"] for own in done.json["warnings"] if own["level"] == level]


@pytest.fixture(scope="module")
def orders(tmp_path_factory):
    """Orders with the day they were placed and the day their label came; some labels never came."""
    rng = random.Random(4)
    rows = []
    for k in range(400):
        day, late = k // 4, rng.randrange(1, 9)
        f = rng.gauss(100, 10)
        label = f"{f + 5 + rng.gauss(0, 3):.2f}" if k % 10 else ""
        date = "2024-{:02d}-{:02d}"
        placed, known = (date.format(1 + d // 28, 1 + d % 28) for d in (day, day + late))
        rows.append((f"o{k}", placed, known, placed, f"{f:.2f}", label))
    return table(tmp_path_factory.mktemp("orders") / "o.csv", "id,placed,known,same,f,y", rows)


DEBIAS = ["--prediction", "f", "--label", "y"]


def test_labels_dated_before_their_rows_are_told_of_in_summary_report_and_json(orders, tmp_path):
    swapped = ["--time", "known", "--label-time", "placed"]
    claim = "360 of 360 labels are dated before their row; are --time and --label-time swapped?"
    done = ok(here("debias", orders, *DEBIAS, *swapped, "--json", "--report", tmp_path / "r.html"))
    assert claim in warned(done)
    assert "360 of 360 labels are dated before their row" in (tmp_path / "r.html").read_text()
    assert f"Warning: {claim}" in ok(here("debias", orders, *DEBIAS, *swapped)).out


@pytest.mark.parametrize("column", ["known", "same"])
def test_labels_dated_with_their_rows_or_later_are_not(orders, column):
    done = ok(here("debias", orders, *DEBIAS, "--time", "placed", "--label-time", column, "--json"))
    assert "dated before" not in done.out


def test_games_whose_results_are_dated_before_them_are_told_of_too(tmp_path):
    rows = [(k, k - 1, "ab"[k % 2], "cd"[k % 3 % 2], "a") for k in range(60)]
    games = table(tmp_path / "g.csv", "t,known,x,y,w", rows)
    given = ["--a", "x", "--b", "y", "--winner", "w", "--time", "t", "--label-time", "known"]
    assert any("60 of 60 labels are dated before" in own for own in warned(ok(here("elo", games, *given, "--json"))))


@pytest.mark.parametrize("option", ["--prediction", "--by", "--feature", "--key"])
def test_the_label_is_no_column_that_is_known_when_a_row_is_served(orders, option):
    given = ["--prediction", "f", "--eta", "0.01"] if option != "--prediction" else []
    said = refused(here("debias", orders, *given, option, "y", "--label", "y"))
    assert said == (
        f"gradeq: error: 'y' is given as {option} and as --label; a label is not known when its row is served: "
        "give each its own column"
    )


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e9])
def test_a_perfect_model_has_no_bias_to_remove_and_no_warning(tmp_path, size):
    """What is left of an error by rounding alone is shown and called that, in whatever unit."""
    rng = random.Random(7)
    values = [size * rng.gauss(100, 10) for _ in range(2000)]
    rows = [(k % 2, repr(v), repr(v * (1.0 + 3e-16 * (k % 3)))) for k, v in enumerate(values)]
    path = table(tmp_path / "p.csv", "g,f,y", rows)
    done = ok(here("debias", path, *DEBIAS, "--by", "g"))
    assert "No bias to remove beyond rounding." in done.out
    assert "Squared error changed by rounding alone: " in done.out
    assert "Warning" not in done.out and "grew" not in done.out


def test_a_small_bias_of_large_values_is_still_one(tmp_path):
    rng = random.Random(8)
    rows = [(f"{1e9 + k}", f"{1e9 + k + 0.01 + 0.001 * rng.random():.4f}") for k in range(500)]
    done = ok(here("debias", table(tmp_path / "l.csv", "f,y", rows), *DEBIAS))
    assert "Bias re" in done.out


@pytest.fixture(scope="module")
def singles(tmp_path_factory):
    """A row for each order, and every tenth has no label."""
    rng = random.Random(5)
    rows = [
        (f"o{k}", f"s{k % 7}", f"{rng.gauss(100, 10):.2f}", f"{rng.gauss(104, 10):.2f}" if k % 10 else "")
        for k in range(900)
    ]
    return table(tmp_path_factory.mktemp("single") / "s.csv", "id,shop,f,y", rows)


@pytest.mark.parametrize("command", [["debias"], ["quantile", "--level", "0.8"]])
def test_a_key_with_hardly_a_row_for_each_series_is_warned_of_and_not_said_to_be_judged(singles, tmp_path, command):
    given = [*command, singles, *DEBIAS, "--key", "id"]
    done = ok(here(*given, "--report", tmp_path / "r.html"))
    assert "Warning: 900 series in id. That is 1.0 rows a series" in done.out
    assert "900 of id, 810 with a label. " in done.out
    assert "enough labels" not in done.out
    page = (tmp_path / "r.html").read_text()
    assert "810 of them with a label" in page and "enough labels" not in page


def test_a_key_with_many_rows_each_is_not(singles):
    done = ok(here("debias", singles, *DEBIAS, "--key", "shop"))
    assert "rows a series" not in done.out
    assert "Series: 7 of shop. " in done.out


def test_series_that_come_back_day_by_day_are_not(singles, tmp_path):
    done = ok(here("debias", singles, *DEBIAS, "--key", "id", "--state", tmp_path / "s.json"))
    assert "rows a series" not in done.out


@pytest.fixture(scope="module")
def shops(tmp_path_factory):
    """Eight shops, one row a day each; labels come 24 days later, or the next day."""
    rng = random.Random(3)
    rows = []
    for day in range(1000):
        for shop in range(8):
            f = rng.gauss(100, 10)
            rows.append((day, day + 24, day + 1, f"s{shop}", f"{f:.3f}", f"{f + rng.gauss(3 + shop, 5):.3f}"))
    return table(tmp_path_factory.mktemp("shops") / "s.csv", "day,known,next,shop,f,y", rows)


AIMS = {"debias": ["debias"], "quantile": ["quantile", "--level", "0.8"]}
LATE = ["--time", "day", "--label-time", "known"]


def missed(shops, command, *options):
    done = ok(here(*AIMS[command], shops, *DEBIAS, *options, "--json"))
    return [w for w in done.json["warnings"] if "its target." in w["claim"] or "is left" in w["claim"]]


@pytest.mark.parametrize("command", AIMS)
def test_an_aim_that_is_clearly_missed_is_a_warning_with_its_cause_and_a_remedy_that_helps(shops, command):
    (found,) = missed(shops, command, "--key", "shop", *LATE)
    assert found["level"] == "amber"
    assert "Labels come up to 23 rows of their series late, so steps were reduced to" in found["evidence"]
    remedies = {"`--by shop` in place of `--key`": ["--by", "shop"]}
    remedies |= {"`--pool`": ["--key", "shop", "--pool"]} if command == "quantile" else {}
    for words, options in remedies.items():
        assert words in found["remedy"]
        assert not missed(shops, command, *options, *LATE)


@pytest.mark.parametrize("command", AIMS)
@pytest.mark.parametrize(
    "options",
    [[], ["--by", "shop"], LATE, ["--key", "shop"], ["--key", "shop", "--time", "day", "--label-time", "next"]],
)
def test_a_run_that_reached_its_aim_is_not_warned_of(shops, command, options):
    assert not missed(shops, command, *options)


def test_a_step_too_small_for_the_labels_is_a_cause_too(shops):
    (found,) = missed(shops, "debias", "--eta", "0.0001")
    assert "A step of 0.0001 learns slowly from 8,000 labels." in found["evidence"]
    assert "--eta auto" in found["remedy"]
    assert "Little changed." in ok(here("debias", shops, *DEBIAS, "--eta", "0.000001")).out
