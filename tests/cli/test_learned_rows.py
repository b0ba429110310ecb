"""Every figure is that of the rows it names: all are computed again from what was written and when labels came."""

import random
import re
from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple

import pytest

from cli.calling import column, here, ok, write
from relative import relative

COUNT = r"[\d,]+"
FIGURE = r"-?[\d,]*\.?\d+(?:e-?\d+)?"


class Came(NamedTuple):
    """A file, the options that say when its labels come, and before which row each does (None: after the last)."""

    rows: list[dict[str, Any]]
    options: tuple[str, ...]
    before: list[int | None]


def came(how: str, seed: int, n: int) -> Came:
    """Rows in the order of their days; about a tenth without a label, a few of weight 0."""
    rng = random.Random(seed)
    rows, day = [], 0
    for _ in range(n):
        day += rng.choice([0, 0, 1, 3])
        f = rng.uniform(0.1, 0.9)
        y = "" if rng.random() < 0.1 else int(rng.random() < 0.5 * f + 0.4)
        known = day + rng.choice([1, 2, rng.randrange(1, 2 * n)])
        rows.append({"f": f, "y": y, "day": day, "known": known if rng.random() < 0.9 else "",
                     "w": rng.choice([0, 1, 2.5]), "g": rng.choice("ab"), "h": rng.choice("xyz")})  # fmt: skip
    days = [row["day"] for row in rows]
    delay = rng.choice([1, 7, n // 2, n - 2, n, 5 * n])
    if how == "rows":
        due = [i + delay + 1 for i in range(n)]
        return Came(rows, ("--delay", str(delay)), [k if k < n else None for k in due])
    if how == "days":
        options, due = ("--time", "day", "--delay", f"{delay}d"), [d + delay for d in days]
        for row in rows:  # a span of time needs dates
            row["day"] = date.fromordinal(700_000 + row["day"]).isoformat()
    else:
        options = ("--time", "day", "--label-time", "known")
        due = [10**9 if row["known"] == "" else row["known"] for row in rows]
    first = [next((k for k, d in enumerate(days) if d >= when), None) for when in due]
    return Came(rows, options, first)


def mean(values: list[float], weights: list[float]) -> float:
    return sum(v * w for v, w in zip(values, weights, strict=True)) / sum(weights)


def printed(text: str, value: float) -> bool:
    """Whether a figure in print is this value, rounded."""
    shown = Decimal(text.replace(",", ""))
    unit = float(Decimal(1).scaleb(int(shown.as_tuple().exponent)))
    return abs(float(shown) - value) <= 0.5 * unit * (1.0 + 1e-6) + 1e-12


class Again:
    """The figures of some rows, computed from the file, what was served, and the weights of all rows."""

    def __init__(self, rows: list[dict[str, Any]], served: list[float], places: list[int], given: list[float]):
        self.places = places
        self.weights = [given[i] for i in places]
        self.raw = [rows[i]["f"] - rows[i]["y"] for i in places]
        self.now = [served[i] - rows[i]["y"] for i in places]

    def bias(self) -> dict[str, Any]:
        return pytest.approx(
            {"before": mean(self.raw, self.weights), "after": mean(self.now, self.weights)}, abs=1e-9
        )

    def loss(self) -> dict[str, Any]:
        each = {
            when: mean([v * v for v in own], self.weights)
            for when, own in (("before", self.raw), ("after", self.now))
        }
        return {"name": "squared error"} | {k: pytest.approx(v, abs=1e-9) for k, v in each.items()}


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("how", ["rows", "days", "times"])
def test_every_figure_is_that_of_the_rows_it_names(tmp_path, how, seed):
    n, rng = 200, random.Random(seed)
    made = came(how, seed, n)
    rows, weighted, binary = made.rows, rng.random() < 0.4, rng.random() < 0.5
    by = rng.choice([(), ("g",), ("g", "h")])
    file, out, page = write(tmp_path / "a.csv", rows), tmp_path / "out.csv", tmp_path / "page.html"
    call = ["debias", file, "--prediction", "f", "--label", "y", *made.options, "-o", out]
    call += ["--eta", rng.choice(["auto", "plain", "0.05"]), *(["--outcome", "binary"] if binary else [])]
    call += [*(["--weight", "w"] if weighted else []), *(x for b in by for x in ("--by", b))]
    found = ok(here(*call, "--json")).json
    served = column(out, "adjusted")

    labelled = [i for i in range(n) if rows[i]["y"] != ""]
    counted = [i for i in labelled if not weighted or rows[i]["w"]]
    posted = [i for i in counted if made.before[i] is not None]
    never = {i for i in counted if how == "times" and rows[i]["known"] == ""}
    waiting = [i for i in counted if made.before[i] is None and i not in never]
    given = [row["w"] if weighted else 1.0 for row in rows]  # in the order of serving
    whole, learned = (Again(rows, served, counted, given), Again(rows, served, posted, relative(given)))
    assert (found["rows"], found["labelled"], found["learned"]) == (n, len(labelled), len(posted))
    assert found["bias"] == whole.bias() and found["loss"] == whole.loss()
    assert found["not_due"] == found["learning"]["not_due"] == len(waiting)
    assert found["learning"]["learned"] == len(posted) == found["certificate"]["rows"]
    assert found["learning"]["unlabelled"] == pytest.approx(1.0 - (len(posted) + len(waiting)) / n)
    late = [made.before[i] - i - 1 for i in posted]
    assert found["learning"]["latest"] == max(late, default=0)
    assert found["learning"]["late"] == pytest.approx(sum(late) / max(1, len(late)))
    over = found["learned_from"]
    assert over["rows"] == len(posted)
    if posted:
        assert over["bias"] == learned.bias() and over["loss"] == learned.loss()
    else:
        assert over["bias"] == {"before": None, "after": None} and found["learning"]["memory"] is None
    for name, value in found["certificate"]["average_gradient"].items():
        column_, _, group = name.partition("=")
        own = [v * w for i, v, w in zip(posted, learned.now, learned.weights, strict=True)
               if not by or rows[i][column_] == group]  # fmt: skip
        assert value == pytest.approx(sum(own) / max(sum(learned.weights), 1e-300), abs=1e-9)
    for line in found["groups"]:
        column_, _, group = line["name"].partition("=")
        own, heard = ([i for i in places if rows[i][column_] == group] for places in (counted, posted))
        assert (line["learned"], line["bias"]) == (len(heard), Again(rows, served, own, given).bias())

    said = ok(here(*call, "--report", page)).out
    figures, words = said.split("\n\n")[:2]
    shown = re.match(rf"bias ({FIGURE}) -> ({FIGURE}) over ({COUNT}) labelled of {n} rows", figures)
    assert shown and int(shown[3]) == len(labelled)
    assert all(printed(shown[k + 1], found["bias"][when]) for k, when in enumerate(("before", "after")))
    apart = len({learned.weights[k] for k, _ in enumerate(posted)}) > 1
    by = ", by relative weight" if apart else ""
    told = re.search(
        rf"certificate over the ({COUNT}) labels? learned from{by}: bias ({FIGURE}) -> ({FIGURE}), "
        rf"squared error ({FIGURE}) -> ({FIGURE}), exact \(gap",
        figures,
    )
    same = len(posted) == len(counted) and not apart
    assert bool(told) == (len(posted) > 0 and not same)
    assert ("certificate exact (gap" in figures) == same
    if told:
        ends = [over[what][when] for what in ("bias", "loss") for when in ("before", "after")]
        assert int(told[1]) == len(posted) and all(map(printed, told.groups()[1:], ends))
        assert f"over the {told[1]} label" in re.sub("<[^>]+>", "", page.read_text("utf-8"))
    line = next(part for part in said.split("\n\n") if part.startswith("Learning: "))
    due = re.search(rf"({COUNT}) labels? waits? for a later row", line)
    assert (int(due[1]) if due else 0) == len(waiting)
    assert ("labels known before the next row" in line) == bool(posted and not any(late))
    assert ("no label learned from" in line) == (not posted) == words.startswith("Nothing was learned")
    assert "about 1 labels" not in line and not re.search(r"e\+\d", line)
    if not posted:
        assert "got worse" not in said and "grew" not in said
        assert "nothing to certify" in figures and "nothing to certify" in page.read_text("utf-8")


@pytest.mark.parametrize("seed", range(6))
def test_after_a_state_the_certificate_has_its_own_rows_and_figures(tmp_path, seed):
    """Two runs of one state: figures are of the second, the certificate is of all labels that came."""
    n, delay, state = 160, [0, 3, 70, 90, 130, 500][seed], tmp_path / "state.json"
    rows = came("rows", seed, n).rows
    served: list[float] = []
    for k, part in enumerate((rows[: n // 2], rows[n // 2 :])):
        file, out = write(tmp_path / f"{k}.csv", part), tmp_path / f"{k}.out.csv"
        call = ("debias", file, "--prediction", "f", "--label", "y", "--delay", delay, "--state")
        found = ok(here(*call, state, "-o", out, "--json")).json
        served += column(out, "adjusted")
    labelled = [i for i in range(n) if rows[i]["y"] != ""]
    posted = [i for i in labelled if i + delay + 1 < n or not delay]
    second = Again(rows, served, [i for i in labelled if i >= n // 2], [1.0] * n)
    assert found["bias"] == second.bias() and found["loss"] == second.loss()
    assert found["learned_from"]["rows"] == len(posted)
    assert found["not_due"] == len(labelled) - len(posted)
    if posted:
        learned = Again(rows, served, posted, [1.0] * n)
        assert found["learned_from"]["bias"] == learned.bias()
        again = write(tmp_path / "again.csv", rows[:1])
        said = ok(here("debias", again, *call[2:], state, "--again")).out
        assert re.search(rf"certificate over the {COUNT} labels learned from since the state", said) or not delay


@pytest.mark.parametrize("delay", [0, 40, 150, 400])
def test_the_coverage_learned_from_is_that_of_the_labels_that_came(tmp_path, delay):
    n = 300
    rows = came("rows", 9, n).rows
    for row in rows:
        row["y"] = "" if row["y"] == "" else row["f"] + row["y"] - 0.5 * row["w"]
    file, out = write(tmp_path / "a.csv", rows), tmp_path / "out.csv"
    call = ("quantile", file, "--prediction", "f", "--label", "y", "--level", "0.8", "--delay", delay)
    found = ok(here(*call, "-o", out, "--json")).json
    served = column(out, "adjusted")
    labelled = [i for i in range(n) if rows[i]["y"] != ""]
    posted = [i for i in labelled if i + delay + 1 < n or not delay]
    for told, places in ((found["coverage"], labelled), (found["learned_from"]["coverage"], posted)):
        for when, values in (("before", [row["f"] for row in rows]), ("after", served)):
            share = [float(rows[i]["y"] <= values[i]) for i in places]
            wanted = pytest.approx(sum(share) / len(share)) if share else None
            assert told[when] == wanted
    said = ok(here(*call)).out
    assert ("learned from: coverage" in said) == (0 < len(posted) < len(labelled))
    assert ("Nothing was learned" in said) == (not posted)
