"""With the paper's own files at hand, small ones of the same schema here, the figures are the paper's."""

import json

import numpy as np
import pytest

from gradeq.datasets import arena, mimic
from gradeq.errors import BadInput
from gradeq.paper import experiments
from gradeq.paper.arena_figures import FIVE, streams
from gradeq.paper.experiment import Source
from gradeq.paper.mimic_figures import stays

BATTLES = "clean_battle_20240826_public.json"


@pytest.fixture(scope="module")
def battles(tmp_path_factory):
    folder = tmp_path_factory.mktemp("battles")
    random = np.random.default_rng(0)
    records = []
    for i in range(3000):
        a, b = random.choice(6, 2, replace=False).tolist()
        names = (*FIVE, "another")
        records.append(
            {
                "model_a": names[a],
                "model_b": names[b],
                "winner": "model_a" if random.random() < 0.4 + 0.05 * b else "model_b",
                "tstamp": 1_723_600_000.0 + 60.0 * i,
                "anony": True,
                "dedup_tag": {"high_freq": False, "sampled": True},
            }
        )
    (folder / BATTLES).write_text(json.dumps(records))
    return Source(folder)


@pytest.mark.parametrize("name", ["arena-elo", "arena-lasso", "arena-decaying", "arena-wins"])
def test_the_papers_battles_are_taken_when_they_are_there(battles, name) -> None:
    result_numbers = {n.name for n in _run(name, battles)}
    if name != "arena-wins":
        assert f"rating of {FIVE[0]}" in result_numbers
    games = streams(battles)[""]
    assert set(streams(battles)) == {""} and games.is_paper
    assert [games.players[p] for p in games.five] == list(FIVE)


def _run(name, source):
    # Only the numbers that need no agreement with the authors' own battles.
    result = experiments()[name].run(source)
    assert "the paper's file" in result.data and set(result.sheets) == {""}
    return result.numbers


def test_stays_are_taken_when_they_are_there(tmp_path, monkeypatch) -> None:
    random = np.random.default_rng(1)
    n = 1500
    made = mimic.Stays(
        prediction=random.gamma(2.0, 3.0, n),
        days=random.gamma(2.0, 3.5, n).round(),
        ethnicity=random.choice(mimic.ETHNICITIES[:3], n, p=[0.1, 0.6, 0.3]),
        marital_status=random.choice(["MARRIED", "SINGLE", "WIDOWED", "DIVORCED"], n),
        admitted=np.sort(np.datetime64("2191-02-21") + random.integers(0, 7000, n)),
    )
    (tmp_path / "admissions.csv.gz").write_bytes(b"")
    monkeypatch.setattr(mimic, "load", lambda folder: made)
    source = Source(tmp_path)
    assert source.has(mimic.DATASET) and stays(source).is_paper
    for name in ("mimic-groups", "mimic-series", "mimic-ensemble"):
        result = experiments()[name].run(source)
        assert result.data.startswith("MIMIC-IV")
    groups = experiments()["mimic-groups"].run(source)
    assert groups.number("|bias| of WHITE, η = 0.05").ours < 0.1
    assert groups.number("|bias| of WHITE, η = 0.05").authors == 0.001982


def test_damaged_files_of_the_paper_are_an_error_not_a_reason_to_take_others(tmp_path) -> None:
    (tmp_path / "admissions.csv").write_text("subject_id\n1\n")
    with pytest.raises(ValueError, match="mimic"):
        experiments()["mimic-series"].run(Source(tmp_path))
    (tmp_path / BATTLES).write_text("[1]")
    with pytest.raises(ValueError, match="record 1"):
        experiments()["arena-wins"].run(Source(tmp_path))


def test_without_a_folder_the_named_one_and_the_cache_are_searched(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("GRADEQ_DATA", raising=False)
    assert not Source().has(arena.PAPER) and Source().compas_order() is None
    monkeypatch.setenv("GRADEQ_DATA", str(tmp_path))
    (tmp_path / BATTLES).write_text("[]")
    assert Source().has(arena.PAPER)


def test_a_data_set_is_read_once_and_a_refusal_is_remembered() -> None:
    calls = []

    def loader(folder):
        calls.append(folder)
        raise BadInput("never")

    source = Source("nowhere")
    for _ in range(2):
        with pytest.raises(BadInput, match="never"):
            source.load(loader)
    assert source.once("a", lambda: [1]) is source.once("a", lambda: [2])
    assert calls == ["nowhere"]
