"""Faults: drawn from the seed for each user and round, in the configured shares."""

import math

import numpy as np
import pytest

from clients.faults import ABSENT, DAMAGED, LATE, PUNCTUAL, FaultOptions, damaged, fates
from dprec.errors import InputError

OPTIONS = FaultOptions(dropout=0.1, straggle=0.05, corrupt=0.01)


def test_the_shares_are_as_configured() -> None:
    """Each within 5 standard errors of 1e6 draws: false alarm 3 x 6e-7; the seed is fixed."""
    users = 1_000_000
    fate = fates(OPTIONS, 1, 1, 0, users)
    for mark, share in ((ABSENT, 0.1), (LATE, 0.05), (DAMAGED, 0.01), (PUNCTUAL, 0.84)):
        error = math.sqrt(share * (1 - share) / users)
        assert abs(np.mean(fate == mark) - share) < 5 * error


def test_a_fate_belongs_to_a_user_and_a_round() -> None:
    everybody = fates(OPTIONS, 1, 1, 0, 500)
    assert np.concatenate([fates(OPTIONS, 1, 1, first, 7) for first in range(0, 497, 7)]).tolist() == (
        everybody[:497].tolist()
    )
    assert fates(OPTIONS, 1, 2, 0, 500).tolist() != everybody.tolist()
    assert fates(OPTIONS, 2, 1, 0, 500).tolist() != everybody.tolist()


def test_no_faults_and_nothing_but_faults() -> None:
    assert (fates(FaultOptions(), 1, 1, 0, 1000) == PUNCTUAL).all()
    assert (fates(FaultOptions(dropout=1.0), 1, 1, 0, 1000) == ABSENT).all()
    assert (fates(FaultOptions(straggle=1.0), 1, 1, 0, 1000) == LATE).all()
    assert (fates(FaultOptions(corrupt=1.0), 1, 1, 0, 1000) == DAMAGED).all()


def test_shares_that_are_none_are_refused() -> None:
    with pytest.raises(InputError, match=r"add up to 1\.2"):
        FaultOptions(dropout=0.6, straggle=0.6)
    for name in ("dropout", "straggle", "corrupt"):
        for value in (-0.1, 1.1, float("nan")):
            with pytest.raises(InputError) as caught:
                FaultOptions(**{name: value})
            assert caught.value.where == name


def test_a_damaged_report_is_another_one() -> None:
    assert damaged(b"") != b""
    assert damaged(b"ab") != b"ab"
