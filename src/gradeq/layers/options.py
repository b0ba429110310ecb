"""The options that layers share: late labels, the limits of labels, and which options go together."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

import numpy as np

from gradeq.engine import scalars
from gradeq.engine.label_stats import EarlyLabels
from gradeq.engine.tickets import TicketBook
from gradeq.errors import BadInput
from gradeq.inputs.arguments import as_float, as_shown
from gradeq.inputs.durations import duration, format_span
from gradeq.numerics import SMALLEST, within

if TYPE_CHECKING:
    from gradeq.ledger.batch import Floats

LateCap = Literal["auto"] | float | None
Support = tuple[float | None, float | None]
WATCHED = ("debias", "quantile", "quantiles", "interval")  # kinds whose labels are numbers


@dataclass(frozen=True)
class LateLabels:
    """What a layer does about labels that come late, or never.

    ``late_cap``: how strongly late labels shrink the step: "auto" (the layer's default), a number in (0, 1], or None
    (not at all). ``in_flight``: how many rows are expected to wait for labels from the start. ``ttl``: how long a
    ticket waits for its label: a number in the unit of times, or a duration such as "14d" (times are then dates).
    ``maturity``: how old a row must be before its label is learned, a number or a duration; 0 learns every label as
    it comes. ``missing_is``: the label of a mature row without one. ``queue``: predictions without ids wait in a
    queue; otherwise each one replaces the one before it.
    """

    late_cap: LateCap = "auto"
    in_flight: int = 1
    ttl: float | str | None = None
    maturity: float | str | None = None
    missing_is: object = None
    queue: bool = False

    def strength(self, auto: float) -> float | None:
        """How strongly late labels shrink the step, at most 1; None: not at all."""
        if self.late_cap is None:
            return None
        if isinstance(self.late_cap, str) and self.late_cap == "auto":
            return auto
        limit = as_float(self.late_cap) if isinstance(self.late_cap, (int, float)) else None
        if limit is None or not SMALLEST <= limit <= 1.0:
            raise BadInput(f"late_cap={as_shown(self.late_cap)}: give 'auto', None, or a number in (0, 1]")
        return limit

    def ticket_book(self, kind: str, validate_label: Callable[[object], object]) -> TicketBook:
        """An empty book of tickets with these options, checked; ``kind``: of the layer."""
        book = TicketBook(span_of("ttl", self.ttl), queue=scalars.flag(self.queue, "queue"))
        book.maturity = span_of("maturity", self.maturity)
        if isinstance(self.ttl, str) or isinstance(self.maturity, str):
            book.take_dates()
        if self.missing_is is not None:
            try:
                book.missing_is = validate_label(self.missing_is)
            except BadInput as error:
                raise BadInput(f"missing_is={as_shown(self.missing_is)}: {error}") from None
            if not book.maturity:
                raise BadInput("missing_is is the label of a mature row that got none; give maturity as well")
            if book.ttl is not None:
                raise BadInput(
                    "with missing_is every row is closed when it is mature, so none outlives ttl; leave out one of "
                    "the two"
                )
        if book.maturity and book.ttl is not None and book.ttl <= book.maturity:
            raise BadInput(
                f"ttl {format_span(book.ttl)} is not above maturity {format_span(book.maturity)}: every ticket would "
                "expire before its label may be learned; give a longer ttl, or none"
            )
        if self.maturity is None and kind in WATCHED:
            book.early = EarlyLabels(kind == "debias")
        return book


SPANS = {
    "ttl": "a ticket's time to live must be positive: a number, or a span such as '14d'",
    "maturity": "give a span such as '30d', a number above 0, or 0 to learn from every label as it comes",
}


def span_of(name: Literal["ttl", "maturity"], span: float | str | None) -> float | None:
    """A time to live or a maturity as a number, in nanoseconds for a duration such as 14d."""
    if span is None:
        return None
    if isinstance(span, str):
        seconds = duration(span.strip())
        if seconds is None or not 0.0 < seconds < math.inf:
            raise BadInput(
                f"{name}={span!r} is not a duration; give 90s, 15m, 36h or 14d (times are then dates), or a number"
            )
        return seconds * 1e9
    number = as_float(span)
    if number is None or not (number > 0.0 if name == "ttl" else 0.0 <= number < math.inf):
        raise BadInput(f"{name}={as_shown(span)}: {SPANS[name]}")
    return number


def limits_of(support: Support | None) -> tuple[float, float]:
    low, high = support or (None, None)
    return -math.inf if low is None else low, math.inf if high is None else high


def outside(support: Support) -> str:
    low, high = support
    if high is None:
        return f"lies below the support, which begins at {low:g} (--min); correct it, or lower the limit"
    if low is None:
        return f"lies above the support, which ends at {high:g} (--max); correct it, or raise the limit"
    return f"lies outside the support [{low:g}, {high:g}] (--min, --max); correct it, or widen the support"


def check_label(y: float, support: Support | None) -> float:
    low, high = limits_of(support)
    if support is not None and not low <= y <= high:
        raise BadInput(f"label {y!r} {outside(support)}")
    return y


ServedValues = TypeVar("ServedValues", float, tuple[float, ...], "Floats")


def clipped(served: ServedValues, support: Support | None) -> ServedValues:
    """What was served, clipped to the support: a number, one for each level, or whole columns."""
    if support is None:
        return served
    low, high = limits_of(support)
    if isinstance(served, float):
        return within(served, low, high)
    if isinstance(served, tuple):
        return tuple(within(s, low, high) for s in served)
    return np.clip(served, low, high)


# Which options go together: every layer asks this table when it is made, and a test tries all of it. What is not
# refused here is supported: events, columns, late labels, saving, merging, certificate and bound (or the reason why
# there is none).


class Refusal(NamedTuple):
    """Options that do not go together, and why, in one line."""

    options: frozenset[str]
    reason: str


def _refusals(reasons: dict[str, str]) -> tuple[Refusal, ...]:
    """``{"auto + penalty": why}``, or several pairs with one reason, separated by commas."""
    return tuple(
        Refusal(frozenset(pair.split(" + ")), reason)
        for pairs, reason in reasons.items()
        for pair in pairs.split(", ")
    )


_NO_AUTO_PENALTY = "eta='auto' does not go with a penalty; give a number for eta"
_COMMON = {
    "eta + schedule, auto + schedule": "give eta or a schedule, not both",
    "auto + penalty": _NO_AUTO_PENALTY,
    "auto + features": "eta='auto' does not go with features; give a number for eta",
    "no step + features": "eta is required with features: their size is not known in advance; give a number",
    "keyed + penalty": "a layer with a penalty cannot be keyed; name the key as a group of a layer instead",
    "keyed + auto": "eta='auto' cannot be keyed: a key has too few labels; give a number for eta",
}
_QUANTILE = _COMMON | {
    "pool + eta, pool + schedule, pool + penalty, pool + warm": "pool=True chooses its own steps; leave out eta, "
    "schedule, penalty and warm",
    "pool + groups, pool + features": "pool=True shares what is learned among keys, not among groups or features; "
    "leave them out",
    "pool + link linear": "pool=True needs link='sinh', whose steps have no unit",
    "auto + link linear": "eta='auto' needs link='sinh'; give a number for eta",
    "no step + link linear": "eta is required with link='linear': it has the unit of the labels; give a number",
    "warm + link linear": "warm=True needs link='sinh'",
    "warm + features": "warm=True does not go with features",
    "warm + penalty": "warm=True does not go with a penalty, which pulls to zero",
}
_LEVELS = _QUANTILE | {"penalty": "a penalty goes with one level; leave it out, or track each level alone"}
_DEBIAS = _COMMON | {
    "pool": "pool=True is for quantile trackers; for means name the key as a group of one Debiaser instead",
    "auto + link exp": "eta='auto' is for the links identity and logit, not exp; give a number for eta",
    "auto + link shift": "eta='auto' is for the links identity and logit, not shift; give a number for eta",
    "support + link exp": "support does not go with link exp, which stays above 0 by itself; use link identity",
}
_ELO = {
    "eta + schedule, auto + schedule, k + schedule, eta + k, auto + k": "give one of eta, k and a schedule",
    "penalty + proximal": "give a penalty or a proximal strength, not both",
    "auto + penalty, auto + proximal": _NO_AUTO_PENALTY,
}
_REASONS = {"debias": _DEBIAS, "elo": _ELO}
_REASONS |= dict.fromkeys(("conformal", "quantile"), _QUANTILE) | dict.fromkeys(("quantiles", "interval"), _LEVELS)
TABLE = {kind: _refusals(reasons) for kind, reasons in _REASONS.items()}


def refusal(kind: str, options: set[str]) -> str | None:
    """Why these options of a layer do not go together; None if they do."""
    return next((entry.reason for entry in TABLE[kind] if entry.options <= options), None)


def check_together(kind: str, options: dict[str, bool]) -> None:
    reason = refusal(kind, {name for name, is_used in options.items() if is_used})
    if reason is not None:
        raise BadInput(reason)
