"""Verdicts: the thresholds, the words on both sides of them, and the loss beside every bias."""

import dataclasses
import math
import re

import pytest

from gradeq.report import notices, sentences
from gradeq.report.components import loss_figure
from gradeq.report.numerals import number
from gradeq.report.story import (
    BeforeAfter,
    Certificate,
    CoverageFigures,
    EloStory,
    LossFigures,
    Method,
    Notice,
    Provenance,
    Verdict,
    Worst,
)
from report import samples
from report.inventions import interval, made_up


@pytest.mark.parametrize("huge", [math.nan, math.inf])
def test_a_loss_too_large_for_a_number_is_called_that(huge):
    def said(before, after):
        return sentences.text(sentences.loss_sentence(LossFigures("loss", before, after), "bias was removed"))

    assert said(huge, huge) == "Loss is too large for a number, so nothing is said of its change."
    assert said(1.0, huge).startswith("Loss rose from 1.00 to more than a number can hold")
    assert said(huge, 1.0) == "Loss fell from more than a number can hold to 1.00."
    assert notices.loss_worse(LossFigures("loss", huge, huge)) is None
    assert notices.loss_worse(LossFigures("loss", 1.0, huge)).claim == "Loss got worse."
    for before, after in ((huge, huge), (1.0, huge), (huge, 1.0)):
        assert "too large for a number" in str(loss_figure(LossFigures("loss", before, after)))


@pytest.mark.parametrize(
    ("before", "after", "first"),
    [
        (-0.113, -0.009, "Bias removed."),
        (-0.1, 0.01, "Bias removed."),
        (-0.1, 0.0101, "Bias reduced."),
        (-0.550, -0.277, "Bias reduced."),
        (0.1, 0.0799, "Bias reduced."),
        (0.1, 0.0801, "Little changed."),
        (0.1, -0.1, "Little changed."),
        (0.1, 0.1001, "Bias grew."),
        (0.0, 0.1, "Bias grew."),
        (0.0, 0.0, "No bias to remove."),
    ],
)
def test_the_first_words_say_what_share_of_the_bias_is_left(before, after, first):
    assert sentences.bias_opening(before, after) == first


@pytest.mark.parametrize(
    ("before", "after", "unit", "sentence"),
    [
        (-0.1129, -0.0091, "", "On average the score was 0.113 too low; what was served is "
         "0.009 too low."),
        (-0.1129, 0.0001, "", "On average the score was 0.113 too low; what was served is "
         "0.000 off."),
        (-14.73, 0.052, "minutes", "On average the score was 14.73 minutes too low; what was "
         "served is 0.05 minutes too high."),
    ],
)  # fmt: skip
def test_a_bias_is_too_low_or_too_high_and_never_a_bare_sign(before, after, unit, sentence):
    verdict = Verdict(LossFigures("loss", 1.0, 1.0), Certificate(0.0, None, 0.0), BeforeAfter(before, after))
    said = sentences.text(sentences.verdict_sentence(verdict, 100, "the score", unit))
    assert sentence in said
    assert "−" not in said


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        (0.2509, 0.2091, "Squared error fell from 0.251 to 0.209."),
        (0.2297, 0.2304, "Squared error hardly changed: 0.2297 before, 0.2304 after."),
        (0.2000, 0.20099, "Squared error hardly changed: 0.200 before, 0.201 after."),
        (0.2000, 0.2011, "Squared error rose from 0.200 to 0.201: bias was removed at the cost of accuracy."),
        (0.0, 0.0, "Squared error did not change: 0.000."),
        (0.0, 0.5, "Squared error rose from 0.000 to 0.500: bias was removed at the cost of accuracy."),
    ],
)
def test_a_loss_fell_did_not_change_or_rose_at_a_price(before, after, sentence):
    gained = sentences.gain(BeforeAfter(1.0, 0.01))
    assert sentences.text(sentences.loss_sentence(LossFigures("squared error", before, after), gained)) == sentence


@pytest.mark.parametrize(("before", "after"), [(0.1, 0.09), (0.1, -0.2), (0.0, 0.1)])
def test_a_loss_that_rose_for_nothing_gained_names_no_gain(before, after):
    said = sentences.text(
        sentences.loss_sentence(LossFigures("squared error", 1, 2), sentences.gain(BeforeAfter(before, after)))
    )
    assert said == "Squared error rose from 1.00 to 2.00."


def test_an_interval_says_its_coverage_its_labels_and_its_target():
    said = sentences.text(sentences.coverage_sentence([CoverageFigures("interval", 0.9, 0.791, 0.9001)], 45_264))
    assert said == ("The interval covers 90.0 % of 45,264 labels; target 90 %. Before, it covered 79.1 %.")


def test_one_level_is_named_by_its_target():
    said = sentences.text(sentences.coverage_sentence([CoverageFigures("0.975", 0.975, 0.9, 0.97)], 100))
    assert said.startswith("The 97.5 % quantile covers 97.0 % of 100 labels; target 97.5 %.")


def test_several_levels_are_judged_by_the_one_farthest_off():
    levels = [CoverageFigures("0.1", 0.1, 0.3, 0.11), CoverageFigures("0.9", 0.9, 0.8, 0.86)]
    said = sentences.text(sentences.coverage_sentence(levels, 1000))
    assert said == ("Both levels cover their share of 1,000 labels within 4.0 points; before, within 20.0 points.")


def test_fewer_than_thirty_labels_are_not_judged():
    story = made_up(300)
    assert sentences.text(sentences.headline(dataclasses.replace(story, labelled=12))) == (
        "Too few labels to judge (12)."
    )
    assert "On average" in sentences.text(sentences.headline(dataclasses.replace(story, labelled=30)))


@pytest.mark.parametrize("story", [made_up(300), interval(2000)], ids=["debias", "quantile"])
def test_every_verdict_gives_the_loss_before_and_after(story):
    said = sentences.text(sentences.headline(story))
    loss = story.verdict.loss
    assert number(loss.before, 2) in said
    assert number(loss.after, 2) in said


def test_a_verdict_cannot_be_made_without_a_loss():
    with pytest.raises(TypeError, match="loss"):
        Verdict(certificate=Certificate(0.0, None, 0.0), bias=BeforeAfter(0.1, 0.0))  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("levels", "sentence"),
    [
        ([], ""),
        (["note"], ""),
        (["amber"], "One thing below qualifies this result."),
        (["red", "amber", "amber", "note"], "Three things below qualify this result."),
    ],
)
def test_the_second_line_counts_the_warnings_that_qualify(levels, sentence):
    notices = tuple(Notice(level, "", "") for level in levels)
    story = dataclasses.replace(made_up(300), notices=notices)
    assert sentences.text(sentences.qualification(story)).endswith(sentence)
    assert ("qualif" in sentences.text(sentences.qualification(story))) == bool(sentence)


@pytest.mark.parametrize("left", [0.02063, -0.12415, 1e-7, 0.5, 0.99999, 0.0])
def test_groups_end_within_no_less_than_the_worst_of_them(left):
    story = made_up(300, 4)
    worst = Worst("a", 3.1, "b", left)
    for told in (story, interval(2000)):
        verdict = dataclasses.replace(told.verdict, worst=worst)
        said = sentences.text(sentences.qualification(dataclasses.replace(told, verdict=verdict)))
        unit = 100.0 if told.kind == "quantile" else 1.0
        assert float(re.search(r"within ([\d.,]+)", said)[1]) >= unit * abs(left)


def test_two_groups_are_both_and_more_are_counted():
    assert sentences.text(sentences.qualification(made_up(300, 2))).startswith("Both groups end within ")
    assert sentences.text(sentences.qualification(made_up(300, 3))).startswith("All 3 groups end within ")


@pytest.mark.parametrize("off", [0.0002, 0.0123, 0.00051])
def test_levels_cover_their_share_within_no_less_than_the_farthest(off):
    levels = [CoverageFigures(f"0.{k}", k / 10, k / 10 + 2 * off, k / 10 - off) for k in (1, 5, 9)]
    said = sentences.text(sentences.coverage_sentence(levels, 1000))
    after, before = (float(x) for x in re.findall(r"within ([\d.]+) points", said))
    assert after >= 100 * off * (1 - 1e-9)
    assert before >= 200 * off * (1 - 1e-9)


def test_forecasts_differ_by_at_most_what_is_said():
    assert "at most 5.13 points" in sentences.forecasts_matched(0.051201, 2)


def test_the_raw_prediction_is_named_only_when_its_column_is_a_noun():
    assert sentences.subject(("score",)) == "the score"
    assert sentences.subject(("y_hat_v2",)) == "the prediction"
    assert sentences.subject(("lo", "hi")) == "the prediction"


def player(name, rank, bias, games=100):
    return samples.player(rank, name, 1000.0, games, 0.5, bias, 0.2)


def elo(rows, after=0.67):
    return EloStory(
        made=Provenance("f.csv", "", at=0.0, version="0", versions=""), a="a", b="b", games=1000, players=len(rows),
        loss=LossFigures("log loss", 0.6931, after), certificate=Certificate(0.0, None, 0.0),
        rows=tuple(rows), k=4.0, eta=0.023, noun="model",
        method=Method("elo"), lines=("x leads.", "All games count."),
    )  # fmt: skip


def test_an_elo_page_says_first_who_is_first_then_which_games_count_and_names_the_coin_flip():
    rows = [player("x", 1, 0.01), player("y", 1, -0.0512), player("z", None, 0.4, games=29)]
    assert sentences.text(sentences.elo_headline(elo(rows))) == "x leads."
    assert sentences.text(sentences.elo_qualification(elo(rows))) == (
        "All games count. Log loss of the forecasts is 0.670; a coin flip has 0.693."
    )
    assert "no better than a coin flip" in sentences.text(sentences.elo_qualification(elo(rows, 0.7)))
    assert sentences.forecasts_matched(0.0512, 2).endswith("by at most 5.12 points (exact).")
