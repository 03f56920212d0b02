"""Everybody gets the best of what the server has not seen, and is charged for exactly that."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from clients import delivery as on_device
from dprec.datasets import Synthetic
from dprec.exchange import RECOMMEND
from dprec.mechanisms.randomized_response import Raw
from dprec.predictions import NO_ITEM
from dprec.ratings import Ratings
from dprec.wire import ItemListCodec, TrafficLedger
from strategies import delivery
from strategies.delivery import ListsToSend, SeenItems, deliver_lists
from strategies.roster import Roster, identify
from strategies.rounds import message_size
from tests import make
from tests.builders import RecordingGrid, populated

USERS, ITEMS, LONGEST, GROUP = 12, 9, 6, "00000001"


@pytest.fixture(scope="module")
def ratings() -> Ratings:
    return Synthetic(users=USERS, items=ITEMS, ratings=60).load()


def predict(users: NDArray[np.integer], items: NDArray[np.integer]) -> NDArray[np.float64]:
    """Predict ratings of which some are beyond the scale."""
    return 7.0 * np.sin(users * 5.0 + items * 3.0)


def lists_for(ratings: Ratings) -> ListsToSend:
    seen = SeenItems(ratings.counts, ratings.items, ITEMS)
    return ListsToSend(LONGEST, seen, ratings.scale, predict)


def delivered(folder: Path, ratings: Ratings, size: int) -> tuple[TrafficLedger, RecordingGrid, Roster]:
    populated(folder / GROUP, ratings, make.one_shot(Raw()), size)
    grid, traffic = RecordingGrid(folder, -(-USERS // size)), TrafficLedger(USERS)
    roster = Roster(identify(grid), USERS, size)
    grid.sent, grid.received = [], []
    spent = deliver_lists(grid, roster, GROUP, lists_for(ratings), traffic)
    assert spent["downlink_message_bytes"] == traffic.downlink_message.sum()
    return traffic, grid, roster


def test_the_charged_bytes_are_those_of_the_messages(tmp_path: Path, ratings: Ratings) -> None:
    assert ratings.counts.max() > ITEMS - LONGEST, "nobody has a shorter list"
    traffic, grid, roster = delivered(tmp_path, ratings, 1)
    for user, node in enumerate(roster.node_ids):
        (request,) = (sent for sent in grid.sent if sent.metadata.dst_node_id == node)
        (acknowledgement,) = (got for got in grid.received if got.metadata.src_node_id == node)
        assert traffic.downlink_message[user] == message_size(request)
        assert traffic.uplink_message[user] == message_size(acknowledgement)
    assert traffic.messages.tolist() == [2] * USERS


@pytest.mark.parametrize(("size", "most"), [(5, 1 << 20), (USERS, 1 << 20), (5, 0), (USERS, 0)])
def test_the_same_is_charged_for_any_cohorts_whether_lists_are_made_or_not(
    tmp_path: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch, size: int, most: int
) -> None:
    expected, _, _ = delivered(tmp_path / "alone", ratings, 1)
    monkeypatch.setattr(delivery, "MOST_CELLS", most)
    traffic, grid, _ = delivered(tmp_path / "together", ratings, size)
    assert {message.metadata.message_type for message in grid.sent} == ({RECOMMEND} if most else set())
    for name in vars(expected):
        np.testing.assert_array_equal(getattr(traffic, name), getattr(expected, name))


def test_devices_receive_the_best_unseen_items_and_clipped_ratings(
    tmp_path: Path, ratings: Ratings, monkeypatch: pytest.MonkeyPatch
) -> None:
    received: dict[int, list[bytes]] = {}

    def keep(partition, sent):  # type: ignore[no-untyped-def]
        received[partition.start] = sent.lists

    monkeypatch.setattr(on_device, "receive_lists", keep)
    delivered(tmp_path, ratings, USERS)
    items, listed = ItemListCodec(ITEMS).decode(received[0])
    cells = np.indices((USERS, ITEMS)).reshape(2, -1)
    scores = predict(*cells).reshape(USERS, ITEMS)
    for user in range(USERS):
        rated = ratings.items[ratings.users == user]
        best = [item for item in np.argsort(-scores[user], kind="stable") if item not in rated][:LONGEST]
        sent = items[user]
        assert sent[sent != NO_ITEM].tolist() == best
        clipped = np.clip(scores[user, best], ratings.scale.low, ratings.scale.high).astype(np.float32)
        np.testing.assert_array_equal(listed[user, : len(best)], clipped)
