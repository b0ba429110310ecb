"""Arguments of a wrong type are refused in one line of the library, and leave a layer as it was."""

import inspect

import numpy as np
import pytest

import gradeq as gq
from gradeq.errors import GradeqError
from laws.kinds import KINDS

WRONG = [
    None, True, "x", b"x", [], [1.0, 2.0, 3.0, 4.0], {}, {"a": 1}, (), object(), 1j, np.zeros(3), np.zeros((2, 2)),
    np.float64("nan"), float("inf"), -1.0, 10**400, lambda: 0, np.datetime64("NaT"), set(),
]  # fmt: skip
VERBS = [
    "open", "predict", "predict_many", "update", "update_many", "settle", "run", "post", "repost", "replay",
    "preview", "adopt", "correct", "expire", "forget", "labels_until", "since", "merge", "set_step", "shown",
    "equilibrium", "leaderboard", "board", "peek", "skip", "sweep",
]  # fmt: skip


def good(kind, verb, rng):
    """Arguments that the verb takes, by name."""
    if verb in ("open", "predict", "preview", "peek"):
        names = ("a", "b") if kind.games else ("f",)
        return dict(zip(names, kind.args(rng), strict=False)) | kind.where(rng)
    column = np.array([kind.label(rng) for _ in range(3)])
    rows = {
        "predictions": column,
        "labels": column,
        "etas": [0.1],
        "a": list("abc"),
        "b": list("bca"),
        "score": column,
    }
    if kind.binary:
        rows["predictions"] = np.full(3, 0.5)
    return (
        rows | {"count": 2, "key": list("kkl")} if verb in ("run", "sweep", "predict_many") else {}
    )


def calls(kind, layer, rng):
    """Calls of every verb, one argument of each wrong."""
    for verb in VERBS:
        method = getattr(layer, verb, None)
        if method is None:
            continue
        names = [
            name for name, p in inspect.signature(method).parameters.items()
            if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
        ]  # fmt: skip
        fine = {name: value for name, value in good(kind, verb, rng).items() if name in names}
        if "x" in names and not kind.bare and verb in ("open", "predict"):
            fine["x"] = kind.base(rng)
        missing = [
            name for name, p in inspect.signature(method).parameters.items()
            if p.default is p.empty and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and name not in fine
        ]  # fmt: skip
        for name in names:
            if kind.bare and name == "y":
                continue  # an error of the user's own takes what it takes
            for value in WRONG:
                yield method, fine | dict.fromkeys(missing, 0.5) | {name: value}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", KINDS)
def test_wrong_arguments_are_refused_in_one_line_or_taken(name):
    kind, rng = KINDS[name], np.random.default_rng(2)
    layer, faults = kind.make(), set()
    for method, given in calls(kind, layer, rng):
        try:
            method(**given)
        except GradeqError as refusal:
            if "\n" in str(refusal) or not str(refusal):
                faults.add((method.__name__, "lines", str(given)[:80]))
        except Exception as error:
            wrong = {name: type(value).__name__ for name, value in given.items()}
            faults.add((method.__name__, type(error).__name__, str(error)[:60], str(wrong)))
    assert not faults, "\n".join(map(str, sorted(faults)))


@pytest.mark.parametrize("text", [None, 1, [], {}, b"\xff", "", "x", True, object()])
def test_what_is_no_text_of_a_state_is_refused(text):
    with pytest.raises(GradeqError):
        gq.from_json(text)
    with pytest.raises(GradeqError):
        gq.RiskControl.from_json(text, lambda theta, y: 0.0)


@pytest.mark.parametrize("path", [None, 1.5, [], {}, object(), "", "no/such/file.json", "\0"])
def test_what_is_no_path_of_a_state_is_refused(path):
    with pytest.raises((GradeqError, OSError)):
        gq.load(path)
    with pytest.raises((GradeqError, OSError)):
        gq.Debiaser(0.1).save(path if path != "no/such/file.json" else "no/such/folder/file.json")
