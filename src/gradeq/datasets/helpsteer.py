"""HelpSteer2 rewards: people's ratings of answers, and a reward model's guess at them."""

from __future__ import annotations

import json
from typing import NamedTuple

from gradeq.datasets.catalog import Dataset, File
from gradeq.datasets.columns import Columns, Floats
from gradeq.datasets.locate import Folder, find

_RATINGS = ("helpfulness", "correctness", "coherence", "complexity", "verbosity")


def _without_text(data: bytes) -> bytes:
    """The ratings and the score of each answer; prompts and answers stay out."""
    lines = [",".join((*_RATINGS, "rm_reward"))]
    for record in json.loads(data, parse_float=str):
        reward = record.get("rm_reward", record.get("rm_rewards"))
        lines.append(",".join([*(str(record[name]) for name in _RATINGS), str(reward)]))
    return ("\n".join(lines) + "\n").encode("utf-8")


DATASET = Dataset(
    name="helpsteer",
    title="HelpSteer2 validation ratings with reward-model scores",
    source="https://huggingface.co/datasets/nvidia/HelpSteer2 and "
    "https://github.com/aangelopoulos/gradient-equilibrium",
    licence="CC-BY-4.0",
    files=(
        File(
            "helpsteer2_rewards.csv",
            ("f5f5a9eaf5b859a05cee4b5c45b52b3bd27e78c634b3f5db1d4838c2c8996672",),
            "https://raw.githubusercontent.com/aangelopoulos/gradient-equilibrium/main/"
            "helpsteer/rewards.json",
            _without_text,
        ),
    ),
    columns=(*_RATINGS, "rm_reward"),
    about="1,038 answers in file order, ratings from 0 to 4. Fig. 10 of the paper.",
)


class HelpSteer(NamedTuple):
    """Columns of equal length; the paper predicts helpfulness by reward."""

    reward: Floats
    helpfulness: Floats
    correctness: Floats
    coherence: Floats
    complexity: Floats
    verbosity: Floats


def load(folder: Folder = None) -> HelpSteer:
    """All answers in file order."""
    (path,) = find(DATASET, folder)
    columns = Columns(path, DATASET.columns)
    return HelpSteer(columns.numbers("rm_reward"), *(columns.numbers(name) for name in _RATINGS))
