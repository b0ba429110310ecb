"""Debiasing layers, by far the most cases: what they served, learned and saved, to the last bit."""

from golden import families


def test_every_value_is_the_one_that_was_recorded() -> None:
    families.check("debias")
