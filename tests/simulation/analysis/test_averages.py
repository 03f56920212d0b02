"""Averages over folds and seeds."""

import math

from simulation.analysis.averages import Average, average


def test_the_deviation_is_that_of_a_sample() -> None:
    assert average([1.0, "3", None, "", math.inf]) == Average(2.0, math.sqrt(2), 2)


def test_a_single_value_does_not_deviate_and_none_has_no_average() -> None:
    assert average([4]) == Average(4.0, 0.0, 1)
    assert average(["", None]) is None
