"""API keys and browser sessions: random, stored as a hash, with scopes and a tenant."""

from __future__ import annotations

import hmac
import re
import secrets
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from hashlib import sha256

from gradeq.errors import BadInput
from gradeq.service.store.journal_store import Store, number_of

SCOPES = ("predict", "label", "admin")
KEY_PATTERN = re.compile(r"gq_([a-z2-7]{8})_([A-Za-z0-9_-]{43})")
PREFIX_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"
TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
KEY_COLUMNS = "number, tenant, name, prefix, hash, scopes, created, revoked"


@dataclass(frozen=True)
class ApiKey:
    """A stored key: enough to recognize it, not enough to use it. Times are seconds since 1970."""

    number: int
    tenant: str
    name: str
    prefix: str
    hash: str
    scopes: frozenset[str]
    created: float
    revoked: float | None

    def is_active(self, now: float) -> bool:
        return self.revoked is None or now < self.revoked


def new_key(tenant: str, name: str, scopes: Iterable[str]) -> tuple[str, ApiKey]:
    """A new key: the text to show once, and what is stored."""
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown or not scopes:
        named = f"scope {unknown[0]!r}" if unknown else "no scope"
        raise BadInput(f"{named}: the scopes are {', '.join(SCOPES)}; give one or more")
    if not TENANT.fullmatch(tenant):
        raise BadInput(f"tenant {tenant[:80]!r}: give 1 to 63 letters, digits, dots, hyphens or underscores")
    if not name.isprintable() or len(name) > 80:
        raise BadInput(f"key name {name[:80]!r}: give at most 80 printable characters")
    prefix = "".join(secrets.choice(PREFIX_LETTERS) for _ in range(8))
    text = f"gq_{prefix}_{secrets.token_urlsafe(32)}"
    return text, ApiKey(0, tenant, name, prefix, hash_key(text), frozenset(scopes), time.time(), None)


def hash_key(text: str) -> str:
    """The stored hash of a key. Keys have 256 random bits, so one round of SHA-256 is enough."""
    return sha256(text.encode()).hexdigest()


DUMMY_HASH = hash_key("")  # compared if there is no such key, so that this takes as long


def read_keys(store: Store) -> list[ApiKey]:
    with store.driver.reading() as connection:
        rows = connection.execute(f"SELECT {KEY_COLUMNS} FROM api_keys ORDER BY number")
        return [
            ApiKey(int(number), tenant, name, prefix, hash, frozenset(scopes.split()), created, revoked)
            for number, tenant, name, prefix, hash, scopes, created, revoked in rows
        ]


def add_key(store: Store, key: ApiKey) -> ApiKey:
    with store.driver.writing() as connection:
        number = (number_of(connection, "SELECT MAX(number) FROM api_keys") or 0) + 1
        scopes = " ".join(sorted(key.scopes))
        connection.execute(
            f"INSERT INTO api_keys ({KEY_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (number, key.tenant, key.name, key.prefix, key.hash, scopes, key.created, key.revoked),
        )
    return replace(key, number=number)


def revoke_key(store: Store, number: int, at: float) -> None:
    """Revoke a key from this time on; an earlier revocation stands."""
    with store.driver.writing() as connection:
        connection.execute(
            "UPDATE api_keys SET revoked = ? WHERE number = ? AND (revoked IS NULL OR revoked > ?)", (at, number, at)
        )


class KeyRing:
    """The keys of a store, cached for ``stale`` seconds."""

    def __init__(self, read: Callable[[], Iterable[ApiKey]], stale: float = 2.0) -> None:
        self._keys, self._stale = read, stale
        self._by_prefix: dict[str, ApiKey] = {}
        self.reload()

    def reload(self) -> None:
        self._by_prefix = {key.prefix: key for key in self._keys()}
        self.read_at = time.monotonic()

    @property
    def stale(self) -> bool:
        return time.monotonic() - self.read_at > self._stale

    def find(self, text: str) -> ApiKey | None:
        form = KEY_PATTERN.fullmatch(text)
        key = self._by_prefix.get(form[1]) if form else None
        same = hmac.compare_digest(hash_key(text), key.hash if key else DUMMY_HASH)
        return key if key and same and key.is_active(time.time()) else None

    def may_be_new(self, text: str) -> bool:
        """Whether this may be a key created since the keys were read."""
        form = KEY_PATTERN.fullmatch(text)
        return form is not None and form[1] not in self._by_prefix

    def by_number(self, number: int) -> ApiKey | None:
        """The key with this number, if it is active."""
        keys = (key for key in self._by_prefix.values() if key.number == number and key.is_active(time.time()))
        return next(keys, None)

    def by_prefix(self, prefix: str) -> ApiKey | None:
        """The key with this prefix, active or not."""
        return self._by_prefix.get(prefix)


COOKIE = "gradeq_session"
SESSION_SECONDS = 12 * 3600


class Sessions:
    """Creates and reads session cookies."""

    def __init__(self, secret: bytes) -> None:
        self._secret = hmac.digest(secret, b"gradeq session", sha256)

    def cookie(self, number: int, secure: bool) -> str:
        value = f"{number}.{int(time.time()) + SESSION_SECONDS}"
        ending = f"Max-Age={SESSION_SECONDS}{'; Secure' if secure else ''}"
        return f"{COOKIE}={value}.{self._sign(value)}; HttpOnly; SameSite=Strict; Path=/; {ending}"

    def key_number(self, cookies: str) -> int | None:
        """The number of the key of a valid, unexpired cookie."""
        for one in cookies.split(";"):
            name, _, text = one.strip().partition("=")
            value, _, sign = text.rpartition(".")
            if name != COOKIE or not hmac.compare_digest(sign.encode(), self._sign(value).encode()):
                continue
            number, _, end = value.partition(".")
            if time.time() < int(end):
                return int(number)
        return None

    def token(self, cookies: str) -> str:
        """The token that the buttons of our pages send; other sites cannot read or guess it."""
        return self._sign(f"token {cookies}") if self.key_number(cookies) is not None else ""

    def is_valid_token(self, cookies: str, token: str) -> bool:
        known = self.token(cookies)
        return bool(known) and hmac.compare_digest(known.encode(), token.encode())

    def _sign(self, value: str) -> str:
        return hmac.new(self._secret, value.encode(), sha256).hexdigest()


CLEAR_COOKIE = f"{COOKIE}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0"
