"""The protocol that picks the best of the others."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dprec.mechanisms import BitsAndCounts, FisherOptimal
from dprec.protocols.base import Public
from dprec.protocols.best import COUNTS_UP_TO, BestProtocol, Sizes
from dprec.ratings import Ratings, RatingScale
from simulation import load


def best(**changes: Any) -> BestProtocol:
    settings = [f"protocol.{key.replace('__', '.')}={value}" for key, value in changes.items()]
    protocol = load("best-on-device", settings).protocol
    assert isinstance(protocol, BestProtocol)
    return protocol


@pytest.mark.parametrize(
    ("changes", "kind", "personalization"),
    [
        ({}, "fisher-optimal", "on-device"),
        ({"privacy__epsilon": COUNTS_UP_TO["device"]}, "bits-and-counts", "on-device"),
        ({"predicts": "server", "privacy__epsilon": COUNTS_UP_TO["server"]}, "bits-and-counts", "none"),
        ({"predicts": "server", "privacy__epsilon": 1.01 * COUNTS_UP_TO["server"]}, "fisher-optimal", "none"),
        ({"privacy__per": "user"}, "residual-bits", "on-device"),
        ({"item_set": "hidden", "privacy__per": "user"}, "user-level-bit", "on-device"),
        ({"item_set": "hidden", "privacy__per": "cell"}, "hidden-threshold", "on-device"),
    ],
)
def test_the_pick_follows_from_epsilon_unit_item_set_and_who_predicts(
    changes: dict[str, Any], kind: str, personalization: str
) -> None:
    protocol = best(**changes)
    assert protocol.picked.mechanism.kind == kind == protocol.facts.protects
    assert protocol.picked.personalization == personalization
    assert f"Best picked {kind}: " in " ".join(protocol.guarantee((10, 10)).notes)


def ratings_of(users: int, items: int, per_user: int, scale: RatingScale) -> Ratings:
    rows = np.repeat(np.arange(users), per_user)
    columns = (np.arange(per_user) * 7 + np.arange(users)[:, None]) % items
    values = scale.values[(rows + columns.ravel()) % scale.levels]
    return Ratings.from_triples(rows, columns.ravel(), values, scale)


STARS, SLIDER = RatingScale.evenly(1, 5, 1), RatingScale.evenly(-10, 10, 0.5, continuous=True)
BUDGETS = (0.05, 0.15, 0.5, 0.9, 0.95, 1.0, 1.2, 1.6, 2.0, 3.0)


def picks(train: Ratings, **changes: Any) -> list[str]:
    return [
        best(privacy__epsilon=epsilon, **changes).suited(Public.of(train)).mechanism.kind
        for epsilon in BUDGETS
    ]


def test_counts_serve_a_server_up_to_a_larger_epsilon_where_items_have_many_ratings() -> None:
    few = picks(ratings_of(150, 150, 100, STARS), predicts="server")
    many = picks(ratings_of(3000, 100, 50, STARS), predicts="server")
    for kinds in (few, many):  # one change at most, from counts to symbols
        assert kinds == sorted(kinds, key=["bits-and-counts", "fisher-optimal"].index)
        assert kinds[:4] == ["bits-and-counts"] * 4
        assert kinds[-1] == "fisher-optimal"
    assert few.count("bits-and-counts") < many.count("bits-and-counts")


def test_a_bit_serves_levels_without_public_shares_until_symbols_tell_more() -> None:
    train = ratings_of(60, 40, 20, SLIDER)
    assert picks(train) == ["bits-and-counts"] * 2 + ["threshold-bit"] * 7 + ["fisher-optimal"]
    stars = picks(ratings_of(60, 40, 20, STARS))
    assert stars == ["bits-and-counts"] * 2 + ["fisher-optimal"] * 8


@pytest.mark.parametrize("scale", [STARS, SLIDER])
@pytest.mark.parametrize("predicts", ["device", "server"])
def test_the_predicted_error_of_the_pick_never_grows_with_epsilon(scale: RatingScale, predicts: str) -> None:
    train = ratings_of(500, 50, 30, scale)
    sizes, errors = Sizes.of(Public.of(train)), []
    for epsilon in BUDGETS:
        mechanism = best(privacy__epsilon=epsilon, predicts=predicts).suited(Public.of(train)).mechanism
        told = isinstance(mechanism, BitsAndCounts)
        errors.append(
            sizes.error_of_counts(mechanism, epsilon) if told else sizes.error_of_symbols(mechanism, epsilon)
        )
    within = errors if predicts == "server" else errors[2:]  # a device knows its user's level
    assert within == sorted(within, reverse=True)


def test_the_pick_reads_no_value_and_changes_no_setting() -> None:
    train = ratings_of(300, 30, 20, STARS)
    protocol = best(predicts="server")
    other = replace(train, levels=np.full_like(train.levels, 3))
    assert protocol.suited(Public.of(train)).mechanism == protocol.suited(Public.of(other)).mechanism
    assert protocol.suited(Public.of(train)).privacy == protocol.privacy
    assert protocol.picked.mechanism == FisherOptimal(histogram="netflix")
