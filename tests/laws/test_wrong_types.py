"""Arguments of a wrong type are refused in one line of the library, and leave a layer as it was."""

import inspect

import numpy as np
import pytest

import gradeq as gq
from gradeq.errors import GradeqError
from gradeq.inputs.arguments import as_shown
from laws.bad_values import VALUES
from laws.kinds import KINDS

LOOKS = 6  # values for each argument of each verb of each layer
# Those that can say what they are; a number of 5,000 digits cannot.
SHOWN = [value for value in VALUES if as_shown(value)[0] != "<" or callable(value)]

VERBS = [
    "open", "predict", "predict_many", "update", "update_many", "play", "run", "post", "repost", "replay",
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
    return rows | {"count": 2, "key": list("kkl")} if verb in ("run", "sweep", "predict_many") else {}


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
            if kind.bare and name in ("y", "labels"):
                continue  # an error of the user's own takes what it takes
            some = rng.choice(len(SHOWN), LOOKS, replace=False)
            for k in some:
                yield name, method, fine | dict.fromkeys(missing, 0.5) | {name: SHOWN[k]}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", KINDS)
def test_wrong_arguments_are_refused_in_one_line_or_taken(name):
    kind, rng = KINDS[name], np.random.default_rng(2)
    layer, faults = kind.make(), set()
    for _ in range(3):
        layer.post(layer.open(*kind.args(rng), **kind.where(rng)), kind.label(rng))
    before = layer.to_json()
    for name, method, given in calls(kind, layer, rng):
        wrong = f"{method.__name__}({name}={as_shown(given[name])})"
        try:
            method(**given)
        except GradeqError as refusal:
            if "\n" in str(refusal) or not str(refusal):
                faults.add(f"{wrong}: {refusal}")
            if layer.to_json() != before:
                faults.add(f"{wrong}: refused, but the state has changed")
        except Exception as error:
            faults.add(f"{wrong}: {type(error).__name__}: {error}")
        before = layer.to_json()
    assert not faults, "\n".join(sorted(faults))


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
