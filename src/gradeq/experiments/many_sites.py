"""One layer at many sites: bias, loss and what is proven against their number and the delay, and what breaks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gradeq.experiments.averages import Floats
from gradeq.experiments.experiment import Experiment, Number, Result
from gradeq.experiments.sheet import (
    AFTER,
    BEFORE,
    SECOND,
    SERIES,
    Level,
    Line,
    Look,
    Mark,
    Panel,
    Sheet,
)
from gradeq.experiments.sites import FAR, Network, Simulation, Told, stream
from gradeq.experiments.source import Source

ROWS = 4800
ETA = 0.05
SITES = (4, 16, 64)
DELAYS = (0, 2, 8, 32)
SOME, DELAY = 8, 4  # sites and ticks where something else varies
MASSES = (0.5, 1.0, 1.5, 2.0, 3.0)
LOST = (0.0, 0.1, 0.2, 0.4)
ROUGH = Network(DELAY, jitter=4, lost=0.2, twice=0.2, again=20)


def grid(base: Floats, labels: Floats) -> dict[tuple[int, int], Told]:
    """Every number of sites with every delay, nothing lost."""
    return {
        (sites, delay): Simulation(sites, Network(delay), ETA).run(base, labels)
        for sites in SITES
        for delay in DELAYS
    }


def uncapped(base: Floats, labels: Floats, latest: float) -> dict[float, Told]:
    """Constant steps without the late-label cap: eta times the largest lateness is each of MASSES."""
    return {
        mass: Simulation(SOME, Network(DELAY), mass / latest, late_cap=None).run(base, labels)
        for mass in MASSES
    }


def lossy(base: Floats, labels: Floats) -> dict[float, Told]:
    """Long messages lost, and never sent again."""
    return {
        lost: Simulation(SOME, Network(DELAY, lost=lost, long_only=True), ETA).run(base, labels)
        for lost in LOST
    }


def run(source: Source) -> Result:
    """All of it."""
    base, labels = stream(ROWS)
    found, rough = grid(base, labels), Simulation(SOME, ROUGH, ETA).run(base, labels)
    calm = Simulation(SOME, Network(DELAY), ETA).run(base, labels)
    free, losing = uncapped(base, labels, calm.latest), lossy(base, labels)
    doubled = Simulation(SOME, Network(DELAY, twice=0.2, numbered=False), ETA).run(base, labels)
    numbers = [
        Number("bias before", calm.bias_before),
        Number("mean squared error before", calm.loss_before),
    ]
    for (sites, delay), told in found.items():
        where = f"{sites} sites, delay {delay}"
        numbers += [
            Number(f"bias, {where}", told.bias, None, told.certified, 1e-9),
            Number(f"bound, {where}", math.inf if told.bound is None else told.bound),
            Number(f"mean squared error, {where}", told.loss),
            Number(f"largest lateness, {where}", told.latest),
        ]
    numbers += [
        Number("rows missing, sent again until answered", float(rough.missing), None, 0.0, 0.0),
        Number("audit gap, sent again until answered", rough.gap, None, 0.0, 0.0),
        Number("rows missing, 0.2 lost", float(losing[0.2].missing)),
        Number("audit gap, 0.2 lost", losing[0.2].gap),
        Number("bias, 0.2 lost", losing[0.2].bias),
        Number("bias as certified, 0.2 lost", losing[0.2].certified),
        Number("rows missing, not numbered", float(doubled.missing)),
        Number("audit gap, not numbered", doubled.gap),
        *(Number(f"mean squared error, η P = {mass:g}", told.loss) for mass, told in free.items()),
    ]
    text = (
        f"{SITES[0]} to {SITES[-1]} sites, up to {DELAYS[-1]} ticks each way. The bias is "
        f"{abs(found[SITES[0], 0].bias):.3f} to {abs(found[SITES[-1], DELAYS[-1]].bias):.2f}, without a layer "
        f"{abs(calm.bias_before):.2f}: it grows with what is in flight, sites times delay. Messages that are lost or "
        f"doubled and sent again until they are answered leave {rough.missing} rows out and an audit gap of "
        f"{rough.gap:g}. Long messages lost for good leave a bias of {losing[0.4].bias:+.2f} where the ledger says "
        f"{losing[0.4].certified:+.2f}; the audit misses {losing[0.4].missing:,} rows. A constant step without the "
        f"cap is safe while η P < 1 and grows without limit from about π / 2 on."
    )
    return Result(text, tuple(numbers), {"": sheet(found, free, losing)}, "invented, seeded")


def sheet(
    found: dict[tuple[int, int], Told], free: dict[float, Told], losing: dict[float, Told]
) -> Sheet:
    """The picture."""
    ticks = np.array(DELAYS) + 1.0  # a message takes a tick at least
    before = next(iter(found.values()))
    raw = Level(before.loss_before, "no layer")

    def by_delay(value: str) -> list[Mark]:
        """One line for each number of sites."""
        each = [[getattr(found[sites, delay], value) for delay in DELAYS] for sites in SITES]
        return [
            Line(ticks, np.abs(np.array(own, dtype=float)), f"{sites} sites", look)
            for sites, own, look in zip(SITES, each, SERIES, strict=False)
        ]

    def by_share(value: str, label: str, look: Look) -> Line:
        """One line over the shares lost."""
        own = [abs(float(getattr(told, value))) for told in losing.values()]
        return Line(np.array(list(losing)), np.array(own), label, look._replace(marker="o"))

    exploded = np.array([told.loss for told in free.values()])
    steps = Line(np.array(list(free)), exploded, f"{SOME} sites", AFTER._replace(marker="o"))
    over: Any = {"x": "ticks each way", "x_scale": "log"}
    lost = "share of long messages lost"
    level = Level(abs(before.bias_before), "no layer")
    panels = [
        Panel(title="Bias", y="|bias|", marks=[*by_delay("bias"), level], y_scale="log", **over),
        Panel(
            title="Proven bound of the bias",
            y="bound",
            marks=[*by_delay("bound"), Level(FAR, "largest error: vacuous above")],
            y_scale="log",
            **over,
        ),
        Panel(title="Mean squared error", y="loss", marks=[*by_delay("loss"), raw], **over),
        Panel(
            title="Staleness",
            y="largest lateness, rows",
            marks=by_delay("latest"),
            y_scale="log",
            **over,
        ),
        Panel(
            "Constant step, no cap",
            "η P: step times largest lateness",
            "mean squared error",
            [steps, raw],
            y_scale="log",
        ),
        Panel(
            "Lost for good: bias",
            lost,
            "|bias|",
            [
                by_share("bias", "served", AFTER),
                by_share("certified", "as the ledger has it", SECOND),
            ],
            y_limits=(0.0, None),
        ),
        Panel(
            "Lost for good: the audit",
            lost,
            "rows missing",
            [by_share("missing", "missing", BEFORE)],
            legend="",
            y_limits=(0.0, None),
        ),
    ]
    return Sheet(panels, (2, 4), (17.0, 7.0))


EXPERIMENT = Experiment(
    name="many-sites",
    title="One layer at many sites, with late, lost and doubled messages",
    figure="beyond the paper",
    chapter="beyond",
    needs=(),
    shows="What do bias, loss and the proven bound cost when many sites serve from a ledger that hears of them late, "
    "and what breaks when messages are lost or steps too large?",
    corrected="The paper has one machine.",
    run=run,
)
