"""Why a run did not reach its aim, and what was seen to help."""

from __future__ import annotations

import numpy as np

from gradeq.cli.outcome import Outcome
from gradeq.learning import learning_of
from gradeq.report import missed as say
from gradeq.report.notices import ENOUGH
from gradeq.report.numerals import plain, some
from gradeq.report.story import Loss, Notice, Pair

GROUPS = 1000  # series: so many can be groups of one layer


def missed(outcome: Outcome, loss: Loss) -> Notice | None:
    """The aim that this run missed clearly, with its likely cause; None where it missed none."""
    from gradeq.cli.summary import coverages

    if outcome.eta is None or not outcome.learned:
        return None  # nothing was promised, or nothing was learned: both are said elsewhere
    if outcome.task.command == "debias":
        bias = Pair(*outcome.pair("bias"))
        if not say.bias_left(bias, loss, outcome.counted):
            return None
        return say.bias_remains(bias, *likely(outcome))
    off = say.off_target(coverages(outcome), outcome.counted)
    return None if off is None else say.coverage_missed(off, *likely(outcome))


def likely(outcome: Outcome) -> tuple[str, str]:
    """The likely cause, a sentence, and the remedy."""
    task, held = outcome.task, outcome.capped
    told, labels = learning_of(outcome.layer), outcome.learned
    if outcome.series is not None:
        labels = int(np.median(outcome.series.table.rows))
    if held is not None and 2 * held.rows >= outcome.learned:
        least = plain(float(f"{held.least:.2g}"))
        came = f"Labels come up to {told.lateness} late, so" if told.lateness else "For late labels"
        why = f"{came} steps were held down to {least}"
        why += f", and {some(labels, 'label')} {'a series ' if task.key else ''}are few for such a step."
        return why, sharing(outcome) or sooner(outcome)
    if told.eta * labels < ENOUGH:
        each = " a series (the median)" if task.key else ""
        why = f"A step of {plain(float(f'{told.eta:.2g}'))} learns slowly from {some(labels, 'label')}{each}."
        return why, sharing(outcome) or sooner(outcome)
    return "", sooner(outcome)


def sharing(outcome: Outcome) -> str:
    """Series that learn alone may learn together; "" without series."""
    task = outcome.task
    ways = ["`--pool`"] if task.poolable and not getattr(outcome.layer, "pool", False) else []
    if task.key is not None and not task.by and outcome.layer._names.keys <= GROUPS:
        ways.append(f"`--by {task.key}` in place of `--key`")
    return (
        f"Try {', or '.join(ways)}: what one series teaches then helps the others." if ways else ""
    )


def sooner(outcome: Outcome) -> str:
    """A step that follows faster."""
    if outcome.eta != "auto" and outcome.layer._takes_auto:
        return "Try `--eta auto`, or a larger step."
    return "Labels that come sooner, and more of them, help." if outcome.capped else ""
