"""What a step can cost is said against the predictions as they came: the cost of clipping them is in the cap."""

import re

import numpy as np
import pytest

import gradeq as gq
from gradeq.cli.task import log_loss

CLIPS = [1e-6, 1e-4, 0.01, 0.1, 0.25, 0.4]


def streams(rng, n, soft):
    """Perfect models, wrong ones, blocks of one label after the other, and models that are right by half."""
    for turn in range(6):
        sure = [0.0, 1e-9, 1e-6, 1e-3, 0.05, 0.3][turn]
        y = np.repeat(rng.random(n // 50) < 0.5, 50) if turn % 2 else rng.random(n) < 0.5
        y = y.astype(float)
        p = np.where(y == 1.0, 1.0 - sure, sure)
        if turn == 4:
            p = 1.0 - p
        if soft:
            y = np.clip(y + rng.uniform(-0.3, 0.3, n), 0.0, 1.0)
        yield p, y


@pytest.mark.parametrize("clip", CLIPS)
@pytest.mark.parametrize("soft", [False, True])
def test_the_printed_cap_holds_for_the_printed_losses(clip, soft):
    rng = np.random.default_rng(7)
    for eta in (0.03, 0.5, 2.0):
        for p, y in streams(rng, 2000, soft):
            layer = gq.Debiaser(eta, outcome="binary", clip=clip)
            served = layer.run(p, y).served
            before, after = log_loss(p, y).mean(), log_loss(served, y).mean()
            cap = layer.harm_cap()
            slack = 1e-12
            if soft:
                most = cap.added if cap.factor is None else cap.soft
                assert after <= before + most + slack
            else:
                assert after <= before * cap.factor + cap.added + slack
                percent, plus = re.search(r"at most (\S+) % plus ([^,]+),", cap.sentence).groups()
                assert after <= before * (1.0 + float(percent) / 100.0) + float(plus) + slack


def test_a_perfect_model_that_is_clipped_pays_no_more_than_the_cap_says():
    y = np.arange(2000) % 2.0
    layer = gq.Debiaser("plain", outcome="binary", clip=0.1)
    served = layer.run(y, y).served
    cap = layer.harm_cap()
    assert log_loss(served, y).mean() > 0.1  # clipping alone costs that much
    assert log_loss(served, y).mean() <= cap.factor * log_loss(y, y).mean() + cap.added
    assert "clipping to [0.1, 1 - 0.1]" in cap.sentence


def test_a_clip_below_that_of_the_judge_has_a_cap_against_what_is_shown():
    cap = gq.Debiaser("plain", outcome="binary", clip=1e-12).harm_cap()
    assert cap.factor > 2.0 and cap.soft is None
