"""Keys of the pseudorandom streams: of one secret, a key for each purpose and context."""

from __future__ import annotations

from itertools import product

import numpy as np

from dprec.secure_aggregation import GraphSize, noise_rows, rounded_rows
from dprec.secure_aggregation.exchange import MaskedSum, MaskingDevice
from dprec.secure_aggregation.masking import SumContext
from dprec.secure_aggregation.secrets import KEY_BYTES, derived_key, stream
from tests.drawn import recording

SECRETS, PURPOSES, CONTEXTS = (b"one", b"other"), ("noise", "polynomials", ""), (b"", b"sum 1", b"sum 2")


def test_secret_purpose_and_context_each_change_a_key() -> None:
    """Two of 18 keys are the same by chance once in 10**74."""
    keys = {derived_key(*parts) for parts in product(SECRETS, PURPOSES, CONTEXTS)}
    assert len(keys) == len(SECRETS) * len(PURPOSES) * len(CONTEXTS)
    assert {len(key) for key in keys} == {KEY_BYTES}
    words = {stream(key, 1, np.dtype("<u8")).tolist()[0] for key in keys}
    assert len(words) == len(keys)


def test_no_two_secrets_of_a_sum_share_a_key_or_a_word() -> None:
    users, size, context = 8, GraphSize(4, 3), SumContext(b"a sum", 30, 16)
    keys = [bytes([user]) * KEY_BYTES for user in range(users)]
    with recording() as drawn:
        MaskingDevice(keys[0], 0, np.arange(1, 5), size, context)
        noise_rows(keys, 30, 40.0)
        rounded_rows(np.full(30 * users, 0.3), np.full(users, 30), 60, keys)
    assert len(drawn.words) >= 2 * users + 1
    assert drawn.repeated() == set()
    assert drawn.shared_keys() == []
    with recording() as drawn:
        summed = MaskedSum(keys, np.arange(users), size, context)
        received = sum(summed.masked(user, np.ones(30, dtype=np.int64)) for user in range(users))
        assert (summed.total(received, np.ones(users, dtype=np.bool_)) == users).all()
    # Masks are computed again by neighbours and to remove them, from keys that have nothing else in common.
    assert len(drawn.keys) > 3 * users
    assert drawn.shared_keys() == []
