"""Many sites: one site is the library; what is sent again until answered counts once; the audit sees the rest."""

import re
from pathlib import Path

import pytest

from gradeq.layers.debiaser import Debiaser
from gradeq.paper.sites import Network, Simulation, stream

PAGE = Path(__file__).parents[2] / "docs" / "many-sites.md"
ROUGH = Network(delay=3, jitter=5, lost=0.3, twice=0.3, again=12)


def test_one_site_without_delay_is_the_library() -> None:
    base, labels = stream(300)
    layer = Debiaser(0.05)
    layer.run(base, labels)
    told = Simulation(1, Network(), 0.05).run(base, labels)
    assert told.theta == layer.theta["(all)"]
    assert told.bound == layer.equilibrium().bound and told.latest == 1.0


@pytest.mark.parametrize("seed", range(4))
def test_messages_that_are_lost_and_doubled_count_once_when_sent_again(seed) -> None:
    base, labels = stream(600, seed)
    told = Simulation(6, ROUGH, 0.05, seed=seed).run(base, labels)
    assert (told.rows, told.missing, told.gap) == (600, 0, 0.0)
    assert told.bias == pytest.approx(told.certified, abs=1e-12)
    assert told.bound is None or abs(told.bias) <= told.bound


@pytest.mark.parametrize(
    "network", [Network(3, lost=0.1), Network(3, lost=0.3, long_only=True), Network(3, twice=0.1, numbered=False)]
)
def test_what_is_lost_or_counted_twice_is_seen_by_the_audit(network) -> None:
    told = Simulation(6, network, 0.05).run(*stream(600))
    assert told.missing != 0 and told.gap != 0.0


def test_no_bound_is_exceeded_and_everything_is_posted(found) -> None:
    numbers = {number.name: number.ours for number in found("many-sites").numbers}
    grid = [name.removeprefix("bound, ") for name in numbers if name.startswith("bound, ")]
    assert len(grid) == 12
    for where in grid:
        assert abs(numbers[f"bias, {where}"]) <= numbers[f"bound, {where}"]
        assert abs(numbers[f"bias, {where}"]) < abs(numbers["bias before"])
        assert numbers[f"mean squared error, {where}"] < numbers["mean squared error before"]


def test_the_page_quotes_the_numbers_that_the_simulation_gives(found) -> None:
    """Every row of its tables begins with a name; numbers are those of the simulation as they are rounded there."""
    numbers = {number.name: number.ours for number in found("many-sites").numbers}
    page, compared = PAGE.read_text(encoding="utf-8"), 0
    for sites, delay, *shown in re.findall(
        r"^\| (\d+) \| (\d+) \| ([\d,]+) \| ([\d.]+) \| ([\d.,]+) \| ([\d.]+) \|$", page, re.M
    ):
        where = f"{sites} sites, delay {delay}"
        ours = [
            f"{numbers[f'largest lateness, {where}']:,.0f}",
            f"{abs(numbers[f'bias, {where}']):.2f}",
            f"{numbers[f'bound, {where}']:,.2f}",
            f"{numbers[f'mean squared error, {where}']:.2f}",
        ]
        assert shown == ours, where
        compared += 1
    for name, shown in re.findall(r"^\| `([^`]+)` \| (-?[\d.,e+]+) \|$", page, re.M):
        assert f"{numbers[name]:,.4g}" == shown, name
        compared += 1
    assert compared >= 20
