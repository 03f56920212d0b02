"""Delivering predictions adds bytes, and changes nothing that is drawn, sent or predicted."""

from typing import Any

import numpy as np

from simulation import run


def test_what_is_delivered_changes_bytes_and_nothing_else(tiny: dict[str, Any]) -> None:
    with_lists = run(tiny, page=False)
    tiny["protocol"]["delivery"] = None
    without = run(tiny, page=False)
    np.testing.assert_array_equal(with_lists.predictions["prediction"], without.predictions["prediction"])
    for column in ("uplink_payload_bytes", "epsilon_per_user"):
        np.testing.assert_array_equal(with_lists.traffic[column], without.traffic[column])
    more = with_lists.traffic["downlink_payload_bytes"] - without.traffic["downlink_payload_bytes"]
    # Ten items of 5 bits, and ten ratings.
    assert set(more.tolist()) == {47}
