"""Builds what tests of sums run on: layouts of sets, what users contribute, and rounds without messages."""

from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dprec.arrays import Floats
from dprec.catalogue import Catalogue
from dprec.completion import Profiles
from dprec.gradients import Aggregate, RoundDraws
from dprec.protocols.base import Public
from dprec.protocols.gram import PairTableOptions, SetDevice
from dprec.protocols.sums import SumsProtocol
from dprec.randomness import DeviceDraws, ReleaseDraws, words
from dprec.ratings import RatingScale
from dprec.sums import UNIT, CentralAggregation, Contributions, Layout, ProfileContributions, Release
from tests.make import STARS


def popularity(items: int, fewest: int = 1, *, normalised: bool = True) -> Release:
    """Return a sum of sets of items: a number for each item."""
    table = PairTableOptions(items=0, fewest=fewest, normalised=normalised)
    return SetDevice.begun(table, items).release(1)


def pairs(items: int, fewest: int = 1) -> Release:
    """Return a sum of sets of items: a number for each pair of items, and for each item with itself."""
    table = PairTableOptions(items=items, popularity_share=0.0, fewest=fewest)
    return SetDevice.begun(table, items).release(1)


def contributed(indptr: ArrayLike, items: ArrayLike, n_items: int) -> ProfileContributions:
    """Return what users contribute to `popularity` or `pairs` who have sets, one after another."""
    owned = np.asarray(items, dtype=np.int32)
    own = Profiles(np.asarray(indptr, dtype=np.int64), owned, np.full(owned.size, np.nan), n_items)
    return ProfileContributions(own, np.zeros(owned.size, dtype=np.uint64))


def dense(own: Contributions[Any], layout: Layout) -> Floats:
    """Return what each user adds, shape (users, numbers)."""
    vectors = own.vectors(layout)
    rows = np.zeros((own.n_users, layout.n_rows, layout.width))
    owners = np.repeat(np.arange(own.n_users), np.diff(vectors.indptr))
    rows[owners, vectors.rows] = vectors.numbers * UNIT
    return rows.reshape(own.n_users, -1)


def devices(users: int, round_index: int = 1, seed: int = 7) -> RoundDraws:
    """Return the words of so many devices in a round, and of their turns."""
    keys = words(seed, "devices", 0, 2 * users).reshape(2, users)
    return RoundDraws(DeviceDraws(keys), round_index, 0, words(seed, "turns", 0, users))


def contributions(device: Any, people: Profiles, layout: Any) -> Contributions[Any]:
    """Return what people contribute with a device to the release of a layout."""
    return device.contributions(people, layout, words(3, "choices", 0, people.items.size))  # type: ignore[no-any-return]


def played(
    protocol: SumsProtocol,
    people: Profiles,
    scale: RatingScale = STARS,
    *,
    multiplier: float = 0.0,
    catalogue: Catalogue | None = None,
    failed: Collection[int] = (),
    seed: int = 0,
) -> tuple[Any, list[Any]]:
    """Play rounds without messages; return the server, and what devices hold in each round and at the end.

    ``multiplier``: noise of one release that had all of them spend; ``failed``: rounds that teach nothing.
    """
    server = protocol.server(Public(people.n_users, people.n_items, scale), catalogue, seed)
    held = []
    for number, share in enumerate(protocol.shares, start=1):
        device = protocol.device(server.held.encode(), people.n_items, scale)
        held.append(device)
        layout, noise = device.release(number), multiplier / float(np.sqrt(share))
        valid, total = layout.added_up(contributions(device, people, layout).encode(layout))
        assert valid.all()
        aggregate, draws = Aggregate(total, None, people.n_users), ReleaseDraws(seed, number)
        if number not in failed:
            released = CentralAggregation().release(aggregate, layout, noise, draws)
            server.learn(layout, number, released, noise, people.n_users)
    return server, [*held, protocol.device(server.learned.encode(), people.n_items, scale)]
