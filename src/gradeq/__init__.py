"""gradeq keeps deployed predictions honest: online layers with an exact certificate.

A layer sits on top of any black-box prediction, serves an adjusted one, and learns from each label when it comes, so
that over ANY sequence a chosen average error goes to zero. Names are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gradeq._version import __version__

if TYPE_CHECKING:
    from gradeq import (
        datasets,
        errors,
        geometries,
        links,
        losses,
        penalties,
        regret,
        schedules,
        theory,
    )
    from gradeq.checks import check_loss
    from gradeq.engine.learner import Learner
    from gradeq.equilibrium import Equilibrium
    from gradeq.errors import (
        BadInput,
        Diverging,
        ExpiredTicket,
        GradeqError,
        GradeqWarning,
        LabelConflict,
        MissingExtra,
        OtherSettings,
        ReplacedPrediction,
        StateError,
        StepTooLarge,
        TicketError,
        UnknownTicket,
    )
    from gradeq.layers.conformal import Conformal
    from gradeq.layers.debiaser import Debiaser
    from gradeq.layers.elo import Elo
    from gradeq.layers.ensemble import QuantileEnsemble
    from gradeq.layers.keyed import Keyed
    from gradeq.layers.quantile import IntervalTracker, MultiQuantileTracker, QuantileTracker
    from gradeq.layers.registry import from_json, load
    from gradeq.layers.risk import RiskControl
    from gradeq.ledger.values import Posting, Ticket
    from gradeq.links import Exp, Identity, Logit, Multiplicative, Shift, Sigmoid, Sinh
    from gradeq.losses import (
        Absolute,
        Expectile,
        Huber,
        Linear,
        Logistic,
        LogLoss,
        Poisson,
        Quantile,
        Squared,
    )
    from gradeq.penalties import Lasso, Ridge
    from gradeq.schedules import Called, Constant, Listed, Piecewise, Power

__all__ = [
    "Absolute",
    "BadInput",
    "Called",
    "Conformal",
    "Constant",
    "Debiaser",
    "Diverging",
    "Elo",
    "Equilibrium",
    "Exp",
    "Expectile",
    "ExpiredTicket",
    "GradeqError",
    "GradeqWarning",
    "Huber",
    "Identity",
    "IntervalTracker",
    "Keyed",
    "LabelConflict",
    "Lasso",
    "Learner",
    "Linear",
    "Listed",
    "LogLoss",
    "Logistic",
    "Logit",
    "MissingExtra",
    "MultiQuantileTracker",
    "Multiplicative",
    "OtherSettings",
    "Piecewise",
    "Poisson",
    "Posting",
    "Power",
    "Quantile",
    "QuantileEnsemble",
    "QuantileTracker",
    "ReplacedPrediction",
    "Ridge",
    "RiskControl",
    "Shift",
    "Sigmoid",
    "Sinh",
    "Squared",
    "StateError",
    "StepTooLarge",
    "Ticket",
    "TicketError",
    "UnknownTicket",
    "__version__",
    "check_loss",
    "datasets",
    "errors",
    "from_json",
    "geometries",
    "links",
    "load",
    "losses",
    "penalties",
    "regret",
    "schedules",
    "theory",
]

_HOMES = {
    "gradeq.checks": "check_loss",
    "gradeq.engine.learner": "Learner",
    "gradeq.equilibrium": "Equilibrium",
    "gradeq.errors": (
        "BadInput Diverging ExpiredTicket GradeqError GradeqWarning LabelConflict MissingExtra OtherSettings "
        "ReplacedPrediction StateError StepTooLarge TicketError UnknownTicket"
    ),
    "gradeq.layers.conformal": "Conformal",
    "gradeq.layers.debiaser": "Debiaser",
    "gradeq.layers.elo": "Elo",
    "gradeq.layers.ensemble": "QuantileEnsemble",
    "gradeq.layers.keyed": "Keyed",
    "gradeq.layers.quantile": "IntervalTracker MultiQuantileTracker QuantileTracker",
    "gradeq.layers.registry": "from_json load",
    "gradeq.layers.risk": "RiskControl",
    "gradeq.ledger.values": "Posting Ticket",
    "gradeq.links": "Exp Identity Logit Multiplicative Shift Sigmoid Sinh",
    "gradeq.losses": "Absolute Expectile Huber Linear LogLoss Logistic Poisson Quantile Squared",
    "gradeq.penalties": "Lasso Ridge",
    "gradeq.schedules": "Called Constant Listed Piecewise Power",
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        value = getattr(import_module(_HOME_OF[name]), name)
        globals()[name] = value
        return value
    if name in __all__:
        return import_module(f"gradeq.{name}")
    raise AttributeError(f"module 'gradeq' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
