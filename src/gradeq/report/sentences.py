"""The sentences of a verdict: numbers in, text out, for the terminal and for the page.

A sentence is a tuple of plain text and of figures that the page colours; ``text`` joins it. Sentences say what
happened with both numbers, "too low" or "too high" instead of a sign, and no adjectives.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from gradeq.report.numerals import count, decimals, limit, number, percent, target, word
from gradeq.report.story import BeforeAfter, CoverageFigures, EloStory, LossFigures, Notice, Story, Verdict
from gradeq.tables import agreeing, some

FEW = 30  # labels: fewer are too few to judge
REMOVED, REDUCED = 0.1, 0.8  # bias counts as removed (reduced) when at most this share of it remains
NOTABLE = 0.01  # the verdict mentions limits that change a coverage by more than this
SAME_LOSS = 0.005  # a loss within this share of the one before did not change
ROUNDING = 1e-9  # errors that differ by less than this, relative to their size, count as equal
HUGE = "more than a number can hold"
NO_RESULTS = "No results yet: nothing to judge."
STOP = "Do not rely on this run: a warning below says to stop."  # opens the verdict when a warning says so
SHADOW, SHADOWED = "In shadow, raw values are served. ", ", in shadow"  # nothing was served, only computed

_WOULD = {  # wording in shadow mode, where nothing was served
    "Bias removed.": "Bias would be removed.",
    "Bias reduced.": "Bias would be reduced.",
    "Bias grew.": "Bias would grow.",
    "Little changed.": "Little would change.",
    "bias was removed": "bias would be removed",
    "bias was reduced": "bias would be reduced",
    "coverage improved": "coverage would improve",
    "did not change": "would not change",
    "hardly changed": "would hardly change",
    "changed by rounding alone": "would change by rounding alone",
    "fell": "would fall",
    "rose": "would rise",
}

_NOUNS = ("estimate", "forecast", "prediction", "price", "probability", "risk", "score")


class TextRun(NamedTuple):
    """A figure of a sentence and its role, which the page shows as a colour."""

    text: str
    role: Literal["before", "after", "strong"]


Sentence = tuple[str | TextRun, ...]


def text(sentence: Sentence) -> str:
    return "".join(part if isinstance(part, str) else part.text for part in sentence)


def subject(prediction: Sequence[str]) -> str:
    """Name the raw prediction: "the score" for a column named score, otherwise "the prediction"."""
    name = prediction[0] if len(prediction) == 1 else ""
    return f"the {name}" if name in _NOUNS else "the prediction"


def bias_side(value: float, places: int, unit: str = "") -> str:
    """The size and side of a bias: 0.113 too low, 2.1 minutes too high, 0.000 off.

    >>> bias_side(-0.1129, 3), bias_side(2.1, 1, "minutes")
    ('0.113 too low', '2.1 minutes too high')
    """
    size = number(abs(value), places)
    direction = "off" if not size.strip("0.,") else "too low" if value < 0 else "too high"
    return " ".join(part for part in (size, unit, direction) if part)


def error_change(before: float, after: float, scale: float = 0.0) -> Literal["better", "same", "worse"]:
    """Whether an error moved towards zero, stayed, or moved away. ``scale``: the size of single errors (rounding).

    >>> error_change(-0.1, 0.05), error_change(0.0, 1e-16, 0.5), error_change(0.1, -0.2)
    ('better', 'same', 'worse')
    """
    was, now = abs(before), abs(after)
    if abs(now - was) <= ROUNDING * max(was, now, scale):
        return "same"
    return "better" if now < was else "worse"


def bias_opening(before: float, after: float, scale: float = 0.0) -> str:
    """The opening words about a bias, by the share that remains. ``scale`` as for ``error_change``.

    >>> bias_opening(-0.113, -0.009), bias_opening(-0.1, 0.04), bias_opening(0.1, -0.2)
    ('Bias removed.', 'Bias reduced.', 'Bias grew.')
    """
    if error_change(0.0, before, scale) == error_change(0.0, after, scale) == "same":
        return "No bias to remove." if before == after == 0.0 else "No bias to remove beyond rounding."
    if abs(after) <= REMOVED * abs(before):
        return "Bias removed."
    if abs(after) <= REDUCED * abs(before):
        return "Bias reduced."
    return "Bias grew." if error_change(before, after, scale) == "worse" else "Little changed."


def typical_error(loss: LossFigures) -> float:
    """The typical size of a single error, from the mean squared error."""
    if loss.rounding:
        return math.inf
    known = loss.negligible if math.isfinite(loss.negligible) else 0.0
    return math.sqrt(max(loss.before, 0.0)) + math.sqrt(known) / ROUNDING


def loss_change(loss: LossFigures) -> Literal["fell", "same", "rounding", "rose", "unknown"]:
    """Whether a loss fell, stayed the same (within 0.5 %), changed by rounding alone, or rose.

    An overflowing loss counts as larger than any other. If both overflow, the change is unknown.
    """
    before, after = loss.before, loss.after
    same = abs(after - before) <= SAME_LOSS * abs(before)
    if loss.rounding:
        return "same" if same else "rounding"
    if not math.isfinite(before):
        return "fell" if math.isfinite(after) else "unknown"
    if not math.isfinite(after):
        return "rose"
    if same or abs(after - before) <= loss.negligible:
        return "same" if same else "rounding"
    return "fell" if after < before else "rose"


def loss_sentence(loss: LossFigures, gained: str = "", shadow: bool = False) -> Sentence:
    """Loss before and after, in words. If it rose, also what was ``gained`` in return."""
    places, change, name = decimals(loss.before, loss.after), loss_change(loss), loss.name.capitalize()
    amounts = [number(x, places) if math.isfinite(x) else HUGE for x in (loss.before, loss.after)]
    before, after = TextRun(amounts[0], "before"), TextRun(amounts[1], "after")
    if change == "unknown":
        return (f"{name} is too large for a number, so nothing is said of its change.",)
    stayed = change in ("same", "rounding")
    verb = {"same": "hardly changed", "rounding": "changed by rounding alone"}.get(change, change)
    verb = "did not change" if stayed and before.text == after.text else verb
    if shadow:
        verb, gained = _WOULD[verb], _WOULD.get(gained, gained)
    if stayed and before.text == after.text:
        return f"{name} {verb}: ", after, "."
    if stayed:
        return f"{name} {verb}: ", before, " before, ", after, " after."
    cost = f": {gained} at the cost of accuracy" if change == "rose" and gained else ""
    return f"{name} {verb} from ", before, " to ", after, f"{cost}."


def gain(bias: BeforeAfter | None, coverage: Sequence[CoverageFigures] = (), scale: float = 0.0) -> str:
    """What a run gained in return for a higher loss; may be empty. ``scale`` as for ``error_change``."""
    if bias is not None:
        first = bias_opening(bias.before, bias.after, scale)
        return f"bias was {first[5:-1]}" if first in ("Bias removed.", "Bias reduced.") else ""
    shares = coverage_inside_limits(coverage) or coverage
    nearer = shares and error_change(farthest(shares, "before"), farthest(shares, "after"), 1.0) == "better"
    return "coverage improved" if nearer else ""


def improved(story: Story) -> bool:
    """Whether the verdict gets a tick: bias or coverage clearly improved, and the loss did not rise."""
    verdict, stop = story.verdict, any(notice.level == "red" for notice in story.notices)
    if story.labelled < FEW or stop or loss_change(verdict.loss) in ("rose", "unknown"):
        return False
    return bool(gain(verdict.bias, verdict.coverage, typical_error(verdict.loss)))


def ordered(notices: Iterable[Notice | None]) -> tuple[Notice, ...]:
    """The warnings sorted red, amber, note; the sort is stable, None is left out."""
    there = (notice for notice in notices if notice is not None)
    return tuple(sorted(there, key=lambda notice: ("red", "amber", "note").index(notice.level)))


def limits_changed(coverage: Sequence[CoverageFigures]) -> bool:
    return any(c.held is not None and c.held.after != c.after for c in coverage)


def coverage_inside_limits(coverage: Sequence[CoverageFigures]) -> list[CoverageFigures]:
    """Coverage of the clipped values; empty where clipping hardly changes it."""
    clipped, apart = [], 0.0
    for c in coverage:
        now = c if c.held is None else replace(c, before=c.held.before, after=c.held.after, held=None)
        clipped.append(now)
        apart = max(apart, abs(now.before - c.before), abs(now.after - c.after))
    return clipped if apart > NOTABLE else []


def farthest(coverage: Sequence[CoverageFigures], when: Literal["before", "after"]) -> float:
    """Coverage less target of the level that is farthest off."""
    return max(((c.before if when == "before" else c.after) - c.target for c in coverage), key=abs)


def coverage_sentence(
    coverage: Sequence[CoverageFigures], labels: int, shadow: bool = False, weighted: bool = False
) -> Sentence:
    """Share of labels covered against the target; with several levels, the largest deviation.

    The figure is for the values as served. Where limits change it, the figure before the limits is added.
    """
    used = coverage_inside_limits(coverage)
    shares = used or coverage
    served, raw = ("as served, ", ", held inside the same limits,") if used else ("", ",")
    would, labelled = "would " if shadow else "", f"{some(labels, 'label')}{' by weight' if weighted else ''}"
    sentence: Sentence
    if len(shares) > 1:
        every = "both" if len(shares) == 2 else f"all {count(len(shares))}"
        first = f"{served}{every} levels {would}cover their share of {labelled} within ".capitalize()
        off = (farthest(shares, "after"), farthest(shares, "before"), farthest(coverage, "after"))
        after, before, judged = (f"{_points(distance)} points" for distance in off)
        sentence = (first, TextRun(after, "after"), f"; before{raw} within ", TextRun(before, "before"), ".")
        judged, differs = f"within {judged}", judged != after
    else:
        level = shares[0]
        places = 2 if percent(level.before) == percent(level.after) != "100.0 %" else 1
        who = "the interval" if level.name == "interval" else f"the {target(level.target)} quantile"
        middle = f" of {labelled}; target {target(level.target)}. Before{raw} it covered "
        after, before = (percent(value, places) for value in (level.after, level.before))
        first = f"{served}{who} {would}cover{'' if shadow else 's'} ".capitalize()
        sentence = (first, TextRun(after, "after"), middle, TextRun(before, "before"), ".")
        judged, differs = percent(coverage[0].after), abs(coverage[0].after - level.after) > NOTABLE
    return (*sentence, f" Judged before the limits: {judged}.") if used and differs else sentence


def too_few(labels: int) -> str:
    return f"Too few labels to judge ({count(labels)})." if labels else "No labels yet: nothing to judge."


def not_counted(paused: int, taken_back: int, immature: int = 0, held_back: int = 0) -> str:
    """Labels that arrived but are in no average: learning was paused, they were withdrawn, or they still wait.

    ``immature``: their rows are too young. ``held_back``: their delay seems to depend on their value.
    """
    beside = "not in these averages"
    wait, are = agreeing(immature, "waits", "wait"), agreeing(held_back, "is", "are")
    were = agreeing(taken_back, "was", "were")
    parts = [
        (immature, f"of rows that are not mature {wait}, {beside}"),
        (held_back, f"{are} held back, {beside}, which may not stand for all rows"),
        (paused, f"came while learning was paused: not learned from, {beside}"),
        (taken_back, f"{were} taken back, {beside}"),
    ]
    return "; ".join(f"{some(labels, 'label')} {what}" for labels, what in parts if labels)


def headline(story: Story) -> Sentence:
    if story.labelled < FEW:
        return (too_few(story.labelled),)
    who, stop = subject(story.prediction), any(notice.level == "red" for notice in story.notices)
    return verdict_sentence(story.verdict, story.labelled, who, story.unit, bool(story.weight), stop)


def verdict_sentence(
    verdict: Verdict, labels: int, who: str, unit: str = "", weighted: bool = False, stop: bool = False
) -> Sentence:
    """Bias or coverage, then the loss. ``weighted``: averages are; ``stop``: a warning says not to use the values."""
    loss, bias, coverage, shadow = verdict.loss, verdict.bias, verdict.coverage, verdict.shadow
    opens: Sentence = (SHADOW,) if shadow else ()
    instead = STOP if stop else ""
    if verdict.nothing:
        those = "the one label" if labels == 1 else f"the {count(labels)} labels"
        instead = f"Nothing was learned from {those}, so nothing was corrected."
    if bias is not None:
        first = bias_opening(bias.before, bias.after, typical_error(loss))
        first = instead or (_WOULD.get(first, first) if shadow else first)
        places = decimals(bias.before, bias.after)
        before, after = (bias_side(value, places, unit) for value in (bias.before, bias.after))
        middle = f"; what {'would be' if shadow else 'was'} served is "
        figures: Sentence = (
            f"{first} On average {who} was ", TextRun(before, "before"), middle, TextRun(after, "after"), "."
        )  # fmt: skip
        if not loss.before and not loss.after and (bias.before or bias.after):
            return (*opens, *figures, f" {loss.name.capitalize()} is too small for a number.")
    else:
        opens = (*opens, f"{instead} ") if instead else opens
        figures = coverage_sentence(coverage, labels, shadow, weighted)
    gained = "" if instead else gain(bias, coverage, typical_error(loss))
    return (*opens, *figures, " ", *loss_sentence(loss, gained, shadow))


def qualification(story: Story) -> Sentence:
    """Second line: how far the worst group is off, and how many warnings qualify the result."""
    parts: Sentence = ()
    worst = story.verdict.worst
    groups = max(story.groups_total, len(story.groups))
    if worst is not None and groups > 1:
        if story.verdict.bias is None:
            distance, middle = f"{_points(worst.after)} points", "the target"
            middle += f" at level {story.levels[0].name}" if story.levels else ""
        else:
            places, middle = decimals(worst.before, worst.after), "zero"
            distance = " ".join(filter(None, (limit(abs(worst.after), places), story.unit)))
        every = "Both" if groups == 2 else f"All {count(groups)}"
        parts = (f"{every} groups end within ", TextRun(distance, "strong"), f" of {middle}. ")
    serious = sum(notice.level != "note" for notice in story.notices)
    things = agreeing(serious, "thing below qualifies", "things below qualify")
    return (*parts, f"{word(serious)} {things} this result.") if serious else parts


def elo_headline(story: EloStory) -> Sentence:
    if not story.lines:
        return (f"Too few games to judge ({count(story.games)}).",)
    return (TextRun(story.lines[0], "strong"),)


def forecasts_matched(worst: float, judged: int, noun: str = "player") -> str:
    who = f"the {noun}" if judged == 1 else f"each of {count(judged)} {noun}s"
    return (
        f"Each forecast was made before its game: over all games of {who} with {FEW} games or more "
        f"the mean forecast differs from the win rate by at most {limit(100.0 * worst, 2)} points "
        "(exact)."
    )


def elo_qualification(story: EloStory) -> Sentence:
    """Second line of an Elo page: which games count, and the loss."""
    lines = tuple(f"{line} " for line in story.lines[1:])
    if story.loss is None:
        return (*lines, NO_RESULTS)
    before, after = story.loss.before, story.loss.after
    was, now = (number(value, decimals(before, after)) for value in (before, after))
    middle = "; a coin flip has " if after < before else ", no better than a coin flip\u2019s "
    return *lines, "Log loss of the forecasts is ", TextRun(now, "after"), middle, TextRun(was, "before"), "."


def _points(fraction: float) -> str:
    return limit(abs(100.0 * fraction), 1)
