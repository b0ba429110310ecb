"""Kinds of values that options take: steps, delays, shares, positive numbers."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from gradeq.spans import duration

if TYPE_CHECKING:
    _Kind = click.ParamType[Any]
else:  # click before 8.4 has no parameter there
    _Kind = click.ParamType


class Delay(NamedTuple):
    """How long after its row every label comes: so many rows, or so many seconds."""

    text: str
    rows: int | None
    seconds: float


class Step(_Kind):
    """A step: a positive number, auto or plain."""

    name = "F|auto|plain"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float | str:
        """The step as a number, or the word."""
        return value if value in ("auto", "plain") else positive(self, value, param, ctx)


class Late(_Kind):
    """A delay: a number of rows, or a span of time with a unit."""

    name = "ROWS|DURATION"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Delay:
        """The delay."""
        text = str(value).strip()
        if text.isascii() and text.isdigit() and len(text) < 16:
            return Delay(text, int(text), 0.0)
        seconds = duration(text)
        if seconds is None or not 0.0 < seconds <= LONGEST:
            self.fail(
                f"{value!r} is neither a number of rows nor a duration; "
                "give 0, 250, 90s, 15m, 36h or 7d.",
                param,
                ctx,
            )
        return Delay(text, None, seconds)


LONGEST = 100.0 * 366.0 * 86400.0


class Positive(_Kind):
    """A finite number above 0."""

    name = "F"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The number."""
        return positive(self, value, param, ctx)


class Share(_Kind):
    """A number strictly between 0 and 1, kept as typed: column names are made of it."""

    name = "P"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text, stripped, once it is known to spell such a number."""
        text = str(value).strip()
        number = _number(self, text, param, ctx)
        if not 0.0 < number < 1.0:
            self.fail(f"{text} lies outside (0, 1); give a share such as 0.9.", param, ctx)
        return text


def positive(
    kind: _Kind, value: Any, param: click.Parameter | None, ctx: click.Context | None
) -> float:
    """A finite number above 0, or a refusal."""
    number = _number(kind, value, param, ctx)
    if not (math.isfinite(number) and number > 0.0):
        kind.fail(f"{value} is not above 0; give a positive, finite number.", param, ctx)
    return number


def _number(
    kind: _Kind, value: Any, param: click.Parameter | None, ctx: click.Context | None
) -> float:
    try:
        return float(value)
    except ValueError:
        kind.fail(f"{value!r} is not a number.", param, ctx)


class Limit(_Kind):
    """A finite number."""

    name = "F"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The number."""
        number = _number(self, value, param, ctx)
        if not math.isfinite(number):
            self.fail(
                f"{value} is not finite; leave the option out where there is no limit.", param, ctx
            )
        return number
