"""Made-up stories that need no data: many rows, many groups, hostile names, an interval."""

import numpy as np

from gradeq.report import notices as say
from gradeq.report.rolling import Blocks, StreamHistogram, numbers, window
from gradeq.report.story import (
    BeforeAfter,
    Certificate,
    CoverageFigures,
    Fact,
    Group,
    LossFigures,
    ManySeries,
    Method,
    NamedCurve,
    Notice,
    Provenance,
    Rolling,
    RollingError,
    Spark,
    StepPoint,
    Story,
    ThetaPanel,
    Verdict,
    WideSeries,
    Worked,
    Worst,
)
from report.samples import AT, HOSTILE, VERSIONS


def made_up(rows: int = 3000, groups: int = 2, hostile: str = "", seed: int = 1) -> Story:
    """A regression in minutes, by one column of many groups; no data files needed."""
    rng = np.random.default_rng(seed)
    label = rng.normal(20.0, 8.0, rows)
    before = label + 4.0 + rng.normal(0, 5.0, rows)
    correction = 4.0 * (1 - np.exp(-np.arange(rows) / max(rows / 30, 1)))
    after = before - correction
    codes = rng.integers(0, groups, rows)
    codes[: min(groups, rows)] = np.arange(min(groups, rows))
    blocks = Blocks(("before", "after", "label"))
    parts = Blocks(("before", "after"), 200, 1024)
    for start in range(0, rows, 100_000):
        cut = slice(start, start + 100_000)
        chunk = {"before": before[cut], "after": after[cut], "label": label[cut]}
        blocks.add(chunk)
        parts.add({"before": (before - label)[cut], "after": (after - label)[cut]}, codes=codes[cut])
    series = blocks.trailing(window(rows))
    sizes = np.bincount(codes, minlength=groups)
    made = []
    for j in range(groups):
        mine = codes == j if groups <= 500 else slice(j, j + 1)
        small = parts.group_trailing(j)
        shown = Spark(tuple(small.x), numbers(small.means["before"]), numbers(small.means["after"]))
        made.append(
            Group(
                "carrier",
                f"{hostile} {j}" if hostile else f"group {j}",
                int(sizes[j]),
                float(label[mine].mean()),
                float((before - label)[mine].mean()),
                float((after - label)[mine].mean()),
                BeforeAfter(float(((before - label)[mine] ** 2).mean()), float(((after - label)[mine] ** 2).mean())),
                120.0 / max(int(sizes[j]), 1),
                spark=shown if len(small.x) > 1 else None,
            )
        )
    tally = StreamHistogram()
    tally.add(after)
    error = after - label
    now = max(made, key=lambda g: abs(g.after))
    was = max(made, key=lambda g: abs(g.before))
    theta = tuple(NamedCurve(g.name, numbers(-correction[:: max(rows // 300, 1)])) for g in made[:6])
    return Story(
        kind="debias",
        made=Provenance("flights.csv",
                  "gradeq debias flights.csv --prediction forecast --label delay --by carrier",
                  "state.json", at=AT, version="0.1.0", versions=VERSIONS),
        prediction=("forecast",), label="delay", by=("carrier",), outcome="real", unit="minutes",
        rows=rows, labelled=rows,
        verdict=Verdict(
            LossFigures("squared error", float(((before - label) ** 2).mean()),
                 float((error**2).mean())),
            Certificate(abs(float(error.mean())), 900.0 / rows, 0.0, exact=False),
            BeforeAfter(float((before - label).mean()), float(error.mean())),
            worst=Worst(was.name, was.before, now.name, now.after),
        ),
        method=Method("identity", (Worked(now.name, now.rows, -4.0, now.after, None,
                                          now.after * now.rows),), exact=False),
        notices=(say.steps_capped(0.0025, 12_000, "409 rows", "you asked for 0.05"),
                 Notice("red", f"Learning stopped: {HOSTILE}.", HOSTILE, f"`{HOSTILE}`")),
        rolling=Rolling(
            "row", "row", series.window, tuple(series.x), numbers(series.means["before"]),
            numbers(series.means["after"]), numbers(series.means["label"]),
            (RollingError("", 0.0, numbers(series.means["before"] - series.means["label"]),
                     numbers(series.means["after"] - series.means["label"])),),
            begin=1.0,
        ),
        groups=tuple(made), groups_total=groups,
        frontier=tuple(StepPoint(s, 20 + 8 / (1 + 90 * s) + 30 * s, 4 / (1 + 400 * s), s == 0.01)
                       for s in (0.0, 0.001, 0.003, 0.01, 0.03, 0.1)),
        theta=(ThetaPanel("carrier", "row",
                     tuple(float(i + 1) for i in range(0, rows, max(rows // 300, 1))), theta),),
        theta_scale="in minutes",
        histogram=tally.histogram(),
        data=(Fact("Rows", f"{rows:,}"), Fact("Label", f"`delay` {HOSTILE}")),
        key=hostile, series=many(made, tally) if hostile else None,
    )  # fmt: skip


def many(made: list[Group], tally: StreamHistogram) -> ManySeries:
    """Series of a key, with the names and numbers of groups."""
    wide = tuple(WideSeries(g.name, g.rows, g.after, g.loss, 10.0 * g.loss.after) for g in made[:8])
    return ManySeries(4000, len(made), 0.7, 1.9, tally.histogram(), tuple(made[:10]), wide)


def interval(rows: int = 20_000, seed: int = 2) -> Story:
    """A 90 % interval of a made-up price, by weekday."""
    rng = np.random.default_rng(seed)
    t = np.arange(rows)
    label = 40 + 6 * np.sin(t / 500) + rng.normal(0, 3 + 2 * (t > rows / 2), rows)
    centre = 40 + 6 * np.sin(t / 500)
    lower, upper = centre - 1.645 * 3, centre + 1.645 * 3
    grow = 1.0 + 0.66 * (t > rows / 2) * (1 - np.exp(-(t - rows / 2) / 400))
    low, high = centre - 4.93 * grow, centre + 4.93 * grow
    was = ((lower < label) & (label <= upper)).astype(float)
    now = ((low < label) & (label <= high)).astype(float)
    names = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
    codes = t // 48 % 7
    blocks = Blocks(("lower", "upper", "low", "high", "label", "was", "now"))
    blocks.add({"lower": lower, "upper": upper, "low": low, "high": high, "label": label,
                "was": was, "now": now})  # fmt: skip
    s = blocks.trailing(window(rows))
    parts = Blocks(("was", "now"), 200, 1024)
    parts.add({"was": was, "now": now}, codes=codes)
    groups = []
    for j, name in enumerate(names):
        mine = codes == j
        small = parts.group_trailing(j)
        groups.append(
            Group(
                "weekday",
                name,
                int(mine.sum()),
                float(label[mine].mean()),
                float(was[mine].mean()),
                float(now[mine].mean()),
                BeforeAfter(1.231, 1.164),
                0.0213,
                target=0.9,
                spark=Spark(tuple(small.x), numbers(small.means["was"]), numbers(small.means["now"])),
            )
        )
    before = max(groups, key=lambda g: abs(g.before - 0.9))
    after = max(groups, key=lambda g: abs(g.after - 0.9))
    tally = StreamHistogram()
    tally.add(np.stack([low, high], 1).ravel())
    return Story(
        kind="quantile",
        made=Provenance("elec2.csv.gz",
                  "gradeq quantile elec2.csv.gz --prediction lo --prediction hi --label price \\\n"
                  "  --interval 0.9 --by weekday --report report.html", at=AT, version="0.1.0", versions=VERSIONS),
        prediction=("lo", "hi"), label="price", by=("weekday",), outcome="real",
        unit="", rows=rows, labelled=rows,
        verdict=Verdict(
            LossFigures("pinball loss", 1.231, 1.164),
            Certificate(abs(float(now.mean()) - 0.9), 0.0121, 3.3e-16), None,
            (CoverageFigures("interval", 0.9, float(was.mean()), float(now.mean())),),
            Worst(before.name, before.before - 0.9, after.name, after.after - 0.9),
        ),
        method=Method("sinh", (Worked("Monday", groups[0].rows, -1.25, groups[0].after - 0.9, 0.1),)),
        rolling=Rolling(
            "row", "row", s.window, tuple(s.x), numbers(s.means["lower"]), numbers(s.means["low"]),
            numbers(s.means["label"]),
            (RollingError("interval", 0.9, numbers(s.means["was"]), numbers(s.means["now"])),),
            numbers(s.means["upper"]), numbers(s.means["high"]), begin=1.0,
        ),
        groups=tuple(groups), groups_total=7,
        histogram=tally.histogram(),
        data=(Fact("Rows", f"{rows:,}"),),
    )  # fmt: skip
