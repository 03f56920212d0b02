"""Noise of a scale that tells the rating: its formula, its loss over all neighbours, and what is charged."""

import math

import numpy as np
import pytest

from dprec.accounting import PrivacyBudget, PrivacyUnit
from dprec.arrays import Floats
from dprec.completion import ItemAverage
from dprec.errors import SettingError
from dprec.observations import Observations
from dprec.protocols.base import Public
from dprec.protocols.sparse_reconstruction import (
    InformationLaplace,
    SparseReconstructionProtocol,
    denoised,
)
from tests.make import STARS

MEAN = 3.53
"""Of the stars of MovieLens 100K."""


def protocol(epsilon: float, per: PrivacyUnit = "rating") -> SparseReconstructionProtocol:
    return SparseReconstructionProtocol(
        privacy=PrivacyBudget(epsilon=epsilon, per=per),
        mechanism=InformationLaplace(mean=MEAN),
        completion=ItemAverage(),
    )


def plain_epsilons(epsilon: float) -> list[float]:
    return [epsilon * (1 + 0.3 * min(abs(stars - MEAN) / 2, 1.0)) for stars in range(1, 6)]


def plain_loss(epsilon: float) -> float:
    """Return the largest log ratio of what two ratings send, by densities and the masses at both ends."""
    scales = [4 / own for own in plain_epsilons(epsilon)]
    shown = np.linspace(1, 5, 4001)
    logs = np.array(
        [
            np.concatenate(
                [
                    [math.log(0.5) - (stars - 1) / b, math.log(0.5) - (5 - stars) / b],
                    -np.abs(shown - stars) / b - math.log(2 * b),
                ]
            )
            for stars, b in zip(range(1, 6), scales, strict=True)
        ]
    )
    return float((logs.max(axis=0) - logs.min(axis=0)).max())


def test_epsilon_grows_with_the_distance_from_the_mean() -> None:
    found = InformationLaplace(mean=MEAN).epsilons(STARS, 1.0)
    np.testing.assert_allclose(found, plain_epsilons(1.0))
    np.testing.assert_allclose(found, [1.3, 1.2295, 1.0795, 1.0705, 1.2205])
    # Without a mean, that of the scale.
    np.testing.assert_allclose(InformationLaplace().epsilons(STARS, 2.0), [2.6, 2.3, 2.0, 2.3, 2.6])


@pytest.mark.parametrize(("claimed", "lost"), [(1.0, 1.30), (0.1, 0.2745), (0.01, 0.2023), (3.0, 3.90)])
def test_the_loss_over_all_pairs_of_ratings_is_above_the_claim(claimed: float, lost: float) -> None:
    """Cells of the grid average densities, so the matrix may lose a little less."""
    assert plain_loss(claimed) == pytest.approx(lost, abs=5e-4)
    found = InformationLaplace(mean=MEAN).channel(STARS, claimed).epsilon
    assert lost - 2e-3 < found <= plain_loss(claimed) + 1e-9
    assert found > claimed


def test_without_a_reduction_the_claim_holds() -> None:
    found = InformationLaplace(mean=MEAN, reduction=0.0).channel(STARS, 1.0).epsilon
    assert found == pytest.approx(1.0, abs=1e-6)


def test_what_is_lost_is_charged_beside_what_is_claimed() -> None:
    given = protocol(1.0)
    family, counts = given.family(STARS, 9), np.array([3, 0, 5])
    account = given.accountant(family, counts, counts > 0)
    assert account.claimed is not None
    charged, claimed = (each.get_epsilon(0.0)[[0, 2]] for each in (account, account.claimed))
    np.testing.assert_allclose(charged, [3.9, 6.5], atol=1e-9)
    np.testing.assert_allclose(claimed, [3.0, 5.0])
    guarantee = given.guarantee((3, 9))
    assert (guarantee.status, guarantee.trust, guarantee.hides_rated_items) == ("claimed", "local", False)
    assert given.promise().epsilon == 1.0


def test_a_budget_of_which_nothing_is_claimed_is_refused() -> None:
    public = Public(20, 9, STARS)
    with pytest.raises(SettingError, match=r"privacy.per: 'user'; accepted: 'rating'"):
        protocol(1.0, "user").check(public)
    protocol(1.0).check(public)


def plain_denoised(table: Floats, neighbors: int, share: float) -> Floats:
    """Return denoised values of a table with NaN where nobody rated, cell by cell."""
    means = np.nanmean(table, axis=0)
    left = np.nan_to_num(table - means)
    found = table.copy()
    for user, item in zip(*np.nonzero(~np.isnan(table)), strict=True):
        similar = np.array(
            [
                0.0
                if other == item
                else left[:, item]
                @ left[:, other]
                / max(float(np.linalg.norm(left[:, item]) * np.linalg.norm(left[:, other])), 1e-300)
                for other in range(table.shape[1])
            ]
        )
        nearest = np.argsort(-np.abs(similar))[:neighbors]
        own = [other for other in nearest if not np.isnan(table[user, other]) and similar[other]]
        if own:
            said = means[item] + similar[own] @ left[user, own] / np.abs(similar[own]).sum()
            found[user, item] = (1 - share) * table[user, item] + share * said
    return found


def test_values_move_towards_what_similar_items_say() -> None:
    random = np.random.default_rng(4)
    table = random.normal(3, 1, (12, 7))
    table[random.random(table.shape) < 0.4] = np.nan
    users, items = np.nonzero(~np.isnan(table))
    observed = Observations.of(users, items, table[users, items], table.shape, STARS)
    for neighbors, share in ((2, 0.5), (3, 0.9), (100, 0.3)):
        expected = plain_denoised(table, neighbors, share)[users, items]
        np.testing.assert_allclose(denoised(observed, neighbors, share), expected)
    np.testing.assert_array_equal(denoised(observed, 2, 0.0), observed.values)
