"""Who is asked in a round, and what becomes of replies: as often as configured, and anew in every round."""

import numpy as np
import pytest

from clients.faults import ABSENT, DAMAGED, LATE, PUNCTUAL, FaultOptions, fates
from dprec.protocols.rounds import SamplingOptions
from tests.distributions import check_counts, check_independent, check_share

USERS = 40_000


@pytest.mark.parametrize("options", [SamplingOptions(fraction=0.3), SamplingOptions(count=12_000)])
def test_as_many_as_configured_are_asked_and_others_in_each_round(options: SamplingOptions) -> None:
    first, second, other_seed = (options.draw(USERS, seed, at) for seed, at in ((1, 1), (1, 2), (2, 1)))
    assert first.sum() == second.sum() == other_seed.sum() == 12_000
    check_independent(first, second)
    check_independent(first, other_seed)
    # Nobody is likelier for the place in which it stands.
    check_counts(np.bincount(np.flatnonzero(first) * 20 // USERS), np.full(20, 1 / 20))
    check_share(int((first & second).sum()), USERS, 0.3**2, wrong=0.15)


def test_faults_are_as_frequent_as_configured_and_befall_others_in_each_round() -> None:
    options = FaultOptions(dropout=0.2, straggle=0.3, corrupt=0.1)
    first, second = (fates(options, 7, round_index, 0, USERS) for round_index in (1, 2))
    for each in (first, second):
        for mark, share in ((ABSENT, 0.2), (LATE, 0.3), (DAMAGED, 0.1), (PUNCTUAL, 0.4)):
            check_share(int((each == mark).sum()), USERS, share, wrong=0.15)
    check_independent(first, second)
    check_independent(first[::2], first[1::2])
