"""A count sketch: right on average, and exact where an item is alone."""

import numpy as np

from dprec.secure_aggregation import CountSketch


def test_items_that_are_alone_come_back_and_others_are_right_on_average() -> None:
    totals = np.random.default_rng(1).standard_normal((40, 3))
    alone = CountSketch.of(40, 40, 1, "test")
    of_places = np.zeros((40, 3))
    np.add.at(of_places, alone.places, totals * alone.signs[:, None])
    np.testing.assert_array_equal(alone.estimates(of_places), totals)
    estimates = []
    for seed in range(400):
        sketch = CountSketch.of(40, 20, seed, "test")
        assert sketch.most_items == 2
        of_places = np.zeros((20, 3))
        np.add.at(of_places, sketch.places, totals * sketch.signs[:, None])
        estimates.append(sketch.estimates(of_places))
    # What another item adds has a deviation of about 1: means of 400 are off by 6 deviations once in 10**8.
    assert np.abs(np.mean(estimates, axis=0) - totals).max() < 6 * np.abs(totals).max() / 20
