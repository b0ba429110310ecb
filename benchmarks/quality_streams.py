"""Real streams of predictions and labels with times and groups: what ``python -m benchmarks.quality`` runs on.

A base model is frozen before its stream begins, as in practice: a regression fitted on the first months, or a public
forecast. What is foretold of a day is known a day later at the earliest, half-hours and hours two hours later.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from gradeq.datasets import climate, compas, covid, elec2, flights, football, french, helpsteer
from gradeq.datasets.flights import fit_additive

HOURS = 1.0 / 24.0
SOON = 2.0 * HOURS
LATE = 15.0  # minutes: a flight later than this counts as late
LEVEL = 0.9
DESIGN = "design"  # the defaults were chosen on these; on all others they were only tried
HELD_OUT = "held out"
SHUFFLED = "shuffled"  # no drift: whatever is learned beyond the mean of a group is noise


class Stream(NamedTuple):
    """Columns by time of serving, in days; ``known``: when a label is known at the earliest.

    ``kind``: real, binary or quantile (at level 0.9).
    """

    name: str
    role: str
    kind: str
    f: Any
    y: Any
    group: Any
    served: Any
    known: Any

    @property
    def month(self) -> Any:
        """Numbers of months of 30.4 days."""
        return (self.served // 30.4375).astype(int)


def streams() -> Iterator[Stream]:
    """All of them."""
    for own in (of_flights, of_elec2, of_french, of_covid, of_compas, of_climate, of_rest):
        found = list(own())
        yield from found
    for stream in (*of_flights(), *of_elec2()):
        if stream.name in ("flights late, carrier", "flights delay, carrier", "elec2 price"):
            yield shuffled(stream)


def days(times: Any) -> Any:
    """Times as days since the first of 1970."""
    return times.astype("datetime64[s]").astype(float) / 86400.0


def shuffled(stream: Stream) -> Stream:
    """The same rows at times drawn anew."""
    order = np.random.default_rng(1).permutation(len(stream.y))
    f, y, group = stream.f[order], stream.y[order], stream.group[order]
    return stream._replace(name=f"{stream.name}, shuffled", role=SHUFFLED, f=f, y=y, group=group)


def of_flights() -> Iterator[Stream]:
    """Delay at arrival, delay at departure, and whether a flight is late, foretold three hours before departure."""
    data = flights.load()
    table = flights.table(None)
    arrival = table.column("arr_delay").to_numpy().astype(float)
    flown = np.isfinite(arrival)
    month, clock, day = (
        table.column(name).to_numpy()[flown].astype(int) for name in ("month", "sched_dep_time", "day")
    )
    names = [np.array(table.column(name).to_pylist(), str)[flown] for name in ("carrier", "origin", "dest")]
    training = month <= flights.TRAINING_MONTHS
    minutes = ((month * 31 + day) * 24 + clock // 100) * 60 + clock % 100
    order = np.flatnonzero(~training)
    order = order[np.argsort(minutes[order], kind="stable")]

    def foretold(target: Any) -> Any:
        return fit_additive([*names, clock // 100], target, training)[order]

    late = (arrival[flown] > LATE).astype(float)
    departure = table.column("dep_delay").to_numpy()[flown].astype(float)
    chance = np.clip(foretold(late), 0.01, 0.99)
    when = (days(data.served), days(data.landed))
    gone = (when[0], np.minimum(when[1], when[0] + 3.0 * HOURS + departure[order] / 1440.0))
    left, first = (departure > LATE).astype(float), foretold(departure)
    yield Stream("flights late, carrier", DESIGN, "binary", chance, late[order], data.carrier, *when)
    yield Stream("flights delay, origin", DESIGN, "real", data.prediction, data.delay, data.origin, *when)
    yield Stream("flights delay, carrier", HELD_OUT, "real", data.prediction, data.delay, data.carrier, *when)
    yield Stream("flights late, dest", HELD_OUT, "binary", chance, late[order], data.dest, *when)
    yield Stream("flights departure, carrier", HELD_OUT, "real", first, departure[order], data.carrier, *gone)
    chance = np.clip(foretold(left), 0.01, 0.99)
    yield Stream("flights left late, origin", HELD_OUT, "binary", chance, left[order], data.origin, *gone)
    yield Stream("flights delay, origin", DESIGN, "quantile", data.prediction, data.delay, data.origin, *when)
    yield Stream("flights delay, carrier", HELD_OUT, "quantile", data.prediction, data.delay, data.carrier, *when)
    yield Stream("flights departure, carrier", HELD_OUT, "quantile", first, departure[order], data.carrier, *gone)


def of_elec2() -> Iterator[Stream]:
    """Demand, price and transfer in half-hours: a regression on the day and the week before, fitted on 100 days."""
    data = elec2.load()
    hour = (np.round(data.period * 47).astype(int) // 2).astype(str)
    weekday = data.day.astype(str)
    for name, column, group, kinds in (
        ("demand", data.nswdemand, hour, ("real", "quantile")),
        ("price", data.nswprice, hour, ("real", "quantile")),
        ("demand of Victoria", data.vicdemand, weekday, ("real",)),
        ("transfer", data.transfer, hour, ("real",)),
        ("price rises", (data.trend == "UP").astype(float), hour, ("binary",)),
    ):
        lags = [np.roll(column, 48), np.roll(column, 336)]
        f, rows = regression(lags, column, slice(336, 4800))
        served = 9600.0 + np.arange(len(column))[rows] / 48.0
        f = np.clip(f, 0.01, 0.99) if kinds == ("binary",) else f
        own = (f, column[rows], group[rows], served, served + SOON)
        for kind in kinds:
            yield Stream(f"elec2 {name}", HELD_OUT, kind, *own)


def of_french() -> Iterator[Stream]:
    """Prices by the hour: a regression on the day and the week before and demand, fitted on 2016."""
    data = french.load()
    at = np.arange(len(data.spot))
    lags = [data.day_before[at, data.hour], data.week_before[at, data.hour], data.demand]
    f, rows = regression(lags, data.spot, slice(0, 8760))
    served = days(data.time)[rows]
    own = (f, data.spot[rows], data.hour.astype(str)[rows], served, served + SOON)
    yield Stream("french prices, hour", DESIGN, "real", *own)
    yield Stream("french prices, hour", DESIGN, "quantile", *own)


def of_covid() -> Iterator[Stream]:
    """Deaths one to four weeks ahead: the median, and the quantile at 0.9; known once the week has passed."""
    data = covid.load()
    order = np.flatnonzero(np.isfinite(data.deaths))
    order = order[np.argsort(data.forecast_date[order], kind="stable")]
    when = (days(data.forecast_date)[order], days(data.target_date)[order] + 1.0)
    y, horizon, place = data.deaths[order], data.horizon.astype(str)[order], data.place[order]
    median = data.quantiles[order, covid.LEVELS.index(0.5)]
    high = data.quantiles[order, covid.LEVELS.index(LEVEL)]
    yield Stream("covid deaths, horizon", HELD_OUT, "real", median, y, horizon, *when)
    yield Stream("covid deaths, state", HELD_OUT, "real", median, y, place, *when)
    yield Stream("covid deaths, horizon", HELD_OUT, "quantile", high, y, horizon, *when)
    yield Stream("covid deaths, state", HELD_OUT, "quantile", high, y, place, *when)


def of_compas() -> Iterator[Stream]:
    """The paper's violent score against arrest, before April 2014 (later labels are of another kind)."""
    data = compas.load_paper()
    early = np.flatnonzero(data.date < np.datetime64("2014-04-01"))
    data = data.take(early)
    served = days(data.date)
    yield Stream(
        "compas, race", HELD_OUT, "binary", data.violent_score, data.is_recid, data.race, served, served + SOON
    )  # fmt: skip


def of_climate() -> Iterator[Stream]:
    """Temperature and humidity of Delhi by day: a regression on the day and the week before, fitted on a year."""
    data = climate.load()
    at = days(data.date)
    season = (data.date.astype("datetime64[M]").astype(int) % 12 // 3).astype(str)
    for name, column in (("temperature", data.meantemp), ("humidity", data.humidity)):
        f, rows = regression([np.roll(column, 1), np.roll(column, 7)], column, slice(7, 365))
        served = at[rows]
        own = (f, column[rows], season[rows], served, served + 1.0)
        yield Stream(f"climate {name}, season", HELD_OUT, "real", *own)
        yield Stream(f"climate {name}, season", HELD_OUT, "quantile", *own)


def of_rest() -> Iterator[Stream]:
    """Football since 2000 (did the home side win?) and the ratings of answers by a reward model, in file order."""
    matches = football.load()
    ground = np.where(matches.neutral, "neutral", "home")
    rows = np.flatnonzero(matches.date >= np.datetime64("2000-01-01"))
    won = (matches.winner == "home").astype(float)
    earlier = matches.date < np.datetime64("2000-01-01")
    chance = fit_additive([ground, matches.home, matches.away], won, earlier)
    served = days(matches.date)[rows]
    yield Stream(
        "football, ground", HELD_OUT, "binary", np.clip(chance, 0.02, 0.98)[rows], won[rows], ground[rows],
        served, served + 1.0,
    )  # fmt: skip
    data = helpsteer.load()
    f, rows = regression([data.reward], data.helpfulness, slice(0, 200))
    served = 19000.0 + np.arange(len(f)) / 24.0
    group = data.verbosity[rows].astype(int).astype(str)
    yield Stream(
        "helpsteer, verbosity", HELD_OUT, "real", f, data.helpfulness[rows], group, served, served + SOON
    )  # fmt: skip


def regression(inputs: Any, target: Any, training: slice) -> tuple[Any, slice]:
    """Least squares fitted on some rows, foretold for all rows after them, which come second."""
    table = np.column_stack([np.ones(len(target)), *inputs])
    weights = np.linalg.lstsq(table[training], target[training], rcond=None)[0]
    rows = slice(training.stop, len(target))
    return np.round(table[rows] @ weights, 6), rows
