"""How devices of a secure sum round: beside their noise, what they draw."""

import numpy as np

from dprec.secure_aggregation import rounded_rows
from dprec.secure_aggregation.streams import derived_key
from tests.distributions import check_independent, check_share


def keys(users: int) -> list[bytes]:
    return [derived_key(b"drawn", "test", number.to_bytes(4, "little")) for number in range(users)]


def test_numbers_are_rounded_up_as_often_as_they_are_nearer_to_it() -> None:
    users, numbers, part = 360, 200, 0.3
    counts = np.full(users, numbers)
    rounded = rounded_rows(np.full(users * numbers, part), counts, 1000, keys(users)).reshape(users, numbers)
    check_share(int(rounded.sum()), rounded.size, part)
    assert set(np.unique(rounded).tolist()) == {0, 1}
    # Numbers of a device, and devices.
    check_independent(rounded[:, ::2], rounded[:, 1::2])
    check_independent(rounded[::2], rounded[1::2])
