"""Published policies with permanent answers: what is charged, installed, refused, and read together."""

from dataclasses import replace

import numpy as np
import pytest

from dprec.accounting import PrivacyBudget
from dprec.mechanisms import ThresholdBit
from dprec.protocols.one_shot import OneShotProtocol
from dprec.schedules import Collection, DBitFlip, Layered, Loloha, TwoLayered
from tests import make
from tests.dprec.reports.test_layers import collected, people
from tests.make import STARS

OWN = make.one_shot(ThresholdBit(), PrivacyBudget(epsilon=1.0), predicts=True)
POLICIES = [TwoLayered(), Loloha(), DBitFlip(), DBitFlip(buckets=5, bits=2)]


def setup_of(policy: Layered) -> OneShotProtocol:
    return replace(OWN, answers=policy.answers)


def made(
    policy: Layered, counts: list[list[int]], again: list[int], sent: list[list[bool]]
) -> list[Collection]:
    family = setup_of(policy).family(STARS, 9)
    nobody = np.zeros(0, dtype=np.int32)
    nothing = make.observations(nobody, nobody, np.zeros(0), (len(counts[0]), 9))
    changed = [np.zeros(len(again), dtype=np.int64)] * (len(counts) - 1) + [np.array(again)]
    given = enumerate(zip(counts, changed, sent, strict=True))
    return [
        Collection(number, family, np.array(own), twice, np.array(came), nothing)
        for number, (own, twice, came) in given
    ]


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_a_rating_is_charged_once_whatever_the_number_of_collections(policy: Layered) -> None:
    counts = [[1, 2, 0], [3, 2, 0], [3, 4, 1]]
    sent = [[True, True, False], [True, True, False], [True, False, True]]
    family = setup_of(policy).family(STARS, 9)
    loss = family.channel(1).epsilon
    account = policy.accountant(made(policy, counts, [0, 0, 0], sent))
    np.testing.assert_allclose(account.get_epsilon(per="rating"), loss)
    np.testing.assert_allclose(account.get_epsilon(), loss * np.array([3, 2, 1]))
    changed = policy.accountant(made(policy, counts, [1, 1, 0], sent))
    np.testing.assert_allclose(changed.get_epsilon(per="rating"), loss * np.array([2, 1, 1]))
    np.testing.assert_allclose(changed.get_epsilon(), loss * np.array([4, 2, 1]))
    assert loss == pytest.approx(0.5 if policy == DBitFlip() else 1.0)


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_reports_of_all_collections_are_read_together(policy: Layered) -> None:
    family, of = setup_of(policy).family(STARS, 50), people(30)
    parts = [collected(family, of, number) for number in range(3)]
    sent, nothing = of.counts > 0, np.zeros_like(of.counts)
    whole = policy.joined([Collection(0, family, of.counts, nothing, sent, part) for part in parts])
    assert whole.items.tolist() == of.items.tolist()
    np.testing.assert_allclose(whole.values, np.mean([part.values for part in parts], axis=0))
