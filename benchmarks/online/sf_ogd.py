"""Scale-free online gradient descent on the pinball loss: Orabona and Pál (2018), for conformal prediction in
Bhatnagar, Wang, Xiong and Bai, "Improved online conformal prediction via strongly adaptive online learning" (2023).

    q <- q - D / sqrt(3) g / sqrt(sum of g^2 so far),    g = alpha - 1{s > q},    D the largest |score| of the warm-up
"""

from __future__ import annotations

import math
from collections.abc import Sequence


def sf_ogd(scores: Sequence[float], level: float, warm: int) -> list[float]:
    """The thresholds."""
    alpha, q, squares, found = 1.0 - level, 0.0, 0.0, []
    rate = max(map(abs, scores[:warm])) / math.sqrt(3.0)
    for score in scores:
        found.append(q)
        slope = alpha - (score > q)
        squares += slope * slope
        q -= rate * slope / math.sqrt(squares)
    return found
