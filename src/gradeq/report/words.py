"""The sentences of a verdict: numbers in, text out, for the terminal and for the page.

A sentence is a tuple of :class:`Run`; ``text`` joins it. Sentences say what happened in the data's
units, with both numbers, "too low" or "too high" instead of a sign, and no adjectives.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from gradeq.report.numerals import (
    count,
    decimals,
    limit,
    number,
    percent,
    some,
    target,
    word,
)
from gradeq.report.story import Coverage, EloStory, Loss, Pair, Story

FEW = 30
"""Fewer labels than this are too few to judge."""

REMOVED, REDUCED = 0.1, 0.8
"""Bias is removed (reduced) when at most this share of it is left."""

NOTABLE = 0.01
"""Limits that change a coverage by more than this are told of in the verdict."""

SAME_LOSS = 0.005
"""A loss within this share of the one before did not change."""

ROUNDING = 1e-9
"""Errors closer to each other than this, relative to their size, are the same."""

NO_RESULTS = "No results yet: nothing to judge."

SHADOW, SHADOWED = "In shadow, raw values are served. ", ", in shadow"
"""That a verdict, or a figure, is about what would have been served."""

_WOULD = {  # of what the layer did: what it would have done, had it not been in shadow
    "Bias removed.": "Bias would be removed.",
    "Bias reduced.": "Bias would be reduced.",
    "Bias grew.": "Bias would grow.",
    "Little changed.": "Little would change.",
    "bias was removed": "bias would be removed",
    "bias was reduced": "bias would be reduced",
    "coverage improved": "coverage would improve",
    "did not change": "would not change",
    "hardly changed": "would hardly change",
    "fell": "would fall",
    "rose": "would rise",
}

_NOUNS = ("estimate", "forecast", "prediction", "price", "probability", "risk", "score")


class Run(NamedTuple):
    """A stretch of a sentence and what it stands for, so that the page can colour it."""

    text: str
    role: Literal["", "before", "after", "strong"] = ""


Sentence = tuple[Run, ...]


def text(sentence: Iterable[Run]) -> str:
    """Join a sentence's runs to plain text."""
    return "".join(run.text for run in sentence)


def subject(prediction: Sequence[str]) -> str:
    """Name the raw prediction: "the score" for a column called score, else "the prediction"."""
    name = prediction[0] if len(prediction) == 1 else ""
    return f"the {name}" if name in _NOUNS else "the prediction"


def side(value: float, places: int, unit: str = "") -> str:
    """Say on which side a bias lies: 0.113 too low, 2.1 minutes too high, 0.000 off.

    >>> side(-0.1129, 3), side(2.1, 1, "minutes")
    ('0.113 too low', '2.1 minutes too high')
    """
    size = number(abs(value), places)
    rounds_to_zero = not size.strip("0.,")
    direction = "off" if rounds_to_zero else "too low" if value < 0 else "too high"
    return " ".join(part for part in (size, unit, direction) if part)


def turn(before: float, after: float, scale: float = 0.0) -> Literal["better", "same", "worse"]:
    """Whether an error came nearer to zero, stayed, or went away; ``scale``: of single errors, whose sums round.

    >>> turn(-0.1, 0.05), turn(-0.0679, -0.0679 - 3e-16), turn(0.0, 1e-16, 0.5), turn(0.1, -0.2)
    ('better', 'same', 'same', 'worse')
    """
    was, now = abs(before), abs(after)
    if abs(now - was) <= ROUNDING * max(was, now, scale):
        return "same"
    return "better" if now < was else "worse"


def opening(before: float, after: float, scale: float = 0.0) -> str:
    """First words on a bias: what share of it is left; ``scale`` as for ``turn``.

    >>> opening(-0.113, -0.009), opening(-0.1, 0.04), opening(0.1, -0.2)
    ('Bias removed.', 'Bias reduced.', 'Bias grew.')
    """
    if turn(0.0, before, scale) == turn(0.0, after, scale) == "same":
        return "No bias to remove."
    if abs(after) <= REMOVED * abs(before):
        return "Bias removed."
    if abs(after) <= REDUCED * abs(before):
        return "Bias reduced."
    return "Bias grew." if turn(before, after, scale) == "worse" else "Little changed."


def nothing_learned(labels: int) -> str:
    """First words where no label was learned from."""
    those = "the one label" if labels == 1 else f"the {count(labels)} labels"
    return f"Nothing was learned from {those}, so nothing was corrected."


def bias_sentence(
    bias: Pair,
    who: str = "the prediction",
    unit: str = "",
    first: str | None = None,
    shadow: bool = False,
) -> Sentence:
    """Bias before and after, in words; ``first``: other words to begin with."""
    places = decimals(bias.before, bias.after)
    first = _done(opening(bias.before, bias.after), shadow) if first is None else first
    return (
        Run(f"{first} On average {who} was "),
        Run(side(bias.before, places, unit), "before"),
        Run("; what would be served is " if shadow else "; what was served is "),
        Run(side(bias.after, places, unit), "after"),
        Run("."),
    )


def typical(loss: Loss) -> float:
    """The size of single errors, of a loss that is their mean square; that of rounding where there are none."""
    known = loss.negligible if math.isfinite(loss.negligible) else 0.0
    return math.sqrt(max(loss.before, 0.0)) + math.sqrt(known) / ROUNDING


def loss_change(loss: Loss) -> Literal["fell", "same", "rose", "unknown"]:
    """Whether a loss fell, did not change (within 0.5 %, or by what is negligible), or rose.

    A loss that is not finite is too large for a number: unknown where both are, else it fell or rose.
    """
    before, after = loss.before, loss.after
    if not math.isfinite(before):
        return "fell" if math.isfinite(after) else "unknown"
    if not math.isfinite(after):
        return "rose"
    if abs(after - before) <= max(SAME_LOSS * abs(before), loss.negligible):
        return "same"
    return "fell" if after < before else "rose"


def loss_sentence(loss: Loss, gained: str = "", shadow: bool = False) -> Sentence:
    """Loss before and after, in words; a rise says what was ``gained`` for it, if anything was."""
    places = decimals(loss.before, loss.after)
    name = loss.name[:1].upper() + loss.name[1:]
    before = Run(_amount(loss.before, places), "before")
    after = Run(_amount(loss.after, places), "after")
    change = loss_change(loss)
    if change == "unknown":
        return (Run(f"{name} is too large for a number, so nothing is said of its change."),)
    if change == "same":
        if before.text == after.text:
            return (Run(f"{name} {_done('did not change', shadow)}: "), after, Run("."))
        hardly = f"{name} {_done('hardly changed', shadow)}: "
        return (Run(hardly), before, Run(" before, "), after, Run(" after."))
    gained = _done(gained, shadow)
    cost = f": {gained} at the cost of accuracy" if change == "rose" and gained else ""
    tail = Run(f"{cost}.")
    return (Run(f"{name} {_done(change, shadow)} from "), before, Run(" to "), after, tail)


def _amount(loss: float, places: int) -> str:
    return number(loss, places) if math.isfinite(loss) else "more than a number can hold"


def gain(bias: Pair | None, coverage: Sequence[Coverage] = ()) -> str:
    """What a run gained, to be set against a loss that rose; empty where it gained nothing."""
    if bias is not None:
        first = opening(bias.before, bias.after)
        return f"bias was {first[5:-1]}" if first in ("Bias removed.", "Bias reduced.") else ""
    told = as_used(coverage) or coverage
    off = [[abs(getattr(c, side) - c.target) for c in told] for side in ("before", "after")]
    nearer = bool(coverage) and turn(max(off[0]), max(off[1]), 1.0) == "better"
    return "coverage improved" if nearer else ""


def improved(story: Story) -> bool:
    """Whether the verdict deserves a tick: bias or coverage clearly nearer to its aim, no worse loss."""
    verdict = story.verdict
    if story.labelled < FEW or loss_change(verdict.loss) in ("rose", "unknown"):
        return False
    return bool(gain(verdict.bias, verdict.coverage))


def limits_changed(coverage: Sequence[Coverage]) -> bool:
    """Whether limits changed any coverage of what was served."""
    return any(c.held is not None and c.held.after != c.after for c in coverage)


def as_used(coverage: Sequence[Coverage]) -> list[Coverage]:
    """Coverage of the values inside their limits, those in use; empty where it is nearly the one judged."""
    held = [
        Coverage(c.name, c.target, c.held.before, c.held.after) if c.held is not None else c
        for c in coverage
    ]
    apart = (
        abs(getattr(one, when) - getattr(other, when))
        for one, other in zip(held, coverage, strict=True)
        for when in ("before", "after")
    )
    return held if max(apart, default=0.0) > NOTABLE else []


def coverage_sentence(coverage: Sequence[Coverage], labels: int, shadow: bool = False) -> Sentence:
    """Share of labels covered against the target; for several levels, the one farthest off.

    It is that of the values as served, and where limits change it, what is judged before them stands beside.
    """
    used = as_used(coverage)
    told = used or coverage
    served, raw = ("As served, ", ", held inside the same limits,") if used else ("", "")
    would = "would " if shadow else ""
    if len(told) > 1:
        said = (
            Run(
                _begun(
                    f"{served}{_all(len(told))} levels {would}cover their share of {count(labels)} labels "
                )
            ),
            Run("within "),
            Run(f"{_off(told, 'after')} points", "after"),
            Run(f"; before{raw or ','} within "),
            Run(f"{_off(told, 'before')} points", "before"),
            Run("."),
        )
        judged = f"within {_off(coverage, 'after')} points"
        differs = judged != f"within {_off(told, 'after')} points"
    else:
        level = told[0]
        places = 2 if percent(level.before) == percent(level.after) != "100.0 %" else 1
        who = "the interval" if level.name == "interval" else f"the {target(level.target)} quantile"
        said = (
            Run(_begun(f"{served}{who} {would}cover{'' if shadow else 's'} ")),
            Run(percent(level.after, places), "after"),
            Run(f" of {count(labels)} labels; target {target(level.target)}. "),
            Run(f"Before{raw or ','} it covered "),
            Run(percent(level.before, places), "before"),
            Run("."),
        )
        judged = percent(coverage[0].after)
        differs = abs(coverage[0].after - level.after) > NOTABLE
    if not used or not differs:
        return said
    return (*said, Run(f" Judged before the limits: {judged}."))


def too_few(labels: int) -> str:
    """Refuse to judge: Too few labels to judge (12)."""
    if not labels:
        return "No labels yet: nothing to judge."
    return f"Too few labels to judge ({count(labels)})."


def not_counted(paused: int, taken_back: int, immature: int = 0, held_back: int = 0) -> str:
    """What became of labels that came and are in no average: while learning was frozen, taken back since, or waiting.

    ``immature``: their rows are not mature; ``held_back``: their delay seems to depend on their value.
    """
    told = []
    if immature:
        told.append(
            f"{some(immature, 'label')} of rows that are not mature {'waits' if immature == 1 else 'wait'}, "
            "not in these averages"
        )
    if held_back:
        told.append(
            f"{some(held_back, 'label')} {'is' if held_back == 1 else 'are'} held back, not in these averages, which "
            "may not stand for all rows"
        )
    if paused:
        heard = "heard, not learned from, not in these averages"
        told.append(f"{some(paused, 'label')} came while learning was paused: {heard}")
    if taken_back:
        were = "was" if taken_back == 1 else "were"
        told.append(f"{some(taken_back, 'label')} {were} taken back, not in these averages")
    return "; ".join(told)


def headline(story: Story) -> Sentence:
    """The verdict of a debias or quantile run: bias or coverage, then the loss."""
    if story.labelled < FEW:
        return (Run(too_few(story.labelled)),)
    told, who = story.verdict, subject(story.prediction)
    return verdict_sentence(
        told.loss, told.bias, told.coverage, story.labelled, who, story.unit, told.nothing, told.shadow
    )  # fmt: skip


def verdict_sentence(
    loss: Loss,
    bias: Pair | None,
    coverage: Sequence[Coverage],
    labels: int,
    who: str,
    unit: str = "",
    nothing: bool = False,
    shadow: bool = False,
) -> Sentence:
    """Bias or coverage, then the loss, over so many labels.

    ``nothing``: none of them was learned from; ``shadow``: all of it is what would have been.
    """
    opens: tuple[Run, ...] = (Run(SHADOW),) if shadow else ()
    if bias is not None:
        first = _done(opening(bias.before, bias.after, typical(loss)), shadow)
        first = nothing_learned(labels) if nothing else first
        said = bias_sentence(bias, who, unit, first, shadow)
    else:
        opens = (*opens, Run(f"{nothing_learned(labels)} ")) if nothing else opens
        said = coverage_sentence(coverage, labels, shadow)
    gained = "" if nothing else gain(bias, coverage)
    return (*opens, *said, Run(" "), *loss_sentence(loss, gained, shadow))


def qualification(story: Story) -> Sentence:
    """Second line: how far the worst group is off, and how many warnings qualify the result."""
    runs: list[Run] = []
    worst = story.verdict.worst
    groups = max(story.groups_total, len(story.groups))
    if worst is not None and groups > 1:
        if story.verdict.bias is None:
            distance, middle = f"{_points(worst.after)} points", "the target"
            middle += f" at level {story.levels[0].name}" if story.levels else ""
        else:
            places = decimals(worst.before, worst.after)
            distance = " ".join(filter(None, (limit(abs(worst.after), places), story.unit)))
            middle = "zero"
        runs += [
            Run(_begun(f"{_all(groups)} groups end within ")),
            Run(distance, "strong"),
            Run(f" of {middle}. "),
        ]
    serious = sum(notice.level != "note" for notice in story.notices)
    if serious:
        things = "thing below qualifies" if serious == 1 else "things below qualify"
        runs.append(Run(f"{word(serious)} {things} this result."))
    return tuple(runs)


def elo_headline(story: EloStory) -> Sentence:
    """The first line of an Elo page: who is first, and how sure that is."""
    if not story.lines:
        return (Run(f"Too few games to judge ({count(story.games)})."),)
    return (Run(story.lines[0], "strong"),)


def forecasts_matched(worst: float, judged: int, noun: str = "player") -> str:
    """What is exact about the forecasts."""
    who = f"the {noun}" if judged == 1 else f"each of {count(judged)} {noun}s"
    return (
        f"Each forecast was made before its game: over all games of {who} with {FEW} games or more "
        f"the mean forecast differs from the win rate by at most {limit(100.0 * worst, 2)} points "
        "(exact)."
    )


def elo_qualification(story: EloStory) -> Sentence:
    """Second line of an Elo page: which games count, and the loss."""
    told = tuple(Run(f"{line} ") for line in story.lines[1:])
    if story.loss is None:
        return (*told, Run(NO_RESULTS))
    places = decimals(story.loss.before, story.loss.after)
    better = story.loss.after < story.loss.before
    return (
        *told,
        Run("Log loss of the forecasts is "),
        Run(number(story.loss.after, places), "after"),
        Run("; a coin flip has " if better else ", no better than a coin flip\u2019s "),
        Run(number(story.loss.before, places), "before"),
        Run("."),
    )


def _off(coverage: Sequence[Coverage], when: str) -> str:
    """How far the level that is farthest off is from its share, in points."""
    return _points(max((getattr(c, when) - c.target for c in coverage), key=abs))


def _all(n: int) -> str:
    """All of so many things."""
    return "both" if n == 2 else f"all {count(n)}"


def _done(words: str, shadow: bool) -> str:
    """What the layer did, or in shadow what it would have done."""
    return _WOULD.get(words, words) if shadow else words


def _begun(words: str) -> str:
    return words[:1].upper() + words[1:]


def _points(fraction: float) -> str:
    """So many points and no more."""
    return limit(abs(100.0 * fraction), 1)
