"""Folders of devices for tests, and a grid in this process, each of whose nodes is a device with a folder."""

import time
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.app.message import make_message
from flwr.app.metadata import Metadata
from flwr.clientapp import ClientApp
from flwr.common.constant import SUPERLINK_NODE_ID

from dprec.datasets import Synthetic
from dprec.exchange import Setup
from dprec.randomness import InstalledKeys, RunKeys
from dprec.ratings import Ratings
from dprec_pilot.device.device import Device
from dprec_pilot.device.folder import Agreement, DeviceFolder, write_device
from dprec_pilot.device.ledger import Limits
from simulation.engine.grids import LocalGrid

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


RUN = 1
"""The run of every message that is made in a test process, unless it says another."""


def key_of(run: int) -> str:
    """Return the key of a run that tests number."""
    return urlsafe_b64encode(run.to_bytes(3, "big")).decode()


def group_on(setup: Setup, ratings: Ratings, run: int = RUN) -> str:
    """Return the group of the messages of a run."""
    return agreement_on(setup, ratings).group(key_of(run))


class _Devices(ClientApp):
    def __init__(self, devices: Sequence[Device]) -> None:
        super().__init__()
        self._devices = devices

    def __call__(self, message: Message, context: object) -> Message:
        device = self._devices[context.node_config["partition-id"]]  # type: ignore[attr-defined]
        reply = device.answer(message)
        if (work := device.take_work()) is not None:
            work()
        return reply


class DeviceGrid(LocalGrid):
    """The grid of some devices."""

    def __init__(self, devices: Sequence[Device]) -> None:
        super().__init__(_Devices(devices), len(devices))


def request(kind: str, group: str, run: int = RUN, flower_run: int = 1, **entries: object) -> Message:
    """Return a message with a request in a run of a protocol, as it arrives; an empty group stays so."""
    metadata = Metadata(
        run_id=flower_run,
        message_id="1",
        src_node_id=SUPERLINK_NODE_ID,
        dst_node_id=7,
        reply_to_message_id="",
        group_id=group[:-4] + key_of(run) if group else group,
        created_at=time.time(),
        ttl=3600.0,
        message_type=kind,
    )
    record = ConfigRecord(entries)  # type: ignore[arg-type]
    return make_message(metadata=metadata, content=RecordDict({"request": record}))


def report_in(reply: Message) -> bytes:
    """Return the one report of a reply."""
    assert reply.has_content(), reply.error.reason
    record = reply.content["reply"]
    assert isinstance(record, ConfigRecord)
    (report,) = record["reports"]  # type: ignore[misc]
    assert isinstance(report, bytes)
    return report
