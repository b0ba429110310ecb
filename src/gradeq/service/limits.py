"""How much one call, one key and one layer may ask for: every limit has a default and a name."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, fields

from gradeq.errors import BadInput

ROUNDING = 1e-6  # of a token: whoever waited as long as told is not sent away again


@dataclass(frozen=True)
class Limits:
    """The limits of a server.

    ``body``: bytes of a call with predictions or labels, before anything is parsed (1,000 items take about 100 kB);
    ``settings_body``: bytes of a call that makes a layer, which may bring a whole saved state;
    ``items``: items of one call; ``layers``: layers of one tenant;
    ``rate``: items a second for one key, in bursts of ``burst``; ``queue``: items that wait to be committed;
    ``headers_within``, ``body_within``: seconds until a request, and then its body, must have come;
    ``connections``: open at a time.
    """

    body: int = 2_000_000
    settings_body: int = 50_000_000
    items: int = 10_000
    layers: int = 1_000
    rate: float = 200_000.0
    burst: float = 200_000.0
    queue: int = 20_000
    headers_within: float = 10.0
    body_within: float = 20.0
    connections: int = 1_000

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not value > 0:
                raise BadInput(f"the limit {field.name} is {value!r}; give a number above 0")


class Bucket:
    """Tokens that come back at a steady rate: what one key may ask for."""

    __slots__ = ("at", "burst", "clock", "left", "rate")

    def __init__(
        self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.rate, self.burst, self.clock = rate, burst, clock
        self.left, self.at = burst, clock()

    def take(self, tokens: float) -> float:
        """Take tokens and return 0, or take none and return the seconds until they are there.

        More than a full bucket waits for a full one.
        """
        now = self.clock()
        self.left = min(self.burst, self.left + (now - self.at) * self.rate)
        self.at = now
        wanted = min(tokens, self.burst)
        if wanted <= self.left + ROUNDING:
            self.left -= wanted
            return 0.0
        return (wanted - self.left) / self.rate
