"""Labels that come so many rows, or so much time, after their rows."""

import random
import re

import pytest

from cli.calling import column, games, here, ok, prices, refused, scores, table, write
from gradeq import Debiaser, Keyed

COLUMNS = ("--prediction", "f", "--label", "y", "--eta", "0.3")
LINE = "Each label was assumed known before the next prediction."


def rows(n=60, seed=5):
    rng = random.Random(seed)
    return [
        {
            "f": rng.random(),
            "y": "" if rng.random() < 0.1 else rng.random() + 0.5,
            "day": f"2024-01-{i // 3 + 1:02d}",
            "due": f"2024-01-{i // 3 + 4:02d}",
            "g": rng.choice("ab"),
            "shop": rng.choice("xyz"),
        }
        for i in range(n)
    ]


def by_hand(made, delay, key=None):
    """Serve row by row; the label of row i is posted before row i + delay + 1 is served."""
    layer = Keyed(Debiaser(eta=0.3)) if key else Debiaser(eta=0.3)
    open_, served = {}, []
    for row in made:
        own = open_.setdefault(row[key] if key else "", [])
        if len(own) > delay:
            ticket, y = own.pop(0)
            if y != "":
                layer.post(ticket, y)
        ticket = layer.open(row["f"], key=row[key]) if key else layer.open(row["f"])
        own.append((ticket, row["y"]))
        served.append(ticket.served)
    return served, layer


@pytest.mark.parametrize("delay", [0, 1, 7, 100])
@pytest.mark.parametrize("key", [None, "shop"])
def test_rows_late_is_the_loop_one_would_write(tmp_path, delay, key):
    made = rows()
    file, out = write(tmp_path / "a.csv", made), tmp_path / "out.csv"
    more = ("--key", key) if key else ()
    found = ok(here("debias", file, *COLUMNS, *more, "--delay", delay, "-o", out, "--json")).json
    assert column(out, "adjusted") == by_hand(made, delay, key)[0]
    assert found["labels"] == ("at once" if delay == 0 else f"delay {delay}")
    assert not any(w["claim"] == LINE for w in found["warnings"])


@pytest.mark.parametrize("key", [None, "shop"])
def test_a_state_goes_on_with_the_labels_that_are_on_their_way(tmp_path, key):
    made, state = rows(), tmp_path / "state.json"
    served = []
    more = ("--key", key) if key else ()
    for k, (a, b) in enumerate([(0, 11), (11, 12), (12, 40), (40, 60)]):
        file, out = write(tmp_path / f"{k}.csv", made[a:b]), tmp_path / f"{k}.out.csv"
        call = ("debias", file, *COLUMNS, *more, "--state", state, "-o", out)
        ok(here(*call, "--delay", 5, "--quiet"))
        served += column(out, "adjusted")
    assert served == by_hand(made, 5, key)[0]
    assert "go on with --delay in rows" in refused(here("debias", file, *COLUMNS, *more, "--state", state))
    late = write(tmp_path / "late.csv", made)
    call = ("debias", late, *COLUMNS, *more, "--time", "day", "--state", tmp_path / "t.json")
    ok(here(*call, "--delay", "3d"))
    assert "continue with --time" in refused(here(*call, "--delay", "3"))


def test_a_span_of_time_is_a_label_time(tmp_path):
    file = write(tmp_path / "a.csv", rows())
    one, two = tmp_path / "one.csv", tmp_path / "two.csv"
    call = ("debias", file, *COLUMNS, "--by", "g", "--time", "day")
    found = ok(here(*call, "--delay", "3d", "-o", one, "--json")).json
    ok(here(*call, "--label-time", "due", "-o", two))
    assert table(one) == table(two)
    assert found["labels"] == "delay 3d"
    ok(here(*call, "--delay", "72h", "-o", two))
    assert table(one) == table(two)


def test_quantile_elo_and_the_report_take_it(tmp_path):
    file = write(tmp_path / "prices.csv", prices())
    page = tmp_path / "page.html"
    call = ("quantile", file, "--prediction", "forecast", "--label", "price", "--interval", "0.8")
    late = ok(here(*call, "--delay", 20, "--report", page, "--eta", 0.1, "--json")).json
    assert late["learned"] == 400 - 21 and LINE not in page.read_text()
    assert late["labels"] == "delay 20"
    file = write(tmp_path / "games.csv", games())
    call = ("elo", file, "--a", "home", "--b", "away", "--winner", "winner")
    assert ok(here(*call, "--delay", 20, "--json")).json["learned"] == 300 - 21
    assert LINE in ok(here(*call)).out and LINE not in ok(here(*call, "--delay", 0)).out


def test_without_a_word_labels_are_at_once_and_that_is_said(tmp_path):
    file, page = write(tmp_path / "scores.csv", scores()), tmp_path / "page.html"
    call = ("debias", file, "--prediction", "score", "--label", "outcome")
    found = ok(here(*call, "--json")).json
    assert found["labels"] == "at once"
    assert "--delay" in next(w["remedy"] for w in found["warnings"] if w["claim"] == LINE)
    said = ok(here(*call, "--report", page)).out
    assert [line for line in said.splitlines() if LINE in line and "--delay" in line]
    assert LINE in page.read_text()
    late = ok(here(*call, "--time", "day", "--label-time", "known", "--json")).json
    assert late["labels"] == "label time known"


@pytest.mark.parametrize("delay", ["-1", "soon", "3.5", "", "3 d ays", "nand", "-3d", "0d", "infd"])
def test_a_delay_that_is_none_is_refused(tmp_path, delay):
    file = write(tmp_path / "a.csv", rows())
    said = refused(here("debias", file, *COLUMNS, "--time", "day", "--delay", delay))
    assert repr(delay) in said and "give 0, 250, 90s, 15m, 36h or 7d" in said


def test_options_that_do_not_go_with_a_delay_are_refused(tmp_path):
    made = [{**row, "n": i} for i, row in enumerate(rows())]
    file, state = write(tmp_path / "a.csv", made), tmp_path / "state.json"
    call = ("debias", file, *COLUMNS, "--state", state)
    said = refused(here(*call, "--delay", "3d"))
    assert "--delay 3d" in said and "needs --time" in said
    said = refused(here(*call, "--time", "n", "--delay", "3d"))
    assert "'n' holds numbers" in said
    said = refused(here(*call, "--time", "day", "--label-time", "due", "--delay", "3"))
    assert "leave out one of the two" in said
    said = refused(here(*call, "--time", "day", "--ttl", "5d", "--delay", "3"))
    assert "leave out one of the two" in said
    assert not state.exists()


@pytest.mark.parametrize("command", [["debias"], ["quantile", "--level", "0.8"]])
def test_how_late_labels_of_series_are_is_said_in_the_rows_that_the_option_counts(tmp_path, command):
    """--delay and the cap count rows of a series, so what is said of them does too."""
    rows = [f"{k},s{k % 5},{100 + k % 7},{103 + k % 11}" for k in range(900)]
    (tmp_path / "k.csv").write_text("t,shop,f,y\n" + "\n".join(rows) + "\n")
    given = [*command, tmp_path / "k.csv", "--prediction", "f", "--label", "y", "--key", "shop"]
    page = tmp_path / "r.html"
    said = ok(here(*given, "--delay", 24, "--report", page)).out
    assert "labels up to 24 rows of their series late; 125 labels wait for a later row" in said
    assert "Note: Labels arrived up to 24 rows of their series late: steps were capped, down to" in said
    for text in (said, page.read_text()):
        late = set(re.findall(r"([\d,]+ rows(?: of their series)?) late", text))
        assert late == {"24 rows of their series"}
    told = ok(here(*given, "--delay", 24, "--json")).json["learning"]
    assert told["latest_in_series"] == 24 and told["latest"] > 24
