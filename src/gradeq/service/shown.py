"""A layer as JSON shows it: where it stands, and what it has reached."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from gradeq.learning import learning_of
from gradeq.report.of_state import (
    coverages_of,
    covered_since,
    groups_since,
    harm_since,
    heard_only,
    in_short,
    stated,
    taken_back,
)
from gradeq.service.failures import LayerStopped, NoSuchLayer
from gradeq.service.wording import in_settings

if TYPE_CHECKING:
    from gradeq.equilibrium import Equilibrium
    from gradeq.service.desk import Desk
    from gradeq.service.live import Live

MOST = 1_000  # parameters and groups of one answer


class Pair(Struct):
    """A figure of the raw predictions and of what was served; null where there is none."""

    before: float | None
    after: float | None


class Shown(Struct):
    """Where a layer stands.

    ``learning`` is false while it is frozen or was stopped, ``stopped`` says why; ``seq`` is the last number of
    its journal; ``open`` counts predictions whose label has not come.
    """

    layer: str
    kind: str
    settings: dict[str, Any]
    created: float
    served: int
    labelled: int
    open: int
    seq: int
    learning: bool
    stopped: str


def standing(live: Live) -> Shown:
    """Where a layer stands."""
    row, flight, stopped = live.row, live.layer.in_flight, live.stopped
    served, labelled = int(flight["served"]), int(flight["labelled"])
    settings = {name: value for name, value in row.spec.items() if name not in ("kind", "state")}
    return Shown(
        row.name,
        str(row.spec["kind"]),
        settings,
        row.created,
        served,
        labelled,
        max(0, served - labelled),
        live.head.seq,
        not live.layer.frozen and not stopped,
        stopped,
    )


def all_standing(desk: Desk, tenant: str) -> list[Shown]:
    """Where all layers of a tenant stand, those that are damaged too."""
    found = []
    for name in desk.names(tenant):
        try:
            with desk.reading(tenant, name) as live:
                found.append(standing(live))
        except LayerStopped as error:
            row = desk.store.layer(tenant, name)
            kind = "" if row is None else str(row.spec["kind"])
            created = 0.0 if row is None else row.created
            found.append(Shown(name, kind, {}, created, 0, 0, 0, 0, False, str(error)))
        except NoSuchLayer:
            continue  # removed meanwhile
    return found


class Reached(Struct):
    """What a layer has reached since it began, over the labels it learned from.

    ``bias`` or ``coverage`` and ``loss``, before and after; ``certificate``: the averages from the labels and the
    same read off the state (``gap`` is how far they differ; ``exact``: by rounding alone; ``constant_step``: all
    labels had one step) and the proven bound of what the verdict says, ``vacuous`` if it says no more than what holds
    without learning, null where none is proven; ``parameters``: how many there are,
    of which at most 1,000 are shown, the largest averages first. ``learning`` is false while it is frozen or was
    stopped, ``stopped`` says why it stopped by itself. ``shadow``: raw values are served, and ``after`` is what would
    have been. ``paused``: labels that came while it was frozen, ``taken_back``: labels that were undone; both
    are among the ``labelled`` ones and in no average.
    """

    layer: str
    kind: str
    verdict: str
    rows: int
    served: int
    labelled: int
    step: float
    loss: dict[str, Any]
    certificate: dict[str, Any]
    groups: list[dict[str, Any]]
    parameters: int
    theta: dict[str, Any]
    lateness: dict[str, Any]
    warnings: list[dict[str, str]]
    learning: bool = True
    stopped: str = ""
    bias: Pair | None = None
    coverage: dict[str, Any] | list[dict[str, Any]] | None = None
    shadow: bool = False
    paused: int = 0
    taken_back: int = 0


def reached(live: Live) -> Reached:
    """What a layer has reached, computed from its state."""
    name, stopped = live.row.name, live.stopped
    layer: Any = live.layer
    found = layer.equilibrium()
    flight = layer.in_flight
    covered = covered_since(layer, found).get("coverage")
    none = not found.rows
    sides = Pair(None if none else found.bias_before, None if none else found.bias_after)
    return Reached(
        name,
        layer.kind,
        in_short(layer, found),
        found.rows,
        flight["served"],
        flight["labelled"],
        layer.step,
        {
            "name": found.loss_name,
            "before": None if none else found.loss_before,
            "after": None if none else found.loss_after,
        },
        _certified(layer, found),
        groups_since(layer, found)[:MOST],
        len(found.coordinates),
        _first(getattr(layer, "theta", {})),
        learning_of(layer)._asdict(),
        [asdict(in_settings(notice)) for notice in harm_since(layer, found)],
        not layer.frozen and not stopped,
        stopped,
        sides if covered is None else None,
        covered,
        bool(layer.shadow),
        heard_only(layer),
        taken_back(layer, found),
    )


def _certified(layer: Any, found: Equilibrium) -> dict[str, Any]:
    """The certificate in the words of the verdict: what is called exact or vacuous there is so here."""
    said = stated(found, coverages_of(layer, found) if found.rows else [])
    proven = said.bound is not None and math.isfinite(said.bound)
    return {
        **_fewer(said.certificate),
        "vacuous": bool(said.vacuous) if proven and found.rows else None,
        "exact": found.balance != "broken",
        "constant_step": found.exact,
    }


def _fewer(certificate: dict[str, Any]) -> dict[str, Any]:
    """The largest averages, where there are too many to show."""
    averages = certificate["average_gradient"]
    if len(averages) <= MOST:
        return certificate
    kept = sorted(averages, key=lambda name: -abs(averages[name] or 0.0))[:MOST]
    return {
        name: {one: value[one] for one in kept} if isinstance(value, dict) else value
        for name, value in certificate.items()
    }


def _first(theta: Any) -> dict[str, Any]:
    if not isinstance(theta, dict):
        return {}
    return dict(list(theta.items())[:MOST])
