"""Which protocol of lists is picked, and that it runs as itself."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dprec.datasets import Synthetic
from dprec.protocols.base import Public
from dprec.protocols.best_list import MOST_NOISE, BestListProtocol
from dprec.ratings import Ratings
from simulation.configuration.loading import load

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
    protocol, public = best(f"trust={trust}"), Public.of(copies(users), content=False)
    suited: Any = protocol.suited(public)
    assert (suited.kind, suited.aggregation.trust) == (picked, trust)
    assert suited.guarantee((users, 40)).trust == trust
    why = protocol.reasons(public)[0]
    assert f"Best picked {picked} under {trust}: the noise of a sum, over {users:,} users, is" in why
    assert (noise_in(why) <= MOST_NOISE[False]) is (picked != "popularity")


def noise_in(why: str) -> float:
    """Return the noise that a reason tells."""
    return float(why.split("users, is ")[1].split(",", maxsplit=1)[0])


def test_public_data_about_the_items_are_preferred_to_a_noisy_table() -> None:
    protocol = best()
    public = [Public.of(copies(1200), content=content) for content in (False, True)]
    noise, same = (noise_in(protocol.reasons(each)[0]) for each in public)
    assert MOST_NOISE[True] < noise == same < MOST_NOISE[False]
    without, with_public = (protocol.suited(each) for each in public)
    assert (without.kind, with_public.kind) == ("gram", "popularity")
    assert with_public.content  # type: ignore[attr-defined]


def test_what_is_promised_of_single_items_takes_no_trust() -> None:
    protocol = best("privacy={epsilon: 1.0, per: cell}", "trust=central")
    suited = protocol.suited(Public.of(TRAIN))
    assert suited.kind == "randomized-sets"
    assert protocol.guarantee((60, 40)).trust == suited.guarantee((60, 40)).trust == "local"
    assert protocol.promise().unit == suited.promise().unit == "cell"
