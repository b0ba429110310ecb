"""API keys: random, shown once, stored as a hash, with scopes; the tenant comes from the key and from nowhere else.

    gq_<8 characters to look it up by>_<256 random bits>

A key that is replaced works on until its own end, so that callers can change over without a gap.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from gradeq.errors import BadInput

SCOPES = ("predict", "label", "admin")
FORM = re.compile(r"gq_([a-z2-7]{8})_([A-Za-z0-9_-]{43})")
LETTERS = "abcdefghijklmnopqrstuvwxyz234567"
TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
NO_KEY = hashlib.sha256(b"").hexdigest()  # compared with where there is no such key: takes as long


class Key(NamedTuple):
    """A key as it is stored: enough to know it again, not enough to use it. Times are seconds since 1970."""

    number: int
    tenant: str
    name: str
    prefix: str
    hash: str
    scopes: frozenset[str]
    created: float
    revoked: float | None  # from when on it is no good

    def good(self, now: float) -> bool:
        """Whether it may be used now."""
        return self.revoked is None or now < self.revoked


def new_key(tenant: str, name: str, scopes: Any) -> tuple[str, Key]:
    """A new key: the text to show once, and what is stored of it."""
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown or not scopes:
        named = f"scope {unknown[0]!r}" if unknown else "no scope"
        raise BadInput(f"{named}: a key is for {', '.join(SCOPES)}; name one or more of them")
    if not TENANT.fullmatch(tenant):
        raise BadInput(
            f"tenant {tenant[:80]!r}: give 1 to 63 letters, digits, points, hyphens and underscores"
        )
    if not name.isprintable() or len(name) > 80:
        raise BadInput(f"the key's name {name[:80]!r}: give at most 80 printable characters")
    prefix = "".join(secrets.choice(LETTERS) for _ in range(8))
    text = f"gq_{prefix}_{secrets.token_urlsafe(32)}"
    return text, Key(0, tenant, name, prefix, hashed(text), frozenset(scopes), time.time(), None)


def hashed(text: str) -> str:
    """What is stored of a key. It is 256 random bits, so one round of SHA-256 is enough."""
    return hashlib.sha256(text.encode()).hexdigest()


class KeyRing:
    """The keys of a store, in memory; ``read`` gets them, and again when ``stale`` seconds have passed."""

    def __init__(self, read: Callable[[], Iterable[Key]], stale: float = 2.0) -> None:
        self._keys, self._stale = read, stale
        self._by_prefix: dict[str, Key] = {}
        self._read = -1.0
        self.reload()

    def reload(self) -> None:
        """Read the keys from the store."""
        self._by_prefix = {key.prefix: key for key in self._keys()}
        self._read = time.monotonic()

    def touch(self) -> None:
        """Somebody reads them now; others need not."""
        self._read = time.monotonic()

    @property
    def stale(self) -> bool:
        """Whether it is time to read again."""
        return self.age > self._stale

    def holder(self, text: str) -> Key | None:
        """The key with this text, if there is one and it is still good."""
        form = FORM.fullmatch(text)
        key = self._by_prefix.get(form[1]) if form else None
        same = hmac.compare_digest(hashed(text), key.hash if key else NO_KEY)
        return key if key is not None and same and key.good(time.time()) else None

    def unheard(self, text: str) -> bool:
        """Whether this may be a key that was made since the keys were read."""
        form = FORM.fullmatch(text)
        return form is not None and form[1] not in self._by_prefix

    @property
    def age(self) -> float:
        """Seconds since the keys were read."""
        return time.monotonic() - self._read

    def numbered(self, number: int) -> Key | None:
        """The key with this number, if it is still good."""
        for key in self._by_prefix.values():
            if key.number == number:
                return key if key.good(time.time()) else None
        return None

    def named(self, prefix: str) -> Key | None:
        """The key with this prefix, good or not."""
        return self._by_prefix.get(prefix)

    def __len__(self) -> int:
        return sum(key.good(time.time()) for key in self._by_prefix.values())
