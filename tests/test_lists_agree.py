"""Lists of one thing in several places agree: links, leaderboard, requests, warnings, files in the root."""

import ast
import re
import subprocess
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import get_args

import pytest

from every_part import LINKS
from fuzz.table import AXES
from golden import layers as golden
from gradeq.cli.debias import command as debias
from gradeq.cli.elo_job import LEADERBOARD
from gradeq.cli.elo_summary import player_json, player_table
from gradeq.cli.options import in_option_words
from gradeq.cli.quantile import command as quantile
from gradeq.cli.run_story import THETA_SCALES
from gradeq.errors import BadInput
from gradeq.layers.debiaser import DEFAULT_ETA, TASKS, LinkName, link_of
from gradeq.layers.options import TABLE
from gradeq.layers.quantile import LinkName as QuantileLink
from gradeq.leaderboard.ranks import Board, Standing
from gradeq.report.method import SERVED, method_section
from gradeq.report.page import leaderboard
from gradeq.report.story import Player
from gradeq.service.schemas import Prediction, payload_hash
from gradeq.theory.setting import TASKS as PROVEN
from layers import test_combinations as combinations
from report.inventions import made_up
from report.samples import player

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "gradeq"
DEBIAS, QUANTILE = get_args(LinkName), get_args(QuantileLink)
EVERY = (*DEBIAS, *QUANTILE)


def choices(command, name):
    return set(next(option.type.choices for option in command.params if name in option.opts))


# Links


def test_each_link_of_debias_has_a_task_a_class_and_a_twin_inside_limits():
    assert set(TASKS) == set(DEBIAS) and set(TASKS.values()) <= set(PROVEN)
    classes = {type(link) for link in LINKS}
    for link in DEBIAS:
        outcome = next(name for name in DEFAULT_ETA if link in served_by(name))
        free, held = link_of(outcome, link, 1e-6), link_of(outcome, link, 1e-6, (0.25, 0.75))
        assert type(free) in classes
        assert held != free or refused("debias", "support", link)


def served_by(outcome):
    """The links of an outcome, as the refusal of another one lists them."""
    with pytest.raises(BadInput, match="use one of") as refusal:
        link_of(outcome, "none", 1e-6)
    return set(str(refusal.value).rpartition("use one of ")[2].split(", "))


def refused(kind, option, link):
    return any(entry.options == {option, f"link {link}"} for entry in TABLE[kind])


def test_each_link_is_a_choice_of_its_command():
    assert choices(debias, "--link") == set(DEBIAS)
    assert choices(quantile, "--link") == set(QUANTILE)


@pytest.mark.parametrize("link", EVERY)
def test_each_link_is_named_as_an_option_in_messages_of_a_command(link):
    assert in_option_words(f"x does not go with link {link}") == f"x does not go with --link {link}"


def test_each_link_has_words_on_the_page():
    assert set(THETA_SCALES) == set(SERVED) == set(EVERY)
    assert all(THETA_SCALES.values())


@pytest.mark.parametrize("link", EVERY)
def test_each_link_has_a_formula_on_the_page(link):
    story = made_up(rows=60)
    shown = str(method_section(replace(story, method=replace(story.method, link=link))))
    letter, how = SERVED[link]
    assert f"Each row is served <i>{letter}</i>{how.removesuffix(' k')}" in shown
    assert f"<msub><mi>{letter}</mi><mi>t</mi></msub>" in shown


def test_each_link_is_a_setting_of_the_service():
    text = (ROOT / "docs" / "service.md").read_text(encoding="utf-8")
    row = next(line for line in text.splitlines() if line.startswith("| `link` |"))
    assert set(re.findall(r'`"(\w+)"`', row)) == set(EVERY)


def test_each_link_is_in_the_combinations_of_the_tests():
    assert {name.removeprefix("link ") for name in combinations.DEBIAS_LINKS} == set(DEBIAS)
    assert {name.removeprefix("link ") for name in combinations.QUANTILE_LINKS} == set(QUANTILE)
    assert (set(golden.DEBIAS_LINKS), set(golden.QUANTILE_LINKS)) == (set(DEBIAS), set(QUANTILE))
    assert set(AXES["debias"]["link"]) == set(DEBIAS)
    for kind in ("quantile", "quantiles", "interval", "ensemble"):
        assert set(AXES[kind]["link"]) == set(QUANTILE)


@pytest.mark.parametrize("adapter", ["sklearn.py", "river.py"])
def test_each_link_is_accepted_by_the_adapters(adapter):
    text = (SOURCE / "adapters" / adapter).read_text(encoding="utf-8")
    listed = re.findall(r"link: Literal\[([^]]*)\]", text)
    assert {word.strip(' "') for words in listed for word in words.split(",")} == set(EVERY)


# Columns of the leaderboard

# Fields that a view leaves out on purpose.
LEFT_OUT = {
    "csv": ("vacuous",),
    "terminal": ("wins", "bias", "bound", "rating", "elo_all_time", "elo_now", "tracked", "vacuous"),
    "page": ("wins", "bound", "rating", "elo_all_time", "elo_now", "tracked", "vacuous"),
    "story": ("wins", "rating", "elo_all_time", "elo_now", "tracked"),
    "json": (
        "rank_low", "rank_high", "elo_low", "elo_high", "wins", "predicted_win_rate", "rating", "elo_all_time",
        "elo_now", "tracked",
    ),
    "notebook": ("wins", "bias", "bound", "rating", "elo_all_time", "elo_now", "tracked", "vacuous"),
}  # fmt: skip


class Noted:
    """A row that notes which of its fields are read."""

    def __init__(self, row):
        self._row, self.read = row, set()

    def __getattr__(self, name):
        self.read.add(name)
        return getattr(self._row, name)


ROW = Standing(
    rank=1, rank_low=1, rank_high=2, player="ann", elo=1010.0, elo_low=990.0, elo_high=1030.0, games=40, wins=22.0,
    win_rate=0.55, predicted_win_rate=0.56, bias=0.01, bound=0.2, rating=0.05, elo_all_time=1009.0, elo_now=1011.0,
    tracked=-0.1, vacuous=False,
)  # fmt: skip


def fields_shown(view):
    noted = Noted(ROW)
    if view == "csv":
        return set(LEADERBOARD)
    if view == "story":
        return {field.name for field in fields(Player)}
    if view == "terminal":
        player_table([noted], "")
    if view == "notebook":
        Board([noted], ("", ""), None, None, None, None, None, [])._repr_html_()
    if view == "json":
        book, losses = SimpleNamespace(find=lambda name: None), SimpleNamespace()
        player_json(SimpleNamespace(totals=SimpleNamespace(book=book, losses=losses)), noted)
    if view == "page":
        noted = Noted(player(1, "ann", 1010.0, 40, 0.55, 0.01, 0.2))
        leaderboard(SimpleNamespace(rows=[noted], noun="player"), 9)
    return noted.read


@pytest.mark.parametrize("view", LEFT_OUT)
def test_each_field_of_the_leaderboard_is_shown_or_left_out_by_name(view):
    shown, left = fields_shown(view), LEFT_OUT[view]
    assert shown | set(left) == set(Standing._fields)
    assert not shown & set(left)


# Requests

# Another value of each field than the plain one; a field in NOT_COMPARED may differ when an id is sent again.
SENT = {
    "prediction": 0.25, "groups": {"g": "a"}, "features": {"x": 1.0}, "key": "k", "weight": 2.0, "a": "ann",
    "b": "bob", "home": 0.0,
}  # fmt: skip
NOT_COMPARED = ("id",)


def test_each_field_of_a_request_is_compared_when_its_id_is_sent_again():
    assert {*SENT, *NOT_COMPARED} == set(Prediction.__struct_fields__)
    plain = Prediction(id=7, prediction=0.5)
    for name, value in SENT.items():
        other = Prediction(**{"id": 7, "prediction": 0.5, name: value})
        assert payload_hash(other) != payload_hash(plain)


def test_a_request_that_was_stored_by_an_earlier_version_is_still_the_same():
    assert payload_hash(Prediction(prediction=0.5)).hex() == "4ddd91810b73f1cba5d184965a95d10b"


# Warnings


def calls_in(path):
    """The names of the functions that a file calls."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    called = [node.func for node in nodes if isinstance(node, ast.Call)]
    return {getattr(function, "id", None) or getattr(function, "attr", "") for function in called}


@pytest.mark.parametrize("module", ["notices.py", "game_notices.py"])
def test_each_warning_is_given_somewhere(module):
    path = SOURCE / "report" / module
    made = [
        node.name
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.returns and ast.unparse(node.returns).startswith("Notice")
    ]
    assert made
    called = set().union(*(calls_in(file) for file in SOURCE.rglob("*.py")))
    assert [name for name in made if name not in called] == []


# The root

IN_THE_ROOT = {
    ".gitignore", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md",
    "constraints.txt", "hatch_build.py", "mkdocs.yml", "pyproject.toml",
}  # fmt: skip


def test_the_root_holds_no_file_that_is_not_listed_here():
    try:
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("git is not installed")
    if listed.returncode:
        pytest.skip("not a checkout")
    assert {name for name in listed.stdout.split("\0") if name and "/" not in name} == IN_THE_ROOT
