"""What tests of pilots run on: small pilots, folders of devices, messages, and grids in this process."""

import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.app.message import make_message
from flwr.app.metadata import Metadata
from flwr.clientapp import ClientApp
from flwr.common.constant import SUPERLINK_NODE_ID

from dprec.accounting import PrivacyBudget
from dprec.exchange import TRAIN
from dprec.gradients import OneBitGradient
from dprec.protocols.base import Protocol
from dprec.protocols.iterative import IterativeProtocol
from dprec.randomness import InstalledKeys, RunKeys
from dprec.ratings import Ratings
from dprec.wire import BroadcastOptions, encode_broadcast
from dprec_pilot.device.device import Device
from dprec_pilot.device.folder import Agreement, DeviceFolder, write_device
from dprec_pilot.device.ledger import Limits
from dprec_pilot.server.preparing import PilotOptions, prepare
from dprec_pilot.server.server_folder import ServerFolder, write_enrolment
from simulation.configuration.models import RunConfig, parse_config
from simulation.engine.grids import LocalGrid
from tests.dprec.protocols.test_sums_of_ones_own import OWN as HISTOGRAM
from tests.make import small_run, synthetic

USERS, ITEMS = 5, 12
RATINGS = synthetic(USERS, ITEMS, 30)
KEYS = RunKeys.derive(1).installed
UNLIMITED = Limits(
    per_rating=None, per_rating_lifetime=None, per_user=None, per_user_lifetime=None, runs=None
)
ROUNDS_SETUP = IterativeProtocol(
    gradient=OneBitGradient(), rank=2, rounds=4, privacy=PrivacyBudget(epsilon=1.6, per="user")
)


def limits(**given: float) -> Limits:
    return Limits(**{**UNLIMITED.entries(), **given})


def agreement_on(protocol: Protocol, ratings: Ratings = RATINGS) -> Agreement:
    item_ids = [str(item) for item in ratings.item_ids]
    return Agreement.of(protocol, ratings.scale, item_ids, public=KEYS.public)


def install(
    folder: Path,
    protocol: Protocol,
    ratings: Ratings = RATINGS,
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
        agreement=agreement_on(protocol, ratings),
        item_ids=[str(item) for item in ratings.item_ids],
        node_key=b"",
        seeded=seeded,
    )


def write_profile(folder: DeviceFolder, profile: Mapping[int, float]) -> None:
    lines = [f"{RATINGS.item_ids[item]},{value}" for item, value in profile.items()]
    folder.profile_file.write_text("\n".join(["item,rating", *lines, ""]))


def device_with(
    folder: Path, profile: Mapping[int, float], protocol: Protocol, allowed: Limits = UNLIMITED
) -> Device:
    """Return a device with ratings of its own, by item."""
    write_profile(install(folder, protocol, limits=allowed), profile)
    return Device(DeviceFolder(folder))


def again(device: Device) -> Device:
    """Return the device as another process finds it."""
    return Device(DeviceFolder(device.folder.path), seeded=device.folder.seeded is not None)


RUN = 1
"""The run of every message that is made in a test process, unless it says another."""


def key_of(run: int) -> str:
    """Return the key of a run that tests number."""
    return urlsafe_b64encode(run.to_bytes(3, "big")).decode()


def group_on(protocol: Protocol, ratings: Ratings = RATINGS, run: int = RUN) -> str:
    """Return the group of the messages of a run."""
    return agreement_on(protocol, ratings).group(key_of(run))


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


def factors(seed: int = 0) -> bytes:
    values = np.random.default_rng(seed).normal(size=(ITEMS, ROUNDS_SETUP.rank))
    return encode_broadcast(BroadcastOptions().rounded(values))


def train(round_index: int = 1, seed: int = 0, run: int = RUN, **more: object) -> Message:
    """Return the question of a round of `ROUNDS_SETUP`."""
    group = group_on(ROUNDS_SETUP)
    return request(TRAIN, group, run, round=round_index, **{"factors": factors(seed), **more})


def report_in(reply: Message) -> bytes:
    """Return the one report of a reply."""
    assert reply.has_content(), reply.error.reason
    record = reply.content["reply"]
    assert isinstance(record, ConfigRecord)
    (report,) = record["reports"]  # type: ignore[misc]
    assert isinstance(report, bytes)
    return report


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


_ONE_SHOT = {
    "kind": "one-shot",
    "privacy": {"epsilon": 1.0, "per": "rating"},
    "mechanism": {"kind": "bounded-laplace"},
    "completion": {"kind": "mf"},
    "delivery": {"items": 30},
}
_ITERATIVE = {
    "kind": "iterative",
    "privacy": {"epsilon": 1.6, "per": "user"},
    "gradient": {"kind": "one-bit"},
    "rounds": 3,
    "rank": 2,
}
_GRAM = {"kind": "gram", "table": {"items": 12}, "aggregation": {"kind": "central"}}
_LOCAL = {"privacy": {"epsilon": 2.0, "per": "user"}, "aggregation": {"kind": "local"}}
_SETS = {"kind": "synthetic", "users": USERS, "items": 30, "ratings": 100, "positive": ">= 3", "min_items": 2}


def _values(name: str, protocol: dict[str, Any], split: str = "holdout", **parts: Any) -> dict[str, Any]:
    parts = {"split": {"kind": split, "test_fraction": 0.2}, **parts}
    return small_run(protocol, USERS, 30, 60, name=name, **parts)


BLP = _values("blp-mf", _ONE_SHOT)
PG = _values("pg-mf", _ITERATIVE)
GRAM = _values("gram-central", _GRAM, "user-holdout", dataset=_SETS)
GRAM_LOCAL = _values("gram-local", {**_GRAM, **_LOCAL}, "user-holdout", dataset=_SETS)
SECRET_SET = _values("sums-on-device", {"kind": "sums-on-device", "aggregation": {"kind": "central"}})
OF_ONES_OWN = _values("item-histogram", {"kind": HISTOGRAM, **_LOCAL})
"""A protocol of sums from a user's file."""
RANDOMIZED_SETS = _values(
    "randomized-sets",
    {"kind": "randomized-sets", "privacy": {"epsilon": 2.0, "per": "cell"}, "items": 12},
    "user-holdout",
    dataset=_SETS,
)
WEEKLY = {
    **{key: value for key, value in BLP.items() if key != "split"},
    "name": "weekly",
    "dataset": {**BLP["dataset"], "arrivals": {}},
    "schedule": {"kind": "increments"},
}


def pilot(values: dict[str, Any], folder: Path, **options: Any) -> tuple[RunConfig, ServerFolder]:
    """Prepare a pilot, by default of seeded devices."""
    config = parse_config(values)
    return config, prepare(config, folder, PilotOptions(**{"seeded": True, **options}))


def folders_of(server: ServerFolder) -> list[DeviceFolder]:
    """Return the folders of a pilot's devices, by user."""
    return [DeviceFolder(path) for path in sorted((server.path.parent / "devices").iterdir())]


def grid_of(server: ServerFolder) -> DeviceGrid:
    """Return the grid of a pilot's devices, which are enrolled."""
    grid = DeviceGrid([Device(own, seeded=own.seeded is not None) for own in folders_of(server)])
    enrolled = server.enrolled()
    keys = [each.public_key or "" for each in enrolled]
    nodes = dict(zip(keys, grid.get_node_ids(), strict=True))
    known = [replace(each, node_id=nodes.get(each.public_key or "", each.node_id)) for each in enrolled]
    write_enrolment(server.enrolment_file, known)
    return grid
