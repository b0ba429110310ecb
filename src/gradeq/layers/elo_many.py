"""Many games predicted before they are played, and many scores that come later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gradeq.engine.checks import is_missing
from gradeq.errors import BadInput
from gradeq.layers import columns as check
from gradeq.layers.columns import Moment
from gradeq.layers.guard import Guarded
from gradeq.layers.many import answer_many
from gradeq.layers.run import checked_ids
from gradeq.rules.rating import NOT_LATE


class ManyGames(Guarded):
    """The verbs of Elo for whole columns of games whose scores are still to come."""

    predict: Callable[..., float]
    settle: Callable[..., str]
    proximal: float | None
    _names: Any
    _book: Any

    def predict_many(
        self,
        a: Any,
        b: Any,
        *,
        home: Any = None,
        weights: Any = None,
        ids: Any = None,
        times: Any = None,
    ) -> Any:
        """The probability that a wins of every game, as ``predict`` gives it; in the form of ``a``.

        With ``ids`` tickets stay open until ``update_many`` or ``settle`` brings the scores; without nothing changes.
        """
        from gradeq import frames

        frames.same_index(a=a, b=b, home=home, weights=weights, ids=ids, times=times)
        first, second = check.cells(a, "a"), check.cells(b, "b")
        n = len(first)
        check.same_length(n, len(second), "b")
        if ids is not None and self.proximal is not None:
            raise BadInput(NOT_LATE)
        given: dict[str, list[Any]] = {}
        if home is not None:
            given["home"] = check.numbers(home, "home").tolist()
        if weights is not None:
            given["weight"] = check.weights(weights, n).tolist()
        for name, column in given.items():
            check.same_length(n, len(column), name)
        if times is not None:
            when = check.times(times, n, "times", self._book)
            given["time"] = [when._replace(values=time) for time in when.values.tolist()]
        if ids is not None:
            given["id"] = checked_ids(self, ids, n)
        rows = [{name: cells[k] for name, cells in given.items()} for k in range(n)]
        for k, (one, two, own) in enumerate(zip(first, second, rows, strict=True)):
            try:  # every game is looked at before the first is served
                self._names.row(one, two, own.get("home", 1.0))
            except BadInput as error:
                raise BadInput(f"row {k}: {error}") from None
        chances = [
            self.predict(one, two, **own) for one, two, own in zip(first, second, rows, strict=True)
        ]
        return frames.like(a, np.array(chances))

    def update_many(self, labels: Any, ids: Any = None, *, times: Any = None) -> Any:
        """Learn from many scores in row order, as ``settle`` does: the outcome of each row, in the scores' form.

        "applied", "dropped" (a tie, where ties are dropped), "duplicate", "conflict", "unknown", "expired", or
        "rejected" for what is no score.
        """
        if times is not None:
            raise BadInput(
                "scores have no times here: every game counts when it is over; leave out times"
            )
        return answer_many(self._answer, labels, {"id": ids})

    def _answer(
        self, y: Any, id: Any = None, key: Any = None, *, time: Moment | None = None
    ) -> str:
        if id is not None and is_missing(y):
            raise BadInput(f"score {y!r} is missing; skip(id) closes a game that gets none")
        return self.settle(y, id)
