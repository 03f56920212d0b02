"""Audits how long the contributions to a sum are, to whose largest length the noise is made."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import numpy as np

from dprec.arrays import offsets
from dprec.errors import SettingError
from dprec.gradients import RoundDraws
from dprec.private_als import (
    TARGET_BITS,
    UNIT_WEIGHT,
    Aggregation,
    Contributions,
    ItemModel,
    StatisticsLayout,
)
from dprec.randomness import DeviceDraws, uniform_below, uniforms, words
from simulation.protocols.private_als import PrivateAlsProtocol

_ITEMS = 96
"""So many that several share a place of a count sketch."""

_BELOW_ONE = 1 - 1e-6
_USERS = (64, 128, 256)


def longest_contribution(protocol: PrivateAlsProtocol, seed: int) -> float:
    """Return the longest of what some users add to a sum, in units of the longest that is allowed.

    Their profiles are of all sizes and their ratings as far from their predictions as counts; what they send
    is weighted, sketched, turned and rounded as the protocol says.
    """
    options, aggregation = protocol.factorization, _for_some(protocol.aggregation)
    weights = 1 + uniform_below(UNIT_WEIGHT, words(seed, "weights of items", 0, _ITEMS))
    model = replace(ItemModel.begin(_ITEMS, options.rank, 0.0), weights=weights)
    layouts = [model.layout(options, round_index, 1.0) for round_index in (1, 2, options.rounds)]
    return max(_longest(aggregation, layout, options.ratings_per_user, seed) for layout in layouts)


def _longest(aggregation: Aggregation, layout: StatisticsLayout, most: int, seed: int) -> float:
    reports = aggregation.encode(_contributions(layout, most, seed), layout, 0.0, _draws(seed))
    sums = [aggregation.decode([report], layout, 0.0)[1] for report in reports]
    return max(aggregation.length(each, layout, 0.0) for each in sums)


def _for_some(aggregation: Aggregation) -> Aggregation:
    """Return the aggregation of so few users as it accepts."""
    for users in _USERS:
        with suppress(SettingError):
            return aggregation.among(users)
    return aggregation.among(4 * _USERS[-1])


def _contributions(layout: StatisticsLayout, most: int, seed: int) -> Contributions:
    """Return what users contribute who have rated 1 item, 2 items, and so on."""
    users = _USERS[0]
    order = np.argsort(words(seed, "rated items", 0, users * _ITEMS).reshape(users, _ITEMS), axis=1)
    counts = np.minimum(1 + np.arange(users) * _ITEMS // users, most)
    items = [np.sort(row[:count]) for row, count in zip(order, counts.tolist(), strict=True)]
    signs = 2 * uniform_below(2, words(seed, "signs of targets", 0, int(counts.sum()))) - 1
    factors = np.ones((users, 1))
    if layout.rank:
        factors = uniforms(words(seed, "factors of users", 0, users * layout.rank)) - 0.5
        factors = factors.reshape(users, layout.rank)
        factors *= _BELOW_ONE * layout.norm / np.linalg.norm(factors, axis=1, keepdims=True)
    return Contributions(
        offsets(counts),
        np.concatenate(items).astype(np.int32),
        signs << TARGET_BITS,
        factors.astype(np.float32),
    )


def _draws(seed: int) -> RoundDraws:
    users = _USERS[0]
    keys = words(seed, "devices that contribute", 0, 2 * users).reshape(2, users)
    return RoundDraws(DeviceDraws(keys), 1, 0)
