"""The notices about labels that come late, later than allowed, twice, or not at all."""

from gradeq.report.markup import clean
from gradeq.report.numerals import count, plain, some
from gradeq.report.story import Notice

FORGIVEN = 0.01  # of the labels: clocks may differ


def steps_held(
    asked: float | None, least: float, labels: int, late: str, whose: str = "you asked for"
) -> Notice:
    """Labels came so ``late`` (24 rows): their steps were held down; ``whose`` the step was before."""
    before = "" if asked is None else f" ({whose} {plain(asked)})"
    came = f"Labels arrived up to {late} late: steps" if late else "Steps"
    return Notice(
        "note",
        f"{came} were capped, down to {plain(least)}, for {some(labels, 'label')}{before}.",
        "With larger steps, labels that arrive late together overshoot. Steps grow again once labels "
        "arrive with less delay.",
    )


def replaced(said: str) -> Notice:
    """Predictions without ids that were ``said`` to be replaced before their label came."""
    return Notice(
        "amber",
        f"{said}.",
        "Without ids a layer waits for one label at a time. Nothing is claimed about these rows.",
        "Give each prediction an `id`; call `layer.skip()` where no label will come, `layer.peek()` to look only.",
    )


def labels_at_once() -> Notice:
    """Nobody said when labels come, and the figures are those of labels that come before the next row."""
    return Notice(
        "note",
        "Each label was assumed known before the next prediction.",
        "If labels arrive later, expect less improvement than shown here.",
        "Use `--delay` (rows, or a duration such as 3d; many rows a date? give `--time` as well) or `--label-time` "
        "to say when they arrive.",
    )


def dated_before(early: int, labels: int, first: str) -> Notice:
    """Labels whose time lies before that of their own row; ``first``: an example."""
    are = "label is" if labels == 1 else "labels are"
    whose = "its row" if labels == 1 else "their row"
    return Notice(
        "amber" if early > FORGIVEN * labels else "note",
        f"{count(early)} of {count(labels)} {are} dated before {whose}; are --time and --label-time swapped?",
        f"The first is {first}. A label cannot be known before its row is served: each was taken as known right "
        "after it, so figures may be better than the truth. A date without a time of day counts as its midnight.",
        "Give `--time` the column that says when rows are served, `--label-time` the one that says when labels come.",
    )


def no_cap_with_late_labels(eta: float, late: str) -> Notice:
    """Labels are late and the cap is off."""
    return Notice(
        "amber",
        f"Labels arrived up to {late} late and steps were not capped.",
        f"With a step of {plain(eta)} and labels this late, corrections can oscillate or diverge.",
        "Remove `--no-cap`.",
    )


def no_label(rows: int, later: bool | None = None, waiting: int = 0) -> Notice:
    """Rows without a label: predicted, not learned from; ``later``: whether `gradeq label` can bring it.

    ``waiting`` of them only wait for it: their tickets are open.
    """
    have = "row has" if rows == 1 else "rows have"
    them = "it" if rows == 1 else "them"
    claim = f"{count(rows)} {have} no label: nothing is claimed about {them}."
    if waiting:
        wait = "row waits for its label" if waiting == 1 else "rows wait for their label"
        rest = f", {count(rows - waiting)} more will have none" if rows > waiting else ""
        claim = f"{count(waiting)} {wait}{rest}: nothing is claimed about {them} yet."
    return Notice(
        "note",
        claim,
        "It was served with the corrections learned so far and is excluded from every average."
        if rows == 1
        else "They were served with the corrections learned so far and are excluded from every average.",
        {
            True: "`gradeq label` with the same `--state` and `--id` brings the labels later.",
            False: "With `--id` and `--state` such rows wait, and `gradeq label` brings their labels later.",
        }[later]
        if later is not None
        else "",
    )


def immature(rows: int, maturity: str, kept: bool) -> Notice:
    """Rows that are not mature by the last row: their labels, if there are any, are in no figure yet."""
    are, them = ("row is", "it") if rows == 1 else ("rows are", "them")
    return Notice(
        "note",
        f"{count(rows)} {are} younger than --maturity {maturity}: nothing is claimed about {them} yet.",
        "Every average is over rows that are mature; among younger ones labels of one value may be known earlier.",
        "The state keeps their labels until then." if kept else "",
    )


def labels_held_back(labels: int, why: str) -> Notice:
    """Labels are held back since their delay seems to depend on their value; ``why``: what was seen, "": a doubt."""
    are = "label is" if labels == 1 else "labels are"
    if not why:
        return Notice(
            "note",
            f"{count(labels)} {are} held back until more come.",
            "They contradict the predictions, and most older rows still wait for theirs.",
            "If the delay of a label does not depend on its value, give `--maturity 0` when the state begins.",
        )
    return Notice(
        "amber",
        f"Labels of one value seem to come earlier: {count(labels)} {are} held back.",
        f"{why[:1].upper()}{why[1:]}. To learn from them would shift every prediction to the early ones, so a "
        "label is learned only when nine in ten of the rows served with its own have one.",
        "Begin a state with `--maturity SPAN`, the age at which every label is known (and `--missing-is 0` if "
        "those that did not come count as 0); `--maturity 0` if the delay does not depend on the value.",
    )


def waiting_rows(rows: int, labels: int) -> Notice:
    """No row of the file has a label; the page is about those that the state learned from before."""
    which = (
        "The one row of this file has" if rows == 1 else f"The {count(rows)} rows of this file have"
    )
    return Notice(
        "note",
        f"{which} no label yet.",
        f"Figures on this page are over the {some(labels, 'label')} learned from since the state began.",
    )


def not_due(learned: int, labels: int, nothing: bool, kept: bool) -> Notice:
    """Labels came too late for this file: few or none were due before the last row.

    ``nothing``: nothing at all was learned; ``kept``: a state keeps those that wait.
    """
    each = "label" if labels == 1 else "labels"
    was = "was" if learned == 1 else "were"
    claim = f"Only {count(learned)} of {count(labels)} {each} {was} due before the last row."
    if not learned:
        claim = f"None of the {count(labels)} labels was due before the last row"
        claim = "The one label was not due before the last row" if labels == 1 else claim
        claim += ": nothing was learned." if nothing else "."
    wait = labels - learned
    return Notice(
        "amber",
        claim,
        "A label is learned from before the first later row whose time has reached it; "
        f"{count(wait)} {'has' if wait == 1 else 'have'} no such row.",
        "The state keeps them for the next run."
        if kept
        else "Use a longer file, or `--state`, which keeps them for the next run.",
    )


def not_learned(learned: int, labels: int, reason: str, remedy: str) -> Notice:
    """Few or no labels taught the layer anything; ``reason`` is a sentence."""
    each = "label" if labels == 1 else "labels"
    some = f"Only {count(learned)}" if learned else "None"
    was = "was" if learned <= 1 else "were"
    claim = f"{some} of {count(labels)} {each} {was} learned from."
    return Notice("amber", claim, reason, remedy)


def too_late(labels: int, ttl: str) -> Notice:
    """Labels that came later than --ttl allows: they were not learned from."""
    return Notice(
        "note",
        f"{some(labels, 'label')} came later than --ttl {ttl} allows and "
        + ("was not learned from." if labels == 1 else "were not learned from."),
        "Averages over labelled rows include them; what was learned, and the certificate, do not.",
    )


def unknown_ids(labels: int, none_known: bool, stranger: str, waiting: str | None) -> Notice:
    """Labels under ids that the state does not know; ``none_known``: no other label came, though rows wait.

    ``stranger`` is one of these ids, ``waiting`` one of a row that waits.
    """
    claim = (
        f"The state does not know the {'id' if labels == 1 else 'ids'} of {some(labels, 'label')}"
    )
    beside = "no row waits" if waiting is None else f"a row waits under {clean(waiting, 40)!r}"
    return Notice(
        "amber" if none_known else "note",
        f"{claim}, and no other label came." if none_known else f"{claim}.",
        f"One of them is {clean(stranger, 40)!r}; {beside}. Such rows were served elsewhere, or so long ago "
        "that their ids are forgotten (the last 10,000 with a label are kept).",
        "See that `--id` names the column with the ids that rows were served under."
        if none_known
        else "",
    )


def conflicting(labels: int) -> Notice:
    """Labels for ids that have another one already."""
    return Notice(
        "note",
        f"{some(labels, 'label')} had another value than the one already learned from.",
        "The first value stays.",
        "`--correct` replaces the old value by the new one.",
    )


def taken_again(what: str) -> Notice:
    """Rows that the state had seen were let through."""
    return Notice(
        "note",
        "Rows that the state had seen were taken again (--again).",
        f"It was so because {what}. What they taught the first time stays learned.",
    )


def clocks_changed(where: str) -> Notice:
    """Local times of an hour that came twice, sorted as they are written."""
    return Notice(
        "amber",
        f"Times without a zone go back by {where}: were clocks changed?",
        "Rows were served in the order of the written times, so rows of that hour may be in the wrong order.",
        "Write times with a zone (2024-01-31T17:05:00+01:00) or in UTC.",
    )
