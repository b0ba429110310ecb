"""The parts of a debiasing layer: its link, its default step, and the experts of its automatic step."""

from __future__ import annotations

from collections.abc import Callable

from gradeq.engine.margin import Margin
from gradeq.engine.mix import Mix, PointJudge
from gradeq.errors import BadInput
from gradeq.links import Identity, Link, Logit, Multiplicative, Shift
from gradeq.losses import LogLoss, Loss, Squared
from gradeq.schedules import Constant, Schedule

DEFAULT_ETA = {"real": 0.01, "binary": 0.03}  # over c^2 (result B6)
CAP = 0.1  # c of the late-label cap

# The automatic step (result B5): rates of the experts and of the layer that certifies, and their late-label caps.
RATES = {
    "real": (0.001, 0.003, 0.01, 0.03, 0.1, 0.3),
    "binary": (0.003, 0.01, 0.03, 0.1, 0.3, 1.0),
}
FINAL = {"real": 0.01, "binary": 0.03}
CAP_EXPERTS = 0.3
CAP_FINAL = {"real": 0.02, "binary": 0.1}


def made_link(outcome: str, name: str, clip: float) -> Link:
    """The link of this name, if it fits the outcome."""
    if outcome not in DEFAULT_ETA:
        raise BadInput(f"outcome={outcome!r}: must be real or binary")
    fitting: dict[str, dict[str, Link]] = {
        "real": {"identity": Identity(), "exp": Multiplicative()},
        "binary": {"logit": Logit(clip), "shift": Shift()},
    }
    if name not in fitting[outcome]:
        raise BadInput(
            f"link={name!r} does not fit outcome={outcome!r}: use one of {', '.join(fitting[outcome])}"
        )
    return fitting[outcome][name]


def made_mix(
    outcome: str, size: float, clip: float, made_head: Callable[[Schedule, float], Margin]
) -> Mix:
    """Raw and six rates mixed by their loss (Bayes weights for log loss, else AdaHedge), then one last step."""
    experts = [made_head(Constant(rate / size), CAP_EXPERTS) for rate in RATES[outcome]]
    final = made_head(Constant(FINAL[outcome] / size), CAP_FINAL[outcome])
    binary = outcome == "binary"
    judge: Loss = LogLoss(clip) if binary else Squared()
    return Mix(experts, final, PointJudge(judge), adaptive=not binary, raw=True)
