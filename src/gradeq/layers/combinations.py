"""Which options go together: one table, asked by every layer when it is made, walked whole by a test.

What is not refused here is supported: events, columns, late labels, saving, merging, certificate and bound (or the
reason why there is none).
"""

from __future__ import annotations

from typing import NamedTuple

from gradeq.errors import BadInput


class Refusal(NamedTuple):
    """Options that do not go together, and why, in one line."""

    options: frozenset[str]
    reason: str


def _refused(reason: str, *options: str) -> Refusal:
    return Refusal(frozenset(options), reason)


_AUTO_PENALTY = "eta='auto' does not go with a penalty; give a number for eta"
_AUTO_FEATURES = "eta='auto' does not go with features; give a number for eta"
_FEATURES_STEP = "eta is required with features: their size is not known in advance"
_BOTH = "give eta or a schedule, not both"
_KEYED_PENALTY = (
    "a layer with a penalty cannot be keyed; name the key as a group of a layer instead"
)
_KEYED_AUTO = "eta='auto' cannot be keyed: a key has too few labels; give a number for eta"
_POOL_STEP = "pool=True chooses its own steps; leave out eta, schedule, penalty and warm"
_POOL_ROWS = (
    "pool=True shares what is learned among keys, not among groups or features; leave them out"
)
_POOL_MEAN = (
    "pool=True is for quantile trackers; for means name the key as a group of one Debiaser instead"
)

_COMMON = (
    _refused(_BOTH, "eta", "schedule"),
    _refused(_BOTH, "auto", "schedule"),
    _refused(_AUTO_PENALTY, "auto", "penalty"),
    _refused(_AUTO_FEATURES, "auto", "features"),
    _refused(_FEATURES_STEP, "no step", "features"),
    _refused(_KEYED_PENALTY, "keyed", "penalty"),
    _refused(_KEYED_AUTO, "keyed", "auto"),
)
_QUANTILE = (
    *_COMMON,
    *(_refused(_POOL_STEP, "pool", own) for own in ("eta", "schedule", "penalty", "warm")),
    *(_refused(_POOL_ROWS, "pool", own) for own in ("groups", "features")),
    _refused("pool=True needs link='sinh', whose steps have no unit", "pool", "link linear"),
    _refused("eta='auto' needs link='sinh'; give a number for eta", "auto", "link linear"),
    _refused(
        "eta is required with link='linear': it has the unit of the labels",
        "no step",
        "link linear",
    ),
    _refused("warm=True needs link='sinh'", "warm", "link linear"),
    _refused("warm=True does not go with features", "warm", "features"),
    _refused("warm=True does not go with a penalty, which pulls to zero", "warm", "penalty"),
)
_SEVERAL = (
    *_QUANTILE,
    _refused("a penalty goes with one level; leave it out, or track each level alone", "penalty"),
)

TABLE: dict[str, tuple[Refusal, ...]] = {
    "debias": (
        *_COMMON,
        _refused(_POOL_MEAN, "pool"),
        _refused("eta='auto' is for the links identity and logit, not exp", "auto", "link exp"),
        _refused("eta='auto' is for the links identity and logit, not shift", "auto", "link shift"),
        _refused(
            "support does not go with link exp, which stays above 0 by itself; use link identity",
            "support",
            "link exp",
        ),
    ),
    "conformal": _QUANTILE,
    "quantile": _QUANTILE,
    "quantiles": _SEVERAL,
    "interval": _SEVERAL,
    "elo": (
        _refused("give one of eta, k and a schedule", "eta", "schedule"),
        _refused("give one of eta, k and a schedule", "auto", "schedule"),
        _refused("give one of eta, k and a schedule", "k", "schedule"),
        _refused("give one of eta, k and a schedule", "eta", "k"),
        _refused("give one of eta, k and a schedule", "auto", "k"),
        _refused("give a penalty or a proximal strength, not both", "penalty", "proximal"),
        _refused(_AUTO_PENALTY, "auto", "penalty"),
        _refused(_AUTO_PENALTY, "auto", "proximal"),
    ),
}


def refusal(kind: str, options: set[str]) -> str | None:
    """Why these options of a layer do not go together; None if they do."""
    for entry in TABLE[kind]:
        if entry.options <= options:
            return entry.reason
    return None


def fits(kind: str, **given: bool) -> bool:
    """Whether options go together; names have _ for spaces (``link_exp``)."""
    return refusal(kind, _spelled(given)) is None


def _spelled(given: dict[str, bool]) -> set[str]:
    return {name.replace("_", " ") for name, there in given.items() if there}


def check(kind: str, **given: bool) -> None:
    """Refuse options that do not go together."""
    reason = refusal(kind, _spelled(given))
    if reason is not None:
        raise BadInput(reason)
