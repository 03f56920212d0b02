"""Folders of devices for tests."""

from pathlib import Path

import numpy as np

from clients.device import Agreement, DeviceFolder, Limits, write_device
from dprec.datasets import Synthetic
from dprec.exchange import Setup
from dprec.randomness import InstalledKeys, RunKeys
from dprec.ratings import Ratings

USERS, ITEMS = 5, 12
UNLIMITED = Limits(
    per_rating=None, per_rating_lifetime=None, per_user=None, per_user_lifetime=None, runs=None
)
KEYS = RunKeys.derive(1).installed


def some_ratings() -> Ratings:
    return Synthetic(users=USERS, items=ITEMS, ratings=30).load()


def agreement_on(setup: Setup, ratings: Ratings) -> Agreement:
    item_ids = [str(item) for item in ratings.item_ids]
    return Agreement.of(setup, ratings.scale, item_ids, public=KEYS.public)


def install(
    folder: Path,
    setup: Setup,
    ratings: Ratings,
    user: int = 0,
    *,
    limits: Limits = UNLIMITED,
    seeded: InstalledKeys | None = None,
) -> DeviceFolder:
    """Make the device of one of the users."""
    own = slice(int(ratings.indptr[user]), int(ratings.indptr[user + 1]))
    return write_device(
        folder,
        profile=(ratings.items[own], ratings.values_at(np.arange(own.start, own.stop))),
        user=user,
        limits=limits,
        agreement=agreement_on(setup, ratings),
        item_ids=[str(item) for item in ratings.item_ids],
        node_key=b"",
        seeded=seeded,
    )
