"""The sign-in of a browser: a cookie that holds a key's number and an end, signed with the store's secret.

It lets its holder look, and press the buttons of our own pages, which hold a token; every other call that changes
something needs the key itself. It is HttpOnly and SameSite=Strict; a revoked key takes its sessions along.
"""

from __future__ import annotations

import hmac
import time
from hashlib import sha256

COOKIE = "gradeq_session"
HOURS = 12


class Sessions:
    """Makes and reads cookies."""

    def __init__(self, secret: bytes) -> None:
        self._secret = hmac.digest(secret, b"gradeq session", sha256)

    def cookie(self, number: int, secure: bool) -> str:
        """The header that sets the cookie for the key with this number."""
        end = int(time.time()) + HOURS * 3600
        value = f"{number}.{end}"
        safe = "; Secure" if secure else ""
        return (
            f"{COOKIE}={value}.{self._signed(value)}; HttpOnly; SameSite=Strict; Path=/; "
            f"Max-Age={HOURS * 3600}{safe}"
        )

    def holder(self, cookies: str) -> int | None:
        """The number of the key whose cookie this is, if it is ours and not over."""
        for one in cookies.split(";"):
            name, _, text = one.strip().partition("=")
            value, _, sign = text.rpartition(".")
            if name != COOKIE or not hmac.compare_digest(
                sign.encode(), self._signed(value).encode()
            ):
                continue
            number, _, end = value.partition(".")
            if time.time() < int(end):
                return int(number)
        return None

    def token(self, cookies: str) -> str:
        """What our pages send along with what their buttons ask for; another site can neither read nor guess it."""
        return self._signed(f"token {cookies}") if self.holder(cookies) is not None else ""

    def knows(self, cookies: str, token: str) -> bool:
        """Whether a token belongs to this session."""
        known = self.token(cookies)
        return bool(known) and hmac.compare_digest(known.encode(), token.encode())

    def _signed(self, value: str) -> str:
        return hmac.new(self._secret, value.encode(), sha256).hexdigest()


FORGET = f"{COOKIE}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0"
