"""The protocol that picks the best of the others."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dprec.mechanisms import BitsAndCounts, FisherOptimal
from dprec.protocols.base import Public
from dprec.protocols.best import BestProtocol
from dprec.protocols.best_ratings import COUNTS_UP_TO, Sizes
from dprec.ratings import Ratings, RatingScale
from simulation import load


def best(**changes: Any) -> BestProtocol:
    settings = [f"protocol.{key.replace('__', '.')}={value}" for key, value in changes.items()]
    protocol = load("best", settings).protocol  # of ratings, as the preset's data are
    assert isinstance(protocol, BestProtocol)
    return protocol


@pytest.mark.parametrize(
    ("changes", "kind", "personalization"),
    [
        ({}, "fisher-optimal", "on-device"),
        ({"privacy__epsilon": COUNTS_UP_TO["device"]}, "bits-and-counts", "on-device"),
        ({"predicts": "server", "privacy__epsilon": COUNTS_UP_TO["server"]}, "bits-and-counts", "none"),
        ({"predicts": "server", "privacy__epsilon": 1.01 * COUNTS_UP_TO["server"]}, "fisher-optimal", "none"),
        ({"privacy__per": "user", "item_set": "revealed"}, "residual-bits", "on-device"),
        ({"privacy__per": "user", "predicts": "server"}, "user-level-bit", "none"),
        ({"privacy__per": "cell"}, "hidden-threshold", "on-device"),
        ({"item_set": "hidden"}, "hidden-threshold", "on-device"),
    ],
)
def test_the_pick_follows_from_epsilon_unit_item_set_and_who_predicts(
    changes: dict[str, Any], kind: str, personalization: str
) -> None:
    protocol = best(**changes)
    assert protocol.picked.mechanism.kind == kind == protocol.facts.protects
    assert protocol.picked.personalization == personalization
    assert f"Best picked {kind}: " in " ".join(protocol.guarantee((100, 10)).notes)


FEW, MANY = Public(943, 1682, RatingScale.evenly(1, 5, 1)), Public(30_000, 300, RatingScale.evenly(1, 5, 1))


@pytest.mark.parametrize(
    ("public", "changes", "picked", "trust"),
    [
        # With films' data, what may be said of 943 profiles without any trust is worth nothing at 1.
        (FEW, {"privacy__per": "user"}, "nothing-sent", "local"),
        (MANY, {"privacy__per": "user"}, "sums-on-device", "local"),
        (MANY, {"privacy__per": "user", "privacy__epsilon": 2.0}, "user-level-bit", "local"),
        (FEW, {"privacy__per": "user", "trust": "shuffle"}, "sums-on-device", "shuffle"),
        (
            FEW,
            {"privacy__per": "user", "trust": "secure-aggregation"},
            "sums-on-device",
            "secure-aggregation",
        ),
        (FEW, {"privacy__per": "user", "trust": "central"}, "sums-on-device", "central"),
        # Cells take no trust; where users are many, sums of whole profiles tell more than twice as much.
        (FEW, {"privacy__per": "cell", "trust": "central"}, "hidden-threshold", "local"),
        (MANY, {"privacy__per": "cell", "trust": "central"}, "sums-on-device", "central"),
        (MANY, {"privacy__per": "cell"}, "hidden-threshold", "local"),
        (FEW, {"privacy__per": "cell", "privacy__epsilon": 0.05}, "nothing-sent", "local"),
        (MANY, {"trust": "central"}, "fisher-optimal", "local"),
        # Masked numbers of this many items are more than a user may send.
        (
            FEW,
            {"privacy__per": "user", "trust": "secure-aggregation", "max_bytes_up": 100},
            "nothing-sent",
            "local",
        ),
    ],
)
def test_the_pick_follows_from_what_is_protected_from_trust_and_from_public_numbers(
    public: Public, changes: dict[str, Any], picked: str, trust: str
) -> None:
    protocol = best(**changes)
    suited = protocol.suited(public)
    assert f"Best picked {picked}: " in protocol.reasons(public)[0]
    assert suited.guarantee((public.n_users, public.n_items)).trust == trust
    if suited.facts.private:
        promise = suited.promise()
        assert (promise.epsilon, promise.unit) == (protocol.privacy.epsilon, suited.privacy.per)


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
