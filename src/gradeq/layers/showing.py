"""What a layer shows of itself: how labels came, the steps they were given, what was done by hand, pictures."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from gradeq.kernels.flight import LATENESS
from gradeq.layers.guard import Guarded
from gradeq.ledger import facts as fact

if TYPE_CHECKING:
    from gradeq.engine.tickets import Book
    from gradeq.layers.run import Run
    from gradeq.ledger.state import State
    from gradeq.rules.rule import Rule


class Showing(Guarded):
    """The readers that every layer has."""

    _book: Book
    _log: list[tuple[str, int]]
    _rule: Rule
    _state: State

    @property
    def in_flight(self) -> dict[str, float]:
        """How many rows are in flight, and how late labels came.

        ``open``: tickets that wait now. ``peak``: the most that are known to have waited at once in one group, or in
        all now. ``peak_lateness``: the largest recent lateness of a posted label in rows of its group, which the
        late-label cap goes by; open tickets have none yet. ``served``, ``labelled``: rows and labels so far.
        ``mean_delay``, ``longest_delay``: predictions served between a row and its label.
        """
        facts, late = self._state.facts, self._state.late
        posted = facts[fact.POSTED]
        latest, waiting = int(max(late[::LATENESS])) if len(late) else 1, len(self._book)
        return {
            "open": waiting,
            "peak": max(latest, waiting),
            "peak_lateness": latest,
            "served": int(facts[fact.SERVED]),
            "labelled": int(posted),
            "mean_delay": facts[fact.DELAY_SUM] / posted if posted else 0.0,
            "longest_delay": int(facts[fact.DELAY_MOST]),
        }

    @property
    def step(self) -> float:
        """The step that the schedule begins with; with ``auto`` that of the final layer."""
        rule = getattr(self._rule, "final", None) or self._rule
        return float(rule.schedule.step(1))

    @property
    def steps(self) -> dict[str, float]:
        """The smallest and largest step of a label, how many were capped, and rows too large for their step."""
        facts = self._state.facts
        low = facts[fact.STEP_LOW]
        return {
            "smallest": low if math.isfinite(low) else 0.0,
            "largest": facts[fact.STEP_HIGH],
            "capped": int(facts[fact.HELD]),
            "resized": int(facts[fact.RESIZED]),
        }

    @property
    def log(self) -> list[tuple[str, int]]:
        """What was done by hand (freeze, resume, steps, resets), each with the predictions served by then."""
        return list(self._log)

    def plot(self, run: Run | None = None) -> Any:
        """A matplotlib figure: errors before and after with their bounds; with a ``run`` of it, over time too."""
        from gradeq.report.figure import figure_of

        return figure_of(self, run)

    def report(self, path: Any, run: Run | None = None) -> None:
        """Write the command line's HTML page of this layer; what only rows can show needs a ``run`` of this layer."""
        from gradeq.files.atomic import write_text
        from gradeq.report.of_layer import page_of

        write_text(path, [page_of(self, run)])
