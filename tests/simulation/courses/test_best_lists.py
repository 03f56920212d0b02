"""Which protocol of lists is picked, and that it runs as itself."""

from dataclasses import replace
from typing import Any

import pytest

from dprec.errors import InputError
from dprec.protocols.base import Public
from dprec.protocols.best import BestProtocol
from dprec.protocols.best_lists import MOST_NOISE
from dprec.ratings import POSITIVE
from simulation.configuration.loading import load

SETS = Public(60, 40, POSITIVE, content=False)


def best(*overrides: str) -> BestProtocol:
    own = ["privacy.per=user", "trust=secure-aggregation", *overrides]
    settings = ["dataset.positive='>= 4'", *(f"protocol.{each}" for each in own)]
    protocol = load("best", overrides=settings).protocol
    assert isinstance(protocol, BestProtocol)
    return protocol


@pytest.mark.parametrize(
    ("trust", "users", "picked"),
    [
        ("central", 100, "popularity"),
        ("central", 2000, "gram"),
        ("secure-aggregation", 100, "popularity"),
        ("secure-aggregation", 2000, "gram"),
        ("shuffle", 300, "popularity"),
        ("shuffle", 20_000, "pairs-in-blanket"),
        ("local", 20_000, "popularity"),
        ("local", 1_000_000, "gram"),
    ],
)
def test_a_table_is_picked_from_so_many_users_on(trust: Any, users: int, picked: str) -> None:
    protocol, public = best(f"trust={trust}"), replace(SETS, n_users=users)
    suited: Any = protocol.suited(public)
    assert (suited.kind, suited.aggregation.trust) == (picked, trust)
    assert suited.guarantee((users, 40)).trust == trust
    why = protocol.reasons(public)[0]
    assert f"Best picked {picked}: under {trust}, the noise of a sum over {users:,} users is" in why
    assert (noise_in(why) <= MOST_NOISE) is (picked != "popularity")


def noise_in(why: str) -> float:
    """Return the noise that a reason tells."""
    return float(why.split("users is ")[1].split(",", maxsplit=1)[0])


def test_popularity_is_weighed_by_public_data_where_a_table_is_too_noisy() -> None:
    picked: Any = best("trust=local").suited(replace(SETS, n_users=1200, content=True))
    assert (picked.kind, picked.content) == ("popularity", True)


def test_what_is_promised_of_single_items_takes_no_trust() -> None:
    protocol = best("privacy={epsilon: 1.0, per: cell}", "trust=central")
    suited = protocol.suited(SETS)
    assert suited.kind == "randomized-sets"
    assert protocol.guarantee((60, 40)).trust == suited.guarantee((60, 40)).trust == "local"
    assert protocol.promise().unit == suited.promise().unit == "cell"


@pytest.mark.parametrize(
    ("data", "changes", "key"),
    [("'>= 4'", "predicts=server", "predicts"), ("null", "item_set=revealed|privacy.per=cell", "item_set")],
)
def test_what_means_nothing_is_refused_by_its_whole_key(data: str, changes: str, key: str) -> None:
    overrides = [f"dataset.positive={data}", *(f"protocol.{each}" for each in changes.split("|"))]
    with pytest.raises(InputError) as caught:
        load("best", overrides)
    assert caught.value.where == f"overrides protocol.{key}"
