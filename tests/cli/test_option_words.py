"""What the command line refuses names options as they are typed, never the arguments of Python."""

import re

import pytest

from cli.calling import games, here, ok, prices, refused, scores, write
from gradeq.cli.options import OPTIONS, in_option_words
from gradeq.layers.options import TABLE

PYTHON = re.compile(r"\b[a-z_]+=|\b(None|True|False)\b|missing_is|late_cap|in_flight|[A-Z]\w+\(")
DEBIAS = ("debias", scores, "--prediction", "score", "--label", "outcome")
QUANTILE = ("quantile", prices, "--prediction", "forecast", "--label", "price", "--level", "0.9")
ELO = ("elo", games, "--a", "home", "--b", "away", "--winner", "winner")
BAD = [
    (DEBIAS, "--eta auto --key shop"),
    (DEBIAS, "--eta auto --link exp"),
    (DEBIAS, "--eta auto --outcome binary --link shift"),
    (DEBIAS, "--eta auto --feature x"),
    (DEBIAS, "--feature x"),
    (DEBIAS, "--eta plain --feature x"),
    (DEBIAS, "--decay 0.5 --feature x"),
    (DEBIAS, "--eta 2"),
    (DEBIAS, "--eta 1.5 --by sex --by region"),
    (DEBIAS, "--eta 1e300"),
    (DEBIAS, "--link logit"),
    (DEBIAS, "--link exp --outcome binary"),
    (DEBIAS, "--by sex --by sex"),
    (DEBIAS, "--feature x --feature x --eta 0.01"),
    (DEBIAS, "--key shop --penalty ridge --strength 0.1"),
    (DEBIAS, "--penalty ridge --strength 1e9"),
    (DEBIAS, "--missing-is 0 --maturity 0"),
    (DEBIAS, "--missing-is 0 --maturity 3 --time day --ttl 5"),
    (DEBIAS, "--missing-is 2 --maturity 3 --time day --outcome binary"),
    (DEBIAS, "--missing-is 5 --max 2 --maturity 3 --time day"),
    (DEBIAS, "--missing-is -5 --min 0 --maturity 3 --time day"),
    (DEBIAS, "--maturity 3 --ttl 3 --time day"),
    (DEBIAS, "--ttl 5d --time day"),
    (QUANTILE, "--link linear"),
    (QUANTILE, "--link linear --eta auto"),
    (QUANTILE, "--link linear --decay 0.5"),
    (QUANTILE, "--eta auto --key weekday"),
    (QUANTILE, "--level 0.5 --penalty lasso --strength 0.1"),
    (QUANTILE, "--ensemble 0.1,0.1 --ensemble-eta 0.1"),
    (ELO, "--eta 0.1 --penalty ridge --strength 20"),
    (ELO, "--eta 1e300"),
    (ELO, "--decay 0.5"),
]


@pytest.mark.parametrize(("call", "options"), BAD)
def test_a_refusal_names_options_as_typed(tmp_path, call, options):
    command, made, *columns = call
    said = refused(here(command, write(tmp_path / "rows.csv", made()), *columns, *options.split()))
    assert not PYTHON.search(said), said
    assert not re.search(r"(?<![-\w])(eta|ttl|maturity) ", said), said
    assert any(option in said for option in options.split() if option.startswith("--")), said
    assert ";" in said or re.search("[:.] ([Uu]se|[Gg]ive) ", said), said  # the remedy


ONLY_PYTHON = {"schedule", "warm", "proximal", "pool", "k"}


def test_every_combination_that_options_can_make_is_refused_in_options():
    seen = 0
    for entries in TABLE.values():
        for options, reason in entries:
            if not options & ONLY_PYTHON:
                seen += 1
                assert not PYTHON.search(in_option_words(reason)), in_option_words(reason)
                assert in_option_words(in_option_words(reason)) == in_option_words(reason)
    assert seen > 20


DIFFERENT = [
    (DEBIAS, "--by sex", "", "with --by sex, this run without --by"),
    (DEBIAS, "", "--by sex --by region", "without --by, this run with --by sex --by region"),
    (DEBIAS, "--ttl 5d --time date", "--ttl 7d --time date", "--ttl 5d, this run with --ttl 7d"),
    (DEBIAS, "--ttl 5d --time date", "--time date", "with --ttl 5d, this run without --ttl"),
    (DEBIAS, "--ttl 5 --time day", "--ttl 36 --time day", "--ttl 5, this run with --ttl 36"),
    (DEBIAS, "--ttl 5e9 --time day", "--ttl 6e9 --time day", "with --ttl 5000000000, this run"),
    (DEBIAS, "--maturity 36h --time date", "--maturity 2d --time date", "--maturity 36h, this"),
    (DEBIAS, "", "--min 0 --max 2", "without --min and --max, this run with --min 0 --max 2"),
    (DEBIAS, "--no-cap", "", "with --no-cap, this run without --no-cap"),
    (DEBIAS, "", "--outcome binary --link shift", "--outcome real, this run with --outcome binary"),
    (DEBIAS, "", "--eta plain", "with --eta auto, this run with --eta 0.01"),
    (DEBIAS, "--decay 0.5", "--decay 0.25", "--decay 0.5, this run with --eta 0.01 --decay 0.25"),
    (DEBIAS, "", "--penalty ridge --strength 0.1", "this run with --penalty ridge --strength 0.1"),
    (DEBIAS, "", "--key shop", "by gradeq debias, this run is gradeq debias with --key"),
    (QUANTILE, "--key weekday --pool", "--key weekday", "with --pool, this run without --pool"),
    (QUANTILE, "", "--level 0.5", "with one --level, this run is gradeq quantile with several"),
    (ELO, "", "--ties drop", "with --ties half, this run with --ties drop"),
    (ELO, "", "--home a", "without --home, this run with --home"),
]


@pytest.mark.parametrize(("call", "before", "now", "expected"), DIFFERENT)
def test_a_state_of_other_options_is_refused_in_options(tmp_path, call, before, now, expected):
    command, made, *columns = call
    rows = [{**row, "date": "2024-01-02"} for row in made(40)]
    file = write(tmp_path / "rows.csv", rows)
    run = (command, file, *columns, "--state", tmp_path / "s.json", "--quiet")
    ok(here(*run, *before.split()))
    said = refused(here(*run, *now.split()))
    assert expected in said and not PYTHON.search(said), said


def test_options_are_those_of_the_commands():
    help_texts = "".join(here(command, "--help").out for command in ("debias", "quantile", "elo"))
    for words in OPTIONS.values():
        for option in re.findall(r"--[a-z-]+", words):
            assert f" {option} " in help_texts or f" {option}\n" in help_texts, option
