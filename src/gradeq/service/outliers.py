"""Labels too far from their prediction to learn from: one of them would wipe out what all the others taught.

A float holds 53 bits. Whatever is 2^53 times as large as all that was heard so far leaves none of their digits in the
sums, and cannot be taken back either; a number whose square is none leaves no loss to compare.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gradeq.errors import BadInput
from gradeq.rules.relative import Relative

if TYPE_CHECKING:
    from gradeq.ledger.values import Posting, Ticket
    from gradeq.service.live import Live

DIGITS = 2.0**53
LARGEST = 1e150  # its square can be summed over as many labels as there will ever be
KNOWN = 5  # labels from which on there is something to compare with


def check_reach(live: Live, entry: Ticket | Posting, y: Any) -> None:
    """Refuse a label that the layer could not learn from and stay sound; it costs nothing where it is not far off."""
    f = entry.base
    relative = isinstance(live.layer._rule, Relative)
    if type(f) is float and -DIGITS < y - f < DIGITS and not relative:
        return
    away = distance(f, y, relative)
    if not away <= LARGEST:
        raise BadInput(
            f"the label {y!r} is too far from its prediction {shown(f)}: no sum could hold its loss; "
            "check both, and send the label that is right"
        )
    if away < DIGITS:
        return
    if len(live.recent) < KNOWN:  # a prediction of 0 says nothing about the size of labels
        own = distance(f, 0.0, False)
        if own == 0.0 or relative or away <= DIGITS * max(1.0, own):
            return
        raise BadInput(
            f"the label {y!r} is more than {DIGITS:.0e} times its prediction {shown(f)}; check both, and send the "
            "label that is right"
        )
    for heard in reversed(live.recent):  # where numbers are this large, the last one says so
        if away <= DIGITS * size(heard.posting, relative):
            return
    raise BadInput(
        f"the label {y!r} is {away:.0e} from its prediction {shown(f)}, and nothing among the last "
        f"{len(live.recent):,} labels is within a factor of {DIGITS:.0e} of that: to learn from it would wipe out "
        "every digit of what was learned; check both, or make another layer for numbers of this size"
    )


def distance(f: Any, y: float, relative: bool) -> float:
    """How far a label is from its prediction (of several, the farthest), in units of it if it is relative."""
    if relative:
        return float(abs(y / f - 1.0))
    each = f if isinstance(f, tuple) else (f,)
    return float(max(abs(y - own) for own in each))


def size(posting: Posting, relative: bool) -> float:
    """How large the numbers of a label were; at least 1, as sums of zeros say nothing about what is usual."""
    f, y = posting.base, posting.y
    if relative:
        return float(max(1.0, abs(y / f)))
    return float(max(1.0, abs(y), *map(abs, f if isinstance(f, tuple) else (f,))))


def shown(f: Any) -> str:
    """A prediction, or several."""
    return ", ".join(map(repr, f)) if isinstance(f, tuple) else repr(f)
