"""Which figures there are, and what is said of a name that is none."""

import pytest

from gradeq.errors import BadInput
from gradeq.experiments import choose, experiments, listing
from gradeq.experiments.experiment import CHAPTERS


def test_every_figure_of_the_paper_that_is_no_text_has_an_experiment() -> None:
    figures = {e.figure for e in experiments().values() if e.chapter == "paper"}
    assert figures == {f"Figure {k}" for k in range(1, 19) if k != 8}


def test_names_tell_what_the_figures_are_about() -> None:
    names = list(experiments())
    for word in ("compas", "helpsteer", "arena", "mimic", "regret"):
        assert any(word in name for name in names)


def test_each_is_listed_in_one_line_by_its_name() -> None:
    lines = listing()
    assert [name for name, _ in lines] == list(experiments())
    assert all("\n" not in line and 20 < len(line) < 120 for _, line in lines)


def test_each_says_what_it_shows_and_belongs_to_a_chapter() -> None:
    for experiment in experiments().values():
        assert experiment.shows and experiment.title and experiment.chapter in CHAPTERS
        if experiment.chapter == "paper" and experiment.name != "regret-absolute":
            assert experiment.corrected or experiment.figure in ("Figure 6", "Figure 9")


@pytest.mark.parametrize(
    ("wrong", "near"),
    [
        ("compas-debais", "compas-debias"),
        ("helpsteer", "helpsteer-debias"),
        ("figure 3", "regret-bias"),
        ("Fig. 16", "mimic-ensemble"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest_one(wrong: str, near: str) -> None:
    with pytest.raises(BadInput, match=f"no figure .*{near}"):
        choose([wrong])


def test_no_names_mean_all_and_a_name_twice_runs_once() -> None:
    assert [e.name for e in choose()] == list(experiments())
    assert [e.name for e in choose(["spirals", "spirals"])] == ["spirals"]
