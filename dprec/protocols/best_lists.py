"""What keeps a promise about lists: candidates, and the public rule by which they are compared.

What a table of pairs is worth follows from the noise of a number of its sums, over the users, whoever adds
up: with little it is best at any budget, and with much the whole budget is better spent on popularity, which
a device weighs by what is public about its items. benchmarks/choosing/best_lists.py chose where they change
places.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from dprec.accounting import LEAST_TRUST_FIRST, PrivacyUnit, Trust
from dprec.errors import SettingError
from dprec.protocols.base import Protocol, Public
from dprec.protocols.best_ratings import AGGREGATIONS
from dprec.protocols.gram import (
    GramProtocol,
    PairsInBlanketProtocol,
    PairTableOptions,
    TableProtocol,
)
from dprec.protocols.picking import ItemSet, Offer, PickingProtocol, Rule
from dprec.protocols.popular import PopularityProtocol
from dprec.protocols.randomized_sets import RandomizedSetsProtocol

MOST_NOISE = 6.5e-3
"""Noise of a number and of a user up to which a table is best."""


def single_items(promise: PickingProtocol, public: Public | None) -> Offer:
    """Offer a randomised answer about every item."""
    why = "single items are promised, which takes no trust"
    return Offer(RandomizedSetsProtocol(privacy=promise.privacy, max_bytes_down=promise.max_bytes_down), why)


def list_table(promise: PickingProtocol, public: Public | None) -> Offer:
    """Offer a table or popularity, by the noise of a sum; with less trust where that cannot be had.

    Sums of few users are refused under a trust where colluders could know the rest, or fakes would be many.
    """
    if public is None:
        return Offer(
            table_under(promise, promise.trust), "users, items and what is public about these decide"
        )
    trusts = list(reversed(LEAST_TRUST_FIRST[: LEAST_TRUST_FIRST.index(promise.trust) + 1]))
    for trust in trusts[:-1]:
        with suppress(SettingError):
            return _by_noise(promise, trust, public)
    return _by_noise(promise, trusts[-1], public)


def table_under(promise: PickingProtocol, trust: Trust) -> TableProtocol:
    """Return the table that keeps a promise, by whom users trust to add up."""
    aggregation = AGGREGATIONS[trust]
    kind = PairsInBlanketProtocol if trust == "shuffle" else GramProtocol
    return kind(
        privacy=replace(promise.privacy, composition="sum" if aggregation.by_itself else "pld"),
        adjacency=promise.adjacency,
        aggregation=aggregation,
        max_bytes_up=promise.max_bytes_up,
        max_bytes_down=promise.max_bytes_down,
        table=PairTableOptions(fewest=promise.fewest),
    )


def _by_noise(promise: PickingProtocol, trust: Trust, public: Public) -> Offer:
    """Offer a table or popularity; SettingError where the sums of so many users cannot be had."""
    table = table_under(promise, trust)
    suited = table.suited(public)
    noise = suited.noise_of_tables(public)(suited.table.items or 0)
    protocol: Protocol = table
    if noise > MOST_NOISE:
        protocol = PopularityProtocol(
            privacy=table.privacy,
            adjacency=promise.adjacency,
            content=True,
            fewest=promise.fewest,
            max_bytes_up=promise.max_bytes_up,
            max_bytes_down=promise.max_bytes_down,
            aggregation=table.aggregation,
        )
    protocol.suited(public).check(public)
    why = (
        f"under {trust}, the noise of a sum over {public.n_users:,} users is {noise:.2g}, and a table "
        f"is best up to {MOST_NOISE:g}"
    )
    return Offer(protocol, why)


KEPT_BY: Mapping[tuple[PrivacyUnit, ItemSet], tuple[Rule, ...]] = {
    ("cell", "hidden"): (single_items,),
    ("user", "hidden"): (list_table,),
}
"""What can keep a promise, by what is protected."""
