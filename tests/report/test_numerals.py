"""Numbers and dates are written by one set of rules."""

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradeq.cli import summary
from gradeq.equilibrium import Coordinate, Equilibrium
from gradeq.report import components
from gradeq.report import numerals as n

DAY = datetime(2014, 4, 2, 20, 20, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("value", "decimals", "sign", "text"),
    [
        (-0.1129, 3, True, "−0.113"),
        (0.1129, 3, True, "+0.113"),
        (0.1129, 3, False, "0.113"),
        (-0.0004, 3, True, "0.000"),
        (0.0004, 3, True, "0.000"),
        (0.0, 1, True, "0.0"),
        (-1234567.891, 1, False, "−1,234,567.9"),
        (6787, 0, False, "6,787"),
        (float("nan"), 3, False, "–"),
        (float("inf"), 3, False, "∞"),
        (float("-inf"), 3, True, "−∞"),
    ],
)
def test_minus_is_a_minus_and_zero_has_no_sign(value, decimals, sign, text):
    assert n.number(value, decimals, sign) == text


@given(st.floats(-1e12, 1e12), st.integers(0, 6))
def test_a_written_number_reads_back_within_rounding(value, decimals):
    text = n.number(value, decimals, sign=True)
    assert "-" not in text
    back = float(text.replace("−", "-").replace(",", "").replace("+", ""))
    assert abs(back - value) <= 0.5001 * 10.0**-decimals + 1e-4 * (abs(value) > 1e9)


def read(text):
    mantissa, power, exponent = text.replace(",", "").replace("−", "-").partition("×10")
    return float(f"{mantissa}e{exponent.translate(n.PLAIN_DIGITS)}" if power else mantissa)


@given(st.floats(1e-9, 1e14), st.integers(0, 9))
def test_a_written_limit_is_never_below_what_it_limits_and_by_less_than_its_last_digit(value, decimals):
    """A bound, or "within so much", is a claim: rounded to nearest it would be false every other time."""
    back = read(n.limit(value, decimals))
    assert value * (1.0 - 1e-11) <= back < value * (1.0 + 1e-11) + 10.0**-decimals


@given(st.floats(1e-9, 1e200))
def test_every_place_that_writes_a_bound_rounds_it_up(value):
    figure = Equilibrium(9, (Coordinate("(all)", 9, 0.0),), bound=value).verdict()
    written = [
        read(re.search(r"proven limit ([\d.e+-]+)$", figure)[1]),
        read(Equilibrium(9, (), bound=value).bound_in_words(summary.SHORT_BOUND).removeprefix("proven limit ")),
    ]
    if value < 1e14:
        written.append(read(components.bound_text(value)))
    for own in written:
        assert value * (1.0 - 1e-11) <= own <= 1.1 * value


def test_a_limit_that_is_written_exactly_stays_as_it_is():
    assert [n.limit(v, 2) for v in (0.05, 0.1 + 0.2, 0.07, 2.675, 0.0)] == ["0.05", "0.30", "0.07", "2.68", "0.00"]
    assert n.limit(1.5e300, 2) == n.number(1.5e300, 2)
    assert n.limit(float("inf"), 2) == "∞"


@pytest.mark.parametrize(
    ("write", "value", "text"),
    [
        (n.percent, 0.667, "66.7 %"),
        (n.percent, 1.0, "100.0 %"),
        (n.target, 0.9, "90 %"),
        (n.target, 0.975, "97.5 %"),
        (n.target, 0.07, "7 %"),
        (n.points, 0.0512, "+5.1"),
        (n.points, -0.00649, "−0.6"),
        (n.points, 0.0001, "0.0"),
        (n.gap, 2.1e-17, "2 × 10⁻¹⁷"),
        (n.gap, 9.6e-16, "1 × 10⁻¹⁵"),
        (n.gap, 0.0, "0"),
        (n.gap, -3e4, "3 × 10⁴"),
        (n.plain, 0.025, "0.025"),
        (n.plain, 4.0, "4"),
        (n.plain, 1e-05, "0.00001"),
        (n.plain, 2.5e-07, "0.00000025"),
        (n.plain, 1e16, "10000000000000000"),
        (n.plain, -0.5, "−0.5"),
        (n.date, DAY, "2 April 2014"),
        (n.month, DAY, "Apr 2014"),
        (n.moment, DAY, "2 Apr 2014, 20:20 UTC"),
        (n.date, -1e9, "24 April 1938"),
        (n.word, 3, "Three"),
        (n.word, 13, "13"),
        (n.count, 135624, "135,624"),
    ],
)
def test_each_kind_of_number_has_its_own_form(write, value, text):
    assert write(value) == text


@given(st.floats(1e-9, 1e9))
def test_a_setting_reads_back_exactly_as_typed(value):
    text = n.plain(value)
    assert "e" not in text
    assert float(text) == value


@pytest.mark.parametrize(
    ("values", "places"),
    [
        ((-0.113, -0.009), 3),
        ((0.2297, 0.2304), 4),
        ((0.5, 0.5), 3),
        ((14.7, 4.3), 2),
        ((123.4, 120.0), 1),
        ((25_000.0, 3.0), 0),
        ((0.00012, 0.00003), 5),
        ((0.0, 0.0), 3),
        ((float("nan"), 0.2), 3),
    ],
)
def test_decimals_suit_the_size_and_tell_two_values_apart(values, places):
    assert n.decimals(*values) == places
