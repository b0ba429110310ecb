"""Sums of floats as whole numbers: exact, so the same postings in any order give the same sums.

Every float is a whole multiple of 2^-1074. A sum is written as its odd part in hexadecimal and a power of two:

>>> written(exact(0.75) + exact(-3.0))
'-9p-2'
>>> read("-9p-2") == exact(-2.25)
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from gradeq.ledger.values import new

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gradeq.ledger.values import Posting

UNIT = 1074  # the smallest float is 2^-1074
DIGITS, HALF = 53, 26  # binary digits of a float, and of what is added up at a time
SPAN = 4096  # more than there are exponents


class Sum(NamedTuple):
    """What labels added to one parameter at one level: how many, the sum of w e z, and that of eta w e z."""

    rows: int = 0
    gradient: int = 0
    moved: int = 0

    def plus(self, other: Sum) -> Sum:
        return Sum(self.rows + other.rows, self.gradient + other.gradient, self.moved + other.moved)


Account = tuple[str, int]  # a parameter, with its series if it has one, and a level
Sums = dict[Account, Sum]


def exact(x: float) -> int:
    """A float in units of 2^-1074."""
    numerator, denominator = x.as_integer_ratio()
    return numerator << (UNIT + 1 - denominator.bit_length())


def rounded(units: int) -> float:
    return units / (1 << UNIT)


def written(units: int) -> str:
    """A sum as text."""
    if units == 0:
        return "0"
    zeros = (units & -units).bit_length() - 1
    return f"{units >> zeros:x}p{zeros - UNIT}"


def read(text: str) -> int:
    """The sum that ``written`` wrote; ``ValueError`` for anything else."""
    if text == "0":
        return 0
    odd, power = text.split("p")
    zeros = int(power) + UNIT
    if zeros < 0:
        raise ValueError(f"{text!r} is no sum")
    return int(odd, 16) << zeros


def account_of(name: str, key: str | None) -> str:
    return name if key is None else f"{key}\x1f{name}"


def amounts(posting: Posting) -> Iterator[tuple[Account, Sum]]:
    """What one posting adds to the sums; nothing if it was heard and not learned from."""
    sign, row = posting.sign, posting.row
    if sign == 0.0 or posting.weight == 0.0:
        return
    signed, eta = sign * posting.weight, posting.eta
    count = 1 if sign > 0.0 else -1
    for level in range(len(posting.errors) // 2):
        error = signed * posting.errors[level]
        for name, z in zip(row.names, row.values, strict=True):
            gradient = error * z
            own: Sum = new(Sum, (count, exact(gradient), exact(eta * gradient)))
            yield (account_of(name, row.key), level), own


def add(sums: Sums, posting: Posting) -> list[Account]:
    """Add a posting to the sums; which of them it changed."""
    changed = []
    for account, (rows, gradient, moved) in amounts(posting):
        own = sums.get(account, NOTHING)
        sums[account] = new(Sum, (own[0] + rows, own[1] + gradient, own[2] + moved))
        changed.append(account)
    return changed


NOTHING = Sum()


def exact_sums(values: Any, at: Any, count: int) -> list[int]:
    """The exact sums of many floats by place, in units of 2^-1074.

    >>> import numpy as np
    >>> written(exact_sums(np.array([0.75, 2.0**60, -(2.0**60)]), np.zeros(3, dtype=int), 1)[0])
    '3p-2'
    """
    import numpy as np

    mantissa, exponent = np.frexp(values)
    whole = np.ldexp(mantissa, DIGITS).astype(np.int64)
    present, where = np.unique(at * SPAN + (exponent + UNIT), return_inverse=True)
    found = [0] * count
    parts = []
    for half in (whole >> HALF, whole & (1 << HALF) - 1):  # sums of 2^36 halves have room
        sums = np.zeros(len(present), dtype=np.int64)
        np.add.at(sums, where, half)
        parts.append(sums.tolist())
    for code, high, low in zip(present.tolist(), *parts, strict=True):
        place, power = divmod(code, SPAN)
        units, shift = (high << HALF) + low, power - DIGITS
        found[place] += units << shift if shift >= 0 else units >> -shift
    return found
