"""A warning names the cause that the data show, and none that they do not."""

import json

import numpy as np
import pytest

import gradeq as gq
from cli.calling import here, ok
from gradeq.cli.run_notices import OutlierWatch
from gradeq.ledger import facts as fact
from gradeq.report import notices
from gradeq.report.layer_story import story_of
from gradeq.report.numerals import plain
from gradeq.rules.rule import diverging


def write(path, **columns):
    names = list(columns)
    lines = zip(*(map(str, column) for column in columns.values()), strict=True)
    path.write_text("\n".join([",".join(names), *map(",".join, lines)]) + "\n")
    return path


def warned(*call):
    """Claim, evidence and remedy of every warning."""
    return [" ".join(w.values()) for w in ok(here(*call, "--json")).json["warnings"]]


def about(said, words):
    (one,) = [text for text in said if words in text]
    return one


WHYS = {name: cause.why for name, cause in vars(notices).items() if isinstance(cause, notices.Cause)}
ASTRAY = "out of all proportion"


def only(text, *names):
    """This text names these causes and no other."""
    assert {name for name, why in WHYS.items() if why in text} == set(names), text


@pytest.fixture
def usual():
    rng = np.random.default_rng(3)
    f = rng.normal(50.0, 5.0, 400)
    return f, f + rng.normal(1.0, 1.0, 400)


@pytest.mark.parametrize("weights", ["constant", "uniform", "lognormal"])
@pytest.mark.parametrize("command", ["quantile", "debias", "binary"])
def test_weights_far_above_one_lead_nothing_astray(tmp_path, usual, weights, command):
    rng = np.random.default_rng(1)
    f, y = usual
    w = {"constant": np.full(400, 2500.0), "uniform": rng.uniform(300, 2500, 400),
         "lognormal": np.exp(3 * rng.normal(size=400))}[weights]  # fmt: skip
    call = {"quantile": ("--level", "0.9"), "debias": (), "binary": ("--outcome", "binary")}[command]
    if command == "binary":
        f = rng.uniform(0.2, 0.8, 400)
        y = (rng.random(400) < f).astype(int)
    file = write(tmp_path / "a.csv", p=f, y=y, w=w)
    for eta in ("auto", "plain", "0.1"):
        name = "debias" if command == "binary" else command
        found = ok(
            here(name, file, "--prediction", "p", "--label", "y", "--weight", "w", "--eta", eta, *call, "--json")
        )
        loss = found.json["loss"]
        assert loss["after"] < 2.0 * loss["before"]
        said = " ".join(" ".join(one.values()) for one in found.json["warnings"])
        assert ASTRAY not in said and "wrong label" not in said


def test_a_far_label_is_blamed_on_the_label(tmp_path, usual):
    f, y = usual
    y[200] = 1e12
    file = write(tmp_path / "a.csv", p=f, y=y)
    said = warned("debias", file, "--prediction", "p", "--label", "y", "--eta", "0.1")
    only(about(said, ASTRAY), "FAR_LABEL")
    assert "lies far outside" in " ".join(said)


def test_a_far_prediction_is_blamed_on_the_prediction(tmp_path, usual):
    f, y = usual
    f[200] = 1e12
    for eta in ("auto", "0.1"):
        file = write(tmp_path / "a.csv", p=f, y=y)
        said = warned("debias", file, "--prediction", "p", "--label", "y", "--eta", eta)
        only(about(said, ASTRAY), "FAR_PREDICTION")


@pytest.mark.parametrize("far", ["label", "prediction"])
def test_a_row_of_an_earlier_run_is_still_the_cause_but_not_said_to_be_its_label(tmp_path, usual, far):
    f, y = usual
    f_first = [*f[:-1], 1e14] if far == "prediction" else f
    y_first = [*y[:-1], 1e14] if far == "label" else y
    first = write(tmp_path / "a.csv", p=f_first, y=y_first)
    second = write(tmp_path / "b.csv", p=f, y=y)
    call = ("--prediction", "p", "--label", "y", "--eta", "0.1", "--state", tmp_path / "s.json")
    ok(here("debias", first, *call))
    only(about(warned("debias", second, *call), ASTRAY), "FAR_APART")


def test_a_step_out_of_proportion_is_blamed_on_the_step(tmp_path, usual):
    f, y = usual
    file = write(tmp_path / "a.csv", p=f, y=y)
    call = ("quantile", file, "--prediction", "p", "--label", "y", "--level", "0.5", "--link", "linear")
    said = about(warned(*call, "--eta", "1e7"), ASTRAY)
    only(said)
    assert f"The step is {plain(1e7)}," in said and "smaller `--eta`" in said
    assert "lies far outside" not in said


def test_late_labels_without_a_cap_are_blamed_on_that(tmp_path, usual):
    f, y = usual
    file = write(tmp_path / "a.csv", p=f, y=y)
    call = ("debias", file, "--prediction", "p", "--label", "y", "--eta", "0.2", "--no-cap")
    said = None
    for delay in ("20", "30", "40"):
        done = here(*call, "--delay", delay, "--json")
        if done.code == 0:
            said = [" ".join(w.values()) for w in done.json["warnings"]]
            if any(ASTRAY in text for text in said):
                only(about(said, ASTRAY), "LATE_UNCAPPED")
                return
        else:
            assert "diverging" in done.err and "--no-cap" in done.err
    assert said is None or "not capped" in " ".join(said)


def test_features_that_multiply_are_blamed_on_them(usual):
    f, y = usual
    layer = gq.QuantileTracker(0.5, 0.1, features=["x"], link="linear")
    x = np.where(np.arange(400) % 2, 1e5, 1.0)
    watch = OutlierWatch(layer)
    run = layer.run(f, y, features={"x": x})
    watch.look(f[:, None], y, np.asarray(run.served)[:, None], str, False)
    (notice,) = [n for n in watch.notices() if ASTRAY in n.claim]
    assert f"Features reach {plain(1e5)}," in notice.evidence and "Scale features" in notice.remedy


def test_absolute_weights_of_an_older_state_are_blamed_on_them(usual):
    f, y = usual
    layer = gq.QuantileTracker(0.5, 0.1)
    layer.run(f[:200], y[:200])
    layer.internals.state.u[0] = 40.0
    layer.internals.state.facts[fact.HEAVIEST] = 2500.0
    assert about_watch(layer, f, y) == notices.ABSOLUTE_WEIGHTS


def test_where_nothing_explains_it_no_cause_is_named(usual):
    f, y = usual
    layer = gq.QuantileTracker(0.5, 0.1)
    layer.run(f[:200], y[:200])
    layer.internals.state.u[0] = 40.0
    assert about_watch(layer, f, y) == notices.UNKNOWN
    assert "wrong label" not in notices.UNKNOWN.why + notices.UNKNOWN.remedy


def about_watch(layer, f, y):
    """The cause that is named after more rows."""
    watch = OutlierWatch(layer)
    run = layer.run(f, y)
    watch.look(f[:, None], y, np.asarray(run.served)[:, None], str, False)
    assert any(ASTRAY in notice.claim for notice in watch.notices())
    return watch.cause()


def resized(tmp_path, *call, **columns):
    file = write(tmp_path / "r.csv", **columns)
    return about(warned(*call[:1], file, "--prediction", "p", "--label", "y", *call[1:]), "too large for the step")


def test_a_smaller_step_is_blamed_on_what_made_the_row_large(tmp_path, usual):
    f, y = usual
    heavy = np.where(np.arange(400) == 300, 1e6, 1.0)
    large = np.where(np.arange(400) == 300, 1e3, 1.0)
    by_weight = resized(tmp_path, "debias", "--eta", "0.1", "--weight", "w", p=f, y=y, w=heavy)
    assert "relative weight" in by_weight and "eature" not in by_weight
    by_feature = resized(tmp_path, "debias", "--eta", "0.1", "--feature", "x", p=f, y=y, x=large)
    assert "Scale features" in by_feature and "weight" not in by_feature
    both = ("debias", "--eta", "0.1", "--feature", "x", "--weight", "w")
    assert "Scale features" in (said := resized(tmp_path, *both, p=f, y=y, x=large, w=heavy)) and "weights" in said
    quantile = resized(tmp_path, "quantile", "--level", "0.5", "--eta", "0.1", "--weight", "w", p=f, y=y, w=heavy)
    assert "squared error" not in quantile and "relative weight" in quantile
    linear = ("quantile", "--level", "0.5", "--eta", "0.1", "--link", "linear", "--weight", "w")
    assert "ten rows" in resized(tmp_path, *linear, p=f, y=y, w=heavy)


def test_labels_that_were_not_learned_from_are_counted_under_their_own_cause(tmp_path):
    rows = range(100)
    write(tmp_path / "a.csv", p=[0.5] * 100, y=[1] * 100, t=list(rows), known=[t + 60 for t in rows])
    call = ("--prediction", "p", "--label", "y", "--time", "t")
    late = " ".join(warned("debias", tmp_path / "a.csv", *call, "--label-time", "known", "--ttl", "10"))
    assert "came later than --ttl 10 allows" in late and "have no time" not in late
    known = ["" if t % 10 else t for t in rows]
    write(tmp_path / "b.csv", p=[0.5] * 100, y=[1] * 100, t=list(rows), known=known)
    none = " ".join(warned("debias", tmp_path / "b.csv", *call, "--label-time", "known", "--ttl", "50"))
    assert "90 labels have no time in `known`" in none and "--ttl" not in none
    none = " ".join(warned("debias", tmp_path / "b.csv", *call, "--label-time", "known"))
    assert "90 labels have no time in `known`" in none


def test_weights_are_no_cause_of_divergence():
    assert "weight" not in str(diverging(0.1))
    assert json.dumps(str(diverging(0.1)))


def steps_capped(tmp_path, usual, *call, weights=None):
    """The JSON and the note about capped steps of a run with late labels."""
    f, y = usual
    columns = {"p": f, "y": y} if weights is None else {"p": f, "y": y, "w": weights}
    file = write(tmp_path / "c.csv", **columns)
    heavy = () if weights is None else ("--weight", "w")
    options = ("--prediction", "p", "--label", "y", *heavy, *call)
    found = ok(here("debias", file, *options, "--json")).json
    claims = [w for w in found["warnings"] if " capped" in w["claim"]]
    assert len(claims) == (found["capped"] is not None)
    return found["capped"], " ".join(claims[0].values()) if claims else "", options


def test_steps_that_only_weights_brought_under_the_cap_are_blamed_on_the_weights(tmp_path, usual):
    w = np.where(np.arange(400) % 50 == 49, 40.0, 1.0)  # 0.1 / 4 is above the step of 0.01
    call = ("--eta", "0.01", "--delay", "3")
    held, said, options = steps_capped(tmp_path, usual, *call, weights=w)
    assert held["rows"] == held["heavy"] == 7 and held["least"] < 0.01
    assert "steps of 7 heavy rows were capped, down to" in said and "the weights did" in said
    assert "overshoot" not in said and "less delay" not in said
    text = ok(here("debias", tmp_path / "c.csv", *options, "--state", tmp_path / "s.json")).out
    assert "for 7 heavy rows" in text.splitlines()[0] and "grows with the delay" not in text
    notices = story_of(gq.load(tmp_path / "s.json")).notices
    (told,) = [n for n in notices if " capped" in n.claim]
    assert "7 heavy rows" in told.claim and "the weights did" in told.evidence
    assert not any("grows with the delay" in n.evidence for n in notices)
    assert steps_capped(tmp_path, usual, *call)[0] is None  # without weights nothing is


def test_steps_capped_by_delay_and_weight_name_both(tmp_path, usual):
    w = np.where(np.arange(400) % 50 == 49, 40.0, 1.0)
    falling = ("--eta", "0.3", "--decay", "0.5", "--delay", "3")  # later steps are below 0.1 / 4
    held, said, _ = steps_capped(tmp_path, usual, *falling, weights=w)
    assert 0 < held["heavy"] < held["rows"]
    assert "step times relative weight" in said and f"{held['heavy']} of these labels" in said
    held, said, _ = steps_capped(tmp_path, usual, "--eta", "0.05", "--delay", "3")
    assert held["heavy"] == 0 and "weight" not in said and held["least"] == 0.1 / 4


def test_a_step_that_the_schedule_or_an_earlier_run_made_small_is_not_blamed_on_the_delay(tmp_path, usual):
    held, _, _ = steps_capped(tmp_path, usual, "--eta", "0.5", "--decay", "0.5", "--delay", "3")
    assert held["least"] == 0.1 / 4 and 0.5 * 397**-0.5 < 0.1 / 3.9  # the last steps are not capped
    state = ("--eta", "0.05", "--state", tmp_path / "s.json", "--again")
    first, _, _ = steps_capped(tmp_path, usual, *state, "--delay", "99")
    f, y = usual
    write(tmp_path / "more.csv", p=np.tile(f, 5), y=np.tile(y, 5))
    call = ("--prediction", "p", "--label", "y", *state, "--delay", "3", "--json")
    ok(here("debias", tmp_path / "more.csv", *call))
    last, _, _ = steps_capped(tmp_path, usual, *state, "--delay", "3")
    assert first["least"] == pytest.approx(0.001) and last is not None
    assert last["least"] > 0.001
