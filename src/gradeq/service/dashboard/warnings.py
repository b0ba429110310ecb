"""The warnings of a layer at work, each a claim with a number, its evidence, and what to do over HTTP."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gradeq.equilibrium import Equilibrium
from gradeq.report import notices as say
from gradeq.report.limits import judged_before_limits
from gradeq.report.numerals import count, number, plain, some
from gradeq.report.of_state import coverages_of, harm_since
from gradeq.report.story import EloStory, Notice, Story
from gradeq.report.surprises import not_known
from gradeq.report.words import FEW
from gradeq.service.dashboard.recent import unit_of
from gradeq.service.wording import in_settings

UNITS = {86400.0: "days", 3600.0: "hours", 60.0: "minutes", 1.0: "seconds", 1e-3: "milliseconds"}


def warnings_of(
    layer: Any, reached: Equilibrium, story: Story | EloStory, flight: Any, known: Any
) -> tuple[Notice, ...]:
    """What holds now, the gravest first."""
    found = list(stopped(layer, known))
    if isinstance(story, Story):
        found += [in_settings(notice) for notice in harmed(layer, reached, story)]
        limited = judged_before_limits(coverages_of(layer, reached) if reached.rows else [])
        found += [limited] if limited else []
    found += capped(layer, reached)
    found += late(reached, flight)
    return say.ordered(found)


def harmed(layer: Any, reached: Equilibrium, story: Story) -> list[Notice]:
    """What got worse since the start; of groups it is only noted, since some of many always are."""
    whole = story.groups_total == len(story.groups) and not story.levels
    judged = tuple(group for group in story.groups if group.rows >= FEW) if whole else ()
    found = harm_since(layer, reached, judged)
    lost = not_known(reached.hidden)
    found = [replace(n, level="note") if "group" in n.claim else n for n in found]
    return [*([lost] if lost else []), *found]


def stopped(layer: Any, known: Any) -> list[Notice]:
    """Learning has stopped, by itself or by hand."""
    if known.stopped:
        return [
            Notice(
                "red", f"Learning stopped: {known.stopped.rstrip('.')}.",
                "Predictions are served from the last good state; labels are refused.",
                "Run `gradeq audit STORE`, which says what is wrong and how to go on.",
            )
        ]  # fmt: skip
    if known.unwritable:
        return [
            Notice(
                "red", "The store cannot write.",
                f"{known.unwritable.rstrip('.')}. Predictions are served from the last good state, not stored; "
                "labels are refused.",
                "Nothing that was acknowledged is lost; learning goes on by itself once the store can write.",
            )
        ]  # fmt: skip
    if known.diverged:
        return [
            Notice(
                "red", f"Learning stopped: {known.diverged}.",
                "Predictions are served from the last good state; labels are stored and counted, and move nothing.",
                'Set a smaller step (`{"do": "set_step", "eta": ...}`), or make the layer with its `late_cap` '
                "if labels come late; then “Resume learning” continues.",
            )
        ]  # fmt: skip
    if layer.frozen:
        return [
            Notice(
                "amber", "Learning is paused.",
                "Labels are stored and counted, and move nothing.", "“Resume learning” continues.",
            )
        ]  # fmt: skip
    return []


def capped(layer: Any, reached: Equilibrium) -> list[Notice]:
    """Late labels hold the step down; its own may have been asked for, or be the default."""
    learned = reached.learning
    if learned is None or learned.method == "auto" or not learned.step < learned.eta * (1.0 - 1e-9):
        return []
    peak = int(layer.in_flight["peak_lateness"])
    each = " a group" if getattr(layer, "settings", {}).get("groups") else ""
    step = plain(float(f"{learned.step:.2g}"))
    covers = hasattr(getattr(layer, "layer", layer), "coverage")
    slower = "Coverage comes to its target more slowly" if covers else "Bias falls more slowly"
    return [
        Notice(
            "amber", f"Step capped at {step}; the layer's own is {plain(learned.eta)}.",
            f"Up to {some(peak, 'label')}{each} are waited for; with larger steps, labels that arrive late "
            f"together overshoot. {slower}, and stays safe.",
            "`\"eta\": \"auto\"` chooses steps that suit labels this late."
            if layer._takes_auto
            else "A smaller `\"eta\"` would not have to be held down.",
        )
    ]  # fmt: skip


def late(reached: Equilibrium, flight: Any) -> list[Notice]:
    """Labels that have stopped, or that are later than nearly all before."""
    learned, delays = reached.learning, flight.delays
    if learned is not None and learned.learned and learned.stopped:
        return [
            Notice(
                "amber", f"Labels stopped: none came for the last {count(learned.silent)} predictions.",
                f"Never before were more than {count(learned.silence)} served between two labels.",
                "Check what sends the labels.",
            )
        ]  # fmt: skip
    if delays is None or flight.oldest is None or flight.oldest <= 2.0 * delays.most:
        return []
    return [
        Notice(
            "amber", f"The oldest label is {span(flight.oldest)} late; 99 % came within {span(delays.most)}.",
            f"{some(max(flight.overdue, 1), 'prediction')} waited more than twice as long.",
            "If these labels never come, nothing is claimed about their rows; `\"ttl\"` gives them up after a time.",
        )
    ]  # fmt: skip


def span(seconds: float) -> str:
    """A wait in the unit that suits it: 9.7 hours."""
    if seconds < 1.0:
        return f"{number(1000.0 * seconds, 0)} ms"
    unit = unit_of(seconds)
    value = seconds / unit
    return f"{number(value, 1 if value < 10 else 0)} {UNITS[unit]}"
