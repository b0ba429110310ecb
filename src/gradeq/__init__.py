"""gradeq keeps deployed predictions honest: online layers with an exact certificate.

A layer sits on top of any black-box prediction, serves an adjusted one, and learns from each label when it comes, so
that over ANY sequence a chosen average error goes to zero. Names are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gradeq._version import __version__ as __version__

if TYPE_CHECKING:  # "as" makes a name public for type checkers
    from gradeq import datasets as datasets
    from gradeq import errors as errors
    from gradeq import geometries as geometries
    from gradeq import links as links
    from gradeq import losses as losses
    from gradeq import penalties as penalties
    from gradeq import regret as regret
    from gradeq import schedules as schedules
    from gradeq import theory as theory
    from gradeq.checks import check_loss as check_loss
    from gradeq.engine.learner import Learner as Learner
    from gradeq.equilibrium import Equilibrium as Equilibrium
    from gradeq.errors import BadInput as BadInput
    from gradeq.errors import Diverging as Diverging
    from gradeq.errors import ExpiredTicket as ExpiredTicket
    from gradeq.errors import GradeqError as GradeqError
    from gradeq.errors import GradeqWarning as GradeqWarning
    from gradeq.errors import LabelConflict as LabelConflict
    from gradeq.errors import MissingExtra as MissingExtra
    from gradeq.errors import OtherSettings as OtherSettings
    from gradeq.errors import ReplacedPrediction as ReplacedPrediction
    from gradeq.errors import StateError as StateError
    from gradeq.errors import StepTooLarge as StepTooLarge
    from gradeq.errors import TicketError as TicketError
    from gradeq.errors import UnknownTicket as UnknownTicket
    from gradeq.layers.conformal import Conformal as Conformal
    from gradeq.layers.debiaser import Debiaser as Debiaser
    from gradeq.layers.elo import Elo as Elo
    from gradeq.layers.ensemble import QuantileEnsemble as QuantileEnsemble
    from gradeq.layers.keyed import Keyed as Keyed
    from gradeq.layers.quantile import IntervalTracker as IntervalTracker
    from gradeq.layers.quantile import MultiQuantileTracker as MultiQuantileTracker
    from gradeq.layers.quantile import QuantileTracker as QuantileTracker
    from gradeq.layers.registry import from_json as from_json
    from gradeq.layers.registry import load as load
    from gradeq.layers.risk import RiskControl as RiskControl
    from gradeq.ledger.values import Posting as Posting
    from gradeq.ledger.values import Ticket as Ticket
    from gradeq.links import Exp as Exp
    from gradeq.links import Identity as Identity
    from gradeq.links import Logit as Logit
    from gradeq.links import Multiplicative as Multiplicative
    from gradeq.links import Shift as Shift
    from gradeq.links import Sigmoid as Sigmoid
    from gradeq.links import Sinh as Sinh
    from gradeq.losses import Absolute as Absolute
    from gradeq.losses import Expectile as Expectile
    from gradeq.losses import Huber as Huber
    from gradeq.losses import Linear as Linear
    from gradeq.losses import Logistic as Logistic
    from gradeq.losses import LogLoss as LogLoss
    from gradeq.losses import Poisson as Poisson
    from gradeq.losses import Quantile as Quantile
    from gradeq.losses import Squared as Squared
    from gradeq.penalties import Lasso as Lasso
    from gradeq.penalties import Ridge as Ridge
    from gradeq.schedules import Called as Called
    from gradeq.schedules import Constant as Constant
    from gradeq.schedules import Listed as Listed
    from gradeq.schedules import Piecewise as Piecewise
    from gradeq.schedules import Power as Power

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
_MODULES = ("datasets", "errors", "geometries", "links", "losses", "penalties", "regret", "schedules", "theory")
__all__ = sorted([*_HOME_OF, *_MODULES, "__version__"])


def __getattr__(name: str) -> Any:
    if name in _HOME_OF:
        value = getattr(import_module(_HOME_OF[name]), name)
        globals()[name] = value
        return value
    if name in _MODULES:
        return import_module(f"gradeq.{name}")
    raise AttributeError(f"module 'gradeq' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
