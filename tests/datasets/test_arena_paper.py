"""The paper's battles out of a large JSON file that is never in memory as a whole."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gradeq.datasets import arena
from gradeq.errors import BadInput

NAME = "clean_battle_20240826_public.json"


def battle(i: int, **other: Any) -> dict[str, Any]:
    record = {
        "model_a": f"m{i % 5}",
        "model_b": f"m{(i + 1) % 5}",
        "winner": "model_a" if i % 3 else "model_b",
        "tstamp": 1_723_000_000.25 + (i * 7919) % 1000,
        "anony": True,
        "dedup_tag": {"high_freq": False, "sampled": True},
        "text": 'brackets ] } and \\ " é',
    }
    return {**record, **other}


@pytest.mark.parametrize("block", [7, 1 << 20])
@pytest.mark.parametrize("indent", [None, 1])
def test_only_battles_that_count_are_kept_by_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int, indent: int | None
) -> None:
    monkeypatch.setattr(arena, "_BLOCK", block)
    good = [battle(i) for i in range(40)]
    bad = [
        battle(100, anony=False),
        battle(101, dedup_tag={"sampled": False}),
        battle(102, dedup_tag={}),
        battle(103, dedup_tag=None),
        battle(104, winner="tie"),
        battle(105, winner="tie (bothbad)"),
    ]
    (tmp_path / NAME).write_text(json.dumps(good[:20] + bad + good[20:], indent=indent))
    found = arena.load_paper(tmp_path, last=30)
    order = sorted(range(40), key=lambda i: good[i]["tstamp"])[-30:]
    assert found.a.tolist() == [good[i]["model_a"] for i in order]
    assert found.b.tolist() == [good[i]["model_b"] for i in order]
    assert found.winner.tolist() == [good[i]["winner"] for i in order]
    seconds = found.time.astype("datetime64[us]").astype(np.int64) / 1e6
    assert seconds.tolist() == [good[i]["tstamp"] for i in order]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": 1}', "not a JSON array"),
        ('[{"model_a": "x"}]', "has no 'model_b'"),
        ("[1, 2]", "is not an object"),
        (json.dumps([battle(1)])[:-10], "cut short"),
        (json.dumps([battle(1, anony=False)]), "no battle that counts"),
        ("[]", "no battle that counts"),
    ],
)
def test_another_file_is_refused_in_one_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / NAME).write_text(text)
    with pytest.raises(BadInput, match=message):
        arena.load_paper(tmp_path)


def test_without_the_file_the_line_says_where_it_is(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"is not in .*; get it from https://storage\.googleapis"):
        arena.load_paper(tmp_path)
