"""Which figures there are, and what is said of a name that is none."""

import pytest

from gradeq.errors import BadInput
from gradeq.paper import choose, experiments, listing
from gradeq.paper.experiment import CHAPTERS
from gradeq.paper.running import TEXT_FIGURES


def test_every_figure_of_the_paper_that_is_no_text_has_an_experiment() -> None:
    figures = {e.figure for e in experiments().values() if e.chapter == "paper"}
    assert figures | set(TEXT_FIGURES) == {f"Figure {k}" for k in range(1, 19)}


def test_names_tell_what_the_figures_are_about() -> None:
    names = list(experiments())
    for word in ("compas", "helpsteer", "arena", "mimic", "regret"):
        assert any(word in name for name in names)


def test_each_is_listed_in_one_line_by_its_name() -> None:
    lines = listing()
    assert [name for name, _ in lines] == [*experiments(), *("-" for _ in TEXT_FIGURES)]
    assert all("\n" not in line and 20 < len(line) < 120 for _, line in lines)


def test_each_says_what_it_shows_and_belongs_to_a_chapter() -> None:
    for experiment in experiments().values():
        assert experiment.shows and experiment.title and experiment.chapter in CHAPTERS
        if experiment.chapter == "paper" and experiment.name != "regret-absolute":
            assert experiment.corrected or experiment.figure in ("Figure 6", "Figure 9")


@pytest.mark.parametrize(("wrong", "near"), [("compas-debais", "compas-debias"), ("helpsteer", "helpsteer-debias")])
def test_an_unknown_name_is_refused_with_the_nearest_one(wrong: str, near: str) -> None:
    with pytest.raises(BadInput, match=f"no figure .*{near}"):
        choose([wrong])


@pytest.mark.parametrize("name", ["10", "fig10", "fig. 10", "figure 10", "Figure10"])
def test_the_number_of_a_figure_is_a_name_of_it(name: str) -> None:
    assert [e.name for e in choose([name])] == ["helpsteer-debias"]
    assert [e.name for e in choose([name, "helpsteer-debias"])] == ["helpsteer-debias"]


def test_a_figure_and_its_number_may_be_two_words() -> None:
    chosen = choose(["figure", "10", "spirals", "Fig.", "3"])
    assert [e.name for e in chosen] == ["helpsteer-debias", "spirals", "regret-bias"]


def test_a_figure_that_is_text_is_called_so() -> None:
    with pytest.raises(BadInput, match="Figure 8 is text"):
        choose(["8"])
    with pytest.raises(BadInput, match="no figure '19'"):
        choose(["19"])


def test_no_names_mean_all_and_a_name_twice_runs_once() -> None:
    assert [e.name for e in choose()] == list(experiments())
    assert [e.name for e in choose(["spirals", "spirals"])] == ["spirals"]
