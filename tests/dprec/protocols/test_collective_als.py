"""Private least squares with public features: the statistics that these add, and none without a weight."""

from typing import Any

import numpy as np
import pytest

from dprec.arrays import Floats
from dprec.catalogue import Catalogue
from dprec.completion import Profiles, unpack
from dprec.protocols.collective_als import (
    CollectiveAlsProtocol,
    CollectiveOptions,
    CollectiveServer,
    features_of,
)
from dprec.protocols.private_als import FactorizationOptions, PrivateAlsProtocol
from dprec.sums import UNIT
from tests.make import STARS
from tests.summing import contributions, played

USERS, ITEMS, RANK, WEIGHT = 60, 12, 2, 7.0
CATALOGUE = Catalogue(
    np.linspace(-1, 1, ITEMS)[:, None],
    np.arange(ITEMS)[:, None] % 3 == np.arange(3),
    ("year",),
    ("a", "b", "c"),
)
OPTIONS: dict[str, Any] = {"rank": RANK, "bias_rounds": 1, "factor_rounds": 2, "popular_from": 0.0}


def people() -> Profiles:
    random = np.random.default_rng(2)
    items = np.array([np.sort(random.permutation(ITEMS)[:6]) for _ in range(USERS)], dtype=np.int32)
    ratings = random.integers(1, 6, items.shape).astype(np.float64)
    return Profiles(np.arange(0, items.size + 1, 6), items.ravel(), ratings.ravel(), ITEMS)


def protocol(weight: float) -> CollectiveAlsProtocol:
    return CollectiveAlsProtocol(factorization=CollectiveOptions(feature_weight=weight, **OPTIONS))


@pytest.mark.parametrize("multiplier", [0.0, 0.3])
def test_without_a_weight_it_is_private_als_to_the_last_bit(multiplier: float) -> None:
    plain = PrivateAlsProtocol(factorization=FactorizationOptions(**OPTIONS))
    expected, same, others = (
        [device.encode() for device in played(each, people(), multiplier=multiplier, catalogue=CATALOGUE)[1]]
        for each in (plain, protocol(0.0), protocol(WEIGHT))
    )
    assert same == expected
    assert others[:-2] == expected[:-2]
    assert others[-1] != expected[-1]


class Watched(CollectiveServer):
    """Keeps what the features' part of a step was asked."""

    asked: tuple[Floats, Floats]

    def _of_features(self, root: Floats, weights: Floats) -> tuple[Floats, Floats]:
        self.asked = root, weights
        return super()._of_features(root, weights)


def test_an_item_solves_the_normal_equations_of_both_matrices() -> None:
    """(A + alpha w W W^T + lambda I) v = b + alpha w W f, where the last factors times W fit the features."""
    options, span = protocol(WEIGHT).factorization, 4.0
    features = features_of(CATALOGUE, ITEMS)
    server = Watched(options, STARS, ITEMS, 1, features=features)
    for number in range(1, 4):
        device = protocol(WEIGHT).device(server.held.encode(), ITEMS, STARS)
        layout, before = device.release(number), server.model
        _, total = layout.added_up(contributions(device, people(), layout).encode(layout))
        released = total * UNIT * layout.scales
        server.learn(layout, number, released, 0.0, USERS)
    root, weights = server.asked
    inverse = np.linalg.inv(root)
    last = before.factors @ root / before.gain
    scaled = features * (options.factor_deviation * span)
    loadings = np.linalg.solve(last.T @ last, last.T @ scaled)
    ridge = (options.noise * span) ** 2 / ((options.factor_deviation * span) ** 2 / RANK)
    matrices, sides = unpack(released[:, : layout.matrix_width]), released[:, layout.matrix_width :]
    for item in range(ITEMS):
        weight = weights[item]
        left = inverse @ matrices[item] @ inverse.T + WEIGHT * weight * loadings @ loadings.T
        left += ridge * weight * np.eye(RANK)
        right = inverse @ sides[item] + WEIGHT * weight * loadings @ scaled[item]
        np.testing.assert_allclose(left @ server.best.factors[item], right, rtol=1e-9, atol=1e-9)


def test_features_are_numbers_and_categories_of_mean_zero() -> None:
    found = features_of(CATALOGUE, ITEMS)
    assert found.shape == (ITEMS, 4)
    np.testing.assert_allclose(found[0], [-1, 2 / 3, -1 / 3, -1 / 3])
    assert features_of(None, ITEMS).shape == (ITEMS, 0)


def test_without_features_it_is_private_als() -> None:
    plain = PrivateAlsProtocol(factorization=FactorizationOptions(**OPTIONS))
    same, expected = (played(each, people())[1][-1].encode() for each in (protocol(WEIGHT), plain))
    assert same == expected
