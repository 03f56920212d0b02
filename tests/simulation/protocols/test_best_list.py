"""Which protocol of lists is picked, and that it runs as itself."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dprec.datasets import Synthetic
from dprec.ratings import Ratings
from simulation.configuration.loading import load
from simulation.protocols.best_list import MOST_NOISE, BestListProtocol

TRAIN = Synthetic(users=60, items=40, ratings=900, positive=">= 4").load()


def best(*overrides: str) -> BestListProtocol:
    protocol = load("best-list", overrides=[f"protocol.{each}" for each in overrides]).protocol
    assert isinstance(protocol, BestListProtocol)
    return protocol


def copies(users: int) -> Ratings:
    """Return a population of so many users; only its sizes count."""
    return replace(TRAIN, indptr=np.zeros(users + 1, dtype=np.int64), user_ids=np.arange(users))


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
    suited = best(f"trust={trust}").suited_to(copies(users))
    assert suited.picked.kind == picked
    promised = suited.guarantee((users, 40))
    assert promised.trust == trust
    assert (
        f"Best picked {picked} under {trust}: the noise of a sum, over {users:,} users, is"
        in promised.notes[-1]
    )
    assert (suited.noise <= MOST_NOISE[False]) is (picked != "popularity")
    assert suited.picked.aggregation.trust == trust  # type: ignore[attr-defined]


def test_public_data_about_the_items_are_preferred_to_a_noisy_table() -> None:
    protocol, users = best(), copies(1200)
    without, with_public = (
        protocol.knowing_items(content=content).suited_to(users) for content in (False, True)
    )
    assert MOST_NOISE[True] < without.noise == with_public.noise < MOST_NOISE[False]
    assert (without.picked.kind, with_public.picked.kind) == ("gram", "popularity")
    assert with_public.picked.content  # type: ignore[attr-defined]


def test_what_is_promised_of_single_items_takes_no_trust() -> None:
    suited = best("privacy={epsilon: 1.0, per: cell}", "trust=central").suited_to(TRAIN)
    assert suited.picked.kind == "randomized-sets"
    assert suited.guarantee((60, 40)).trust == "local"
    assert suited.promise().unit == "cell"
