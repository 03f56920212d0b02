"""What devices of a secure sum draw beside their noise and rounding: masks and shares."""

import numpy as np

from dprec.arrays import AnyInts
from dprec.secure_aggregation import SumContext
from dprec.secure_aggregation.streams import derived_key
from dprec_pilot.masks.masking import ELEMENTS, PRIME, SharedSecrets, pair_mask, public_key, self_mask, shares
from tests.distributions import check_counts, check_independent

CONTEXT = SumContext(b"a sum", 40_000, 16)


def keys(users: int) -> list[bytes]:
    return [derived_key(b"drawn", "test", number.to_bytes(4, "little")) for number in range(users)]


def check_uniform(numbers: AnyInts, limit: int) -> None:
    """Check the first and the last bits of numbers below a limit."""
    values = np.asarray(numbers, dtype=np.uint64).ravel()
    assert int(values.max()) < limit
    check_counts(
        np.bincount((values * np.uint64(256) // np.uint64(limit)).astype(np.int64), minlength=256),
        np.full(256, 1 / 256),
    )
    check_counts(
        np.bincount((values % np.uint64(256)).astype(np.int64), minlength=256), np.full(256, 1 / 256)
    )


def test_both_kinds_of_masks_are_uniform_on_all_bits_and_tell_nothing_of_each_other() -> None:
    """Each by itself: where one is known, as of a neighbour that colludes, the other has to hide a vector."""
    one, other, third = keys(3)
    pair, of_another = (pair_mask(CONTEXT, one, public_key(key)) for key in (other, third))
    own = self_mask(CONTEXT, one[:20])
    for mask in (own, pair, of_another):
        check_uniform(mask, 1 << 16)
        check_independent(mask[::2], mask[1::2])
    check_independent(own, pair)
    check_independent(pair, of_another)
    assert np.array_equal(pair, pair_mask(CONTEXT, other, public_key(one)))


def test_secrets_and_fewer_shares_than_put_one_together_are_uniform() -> None:
    drawn = SharedSecrets.of(keys(3_000), 3)
    # The last number of a seed may serve to check the others.
    for secrets, numbers in ((drawn.mask_keys, ELEMENTS), (drawn.self_seeds, ELEMENTS - 1)):
        constants = secrets[:, 0, :numbers]
        check_uniform(constants, PRIME)
        held = shares(secrets, 4)[:, :, :numbers]
        for point in range(4):
            check_uniform(held[:, point], PRIME)
            check_independent(held[:, point], constants)
        check_independent(held[:, 0], held[:, 1])
    check_independent(drawn.mask_keys[:, 0], np.roll(drawn.self_seeds[:, 0], 1, axis=0))
    check_independent(drawn.mask_keys[:, 0, 0], drawn.self_seeds[:, 0, 0], classes=4)
