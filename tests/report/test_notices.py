"""Warnings: a claim with its number, evidence, one thing to do."""

import re

import pytest

from gradeq.report import game_notices as games
from gradeq.report import notices as n
from gradeq.report.sentences import ordered
from gradeq.report.story import BeforeAfter, LossFigures, Notice

APRIL = 1396396800.0  # 2 April 2014
EARLIER = (BeforeAfter(-0.04, -0.001), LossFigures("squared error", 0.2297, 0.2304))
CHANGE = n.LabelChange("date", APRIL, 953, BeforeAfter(0.403, 1.0))
JUMP = n.labels_changed(CHANGE, BeforeAfter(-0.561, -0.055), "the score", True, EARLIER)


@pytest.mark.parametrize(
    ("notice", "claim"),
    [
        (JUMP, "The labels changed on 2 April 2014."),
        (n.error_from_change(CHANGE, EARLIER[1]),
         "The lower error comes from those 953 rows."),
        (n.outside_range(522, 6787, -0.05, 1.62, "shift"),
         "522 served values (7.7 %) are not probabilities."),
        (n.loss_worse(LossFigures("squared error", 0.2, 0.25)), "Squared error got worse by 25.0 %."),
        (n.steps_capped(0.0025, 12_000, "409 rows", "you asked for 0.05"),
         "Labels arrived up to 409 rows late: steps were capped, down to 0.0025, for 12,000 labels "
         "(you asked for 0.05)."),
        (n.steps_capped(0.05, 1, ""), "Steps were capped, down to 0.05, for 1 label."),
        (n.no_cap_with_late_labels(0.1, "1 row"),
         "Labels arrived up to 1 row late and steps were not capped."),
        (n.rows_too_large(3, True, False, True), "3 rows were too large for the step and got a smaller one."),
        (n.too_late(3, "7d"), "3 labels came later than --ttl 7d allows and were not learned from."),
        (n.rows_repeated("12 ids were served before"),
         "Rows that the state had seen were taken again (--again)."),
        (n.no_label(1204), "1,204 rows have no label: nothing is claimed about them."),
        (n.no_label(1), "1 row has no label: nothing is claimed about it."),
        (n.loose_bounds(4, 5), "The worst-case bound is loose for 4 of 5 groups."),
        (n.vacuous_bounds(8, 53, "model", "Why."), "There is no worst-case guarantee for 8 of 53 models."),
        (n.few_labels(12), "Too few labels to judge (12)."),
        (n.many_groups("zip", 10_000, 30_000), "10,000 groups in `zip`."),
        (games.predicted_off("m", 0.0512, 590, 5, 52, "model"), "m is predicted 5.1 points too high."),
        (games.predicted_off("m", -0.0512, 590, 1, 52, "model"), "m is predicted 5.1 points too low."),
    ],
)  # fmt: skip
def test_a_claim_says_what_happened_with_its_number(notice, claim):
    assert notice.claim == claim
    assert notice.evidence.endswith(".")


@pytest.mark.parametrize("text", [JUMP.evidence, n.steps_capped(0.01, 50, "9 rows").evidence])
def test_no_warning_uses_an_adjective_of_praise(text):
    assert not re.search("significant|robust|powerful", text)


def test_late_labels_never_bring_the_advice_of_a_smaller_step():
    for notice in (n.steps_capped(0.01, 50, "9 rows"), n.no_cap_with_late_labels(0.1, "9 rows")):
        assert "--eta" not in notice.remedy


def test_a_jump_to_one_constant_says_that_every_label_has_it():
    assert JUMP.evidence == (
        "From that day all 953 labels are 1; before it, 40.3 % were. There the score was 0.561 "
        "too low and the served value 0.055 too low. Without these rows the bias went from −0.0400 to "
        "−0.0010 and squared error from 0.22970 to 0.23040."
    )


def test_a_jump_of_real_labels_gives_their_means():
    notice = n.labels_changed(
        n.LabelChange("row", 5835, 100, BeforeAfter(10.0, 25.0)), BeforeAfter(-3.0, 0.5), "the forecast", False,
        (BeforeAfter(-1.0, 0.1), LossFigures("squared error", 4.0, 3.5)),
    )  # fmt: skip
    assert notice.claim == "The labels changed at row 5,835."
    assert "100 labels average 25.00; before it, 10.00" in notice.evidence
    assert "3.00 too low" in notice.evidence


@pytest.mark.parametrize("after", [0.19, 0.2, 0.2009])
def test_a_loss_that_did_not_rise_gives_no_warning(after):
    assert n.loss_worse(LossFigures("squared error", 0.2, after)) is None


def test_warnings_come_red_amber_note_and_keep_their_order():
    given = [Notice(level, str(i), "") for i, level in enumerate(["note", "amber", "red", "amber"])]
    assert [notice.claim for notice in ordered(given)] == ["2", "1", "3", "0"]
