"""A state goes on with the columns it was made with, and an option that takes one value is given once."""

import pytest

from cli.calling import gradeq, ok


@pytest.fixture
def weeks(tmp_path):
    """Two weeks of two series, each named in two ways."""
    for week in (1, 2):
        rows = [f"{week},{k % 2},s{k % 3},{k},{k + 1},{k + 2}" for k in range(12)]
        (tmp_path / f"{week}.csv").write_text("week,sku,store,p,q,y\n" + "\n".join(rows) + "\n")
    return tmp_path


def run(folder, week, *options):
    return gradeq("debias", f"{week}.csv", "--label", "y", "--state", "s.json", "--json", *options, cwd=folder)


@pytest.mark.parametrize(
    "other",
    [
        ["--prediction", "p", "--key", "store", "--time", "week"],
        ["--prediction", "q", "--key", "sku", "--time", "week"],
        ["--prediction", "p", "--key", "sku"],
    ],
)
def test_a_state_refuses_other_columns_and_is_as_it_was(weeks, other):
    ok(run(weeks, 1, "--prediction", "p", "--key", "sku", "--time", "week"))
    before = (weeks / "s.json").read_bytes()
    refused = run(weeks, 2, *other)
    assert refused.code == 2 and refused.err.count("\n") == 1
    assert (weeks / "s.json").read_bytes() == before
    ok(run(weeks, 2, "--prediction", "p", "--key", "sku", "--time", "week"))


@pytest.mark.parametrize("option", ["--key", "--prediction", "--label", "--time", "--eta"])
def test_an_option_that_takes_one_value_is_given_once(weeks, option):
    value = {"--key": "sku", "--eta": "0.1", "--time": "week"}.get(option, "p")
    given = ["--prediction", "p", option, value, option, value]
    refused = run(weeks, 1, *given)
    assert refused.code == 2 and "given twice" in refused.err
    assert not (weeks / "s.json").exists()
