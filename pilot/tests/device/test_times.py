"""When answers leave says nothing about the profile: measured, in the manner of dudect, where it costs most.

Two devices, of a user with few ratings and of one with many, are asked in turn; a server notes when it is
asked for messages and when answers come, and how these are dated. The device with many ratings is slowed down
further, to make the difference plain on any machine. Times are compared by exact rank tests, at a false-alarm
probability of 1e-6 for all intervals together.
"""

import time
from pathlib import Path

import httpx
import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from flwr.app import Message
from scipy.stats import mannwhitneyu

from clients import one_shot
from clients.population import Partition
from dprec.accounting import PrivacyBudget
from dprec.datasets import Synthetic
from dprec.exchange import PERSONALIZE, REPORT, OneShotSetup
from dprec.mechanisms import ThresholdBit
from dprec.personalization import Devices
from dprec.wire import ItemTable
from dprec_pilot.device import fleet
from dprec_pilot.device.device import Device
from dprec_pilot.device.folder import DeviceFolder
from dprec_pilot.device.service import Service
from pilot.tests.device.devices import group_on, install, request
from pilot.tests.device.fake_superlink import FakeSuperLink
from pilot.tests.device.test_service import node_key, serving

RATINGS = Synthetic(users=2, items=700, ratings=700).load()
SETUP = OneShotSetup(mechanism=ThresholdBit(), privacy=PrivacyBudget(epsilon=1.0), predicts=True)
GROUP = group_on(SETUP, RATINGS)
FEW, MANY = 20, 650
TRIALS, AFTER, SLOWER, FALSE_ALARM = 14, 0.08, 0.02, 1e-6
SEEN = ("pull-messages", "push-messages")
VALUES = RATINGS.scale.values
TABLE = ItemTable.of_biases(np.arange(VALUES.size - 1.0), np.zeros(700), np.ones(700)).encode()


class WatchingSuperLink(FakeSuperLink):
    """Notes when it hears of a device, and how its replies are dated."""

    def __init__(self) -> None:
        super().__init__()
        self.times: list[float] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        now = time.monotonic()
        if request.url.path.rpartition("/")[2] in SEEN:
            self.times.append(now)
        return super().handle_request(request)


@pytest.fixture
def superlink(monkeypatch: pytest.MonkeyPatch) -> WatchingSuperLink:
    server = WatchingSuperLink()
    monkeypatch.setattr(fleet, "BoundedTransport", lambda context: server)
    monkeypatch.setattr(fleet.ssl.SSLContext, "load_verify_locations", lambda *_, **__: None)
    return server


@pytest.fixture
def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Device]:
    """The devices of a user with few ratings and of one with many, whose every computation takes longer."""
    reports, predict = one_shot.reports, Devices.predict

    def slow_reports(partition: Partition) -> list[bytes]:
        time.sleep(SLOWER * (partition.items.size == MANY))
        return reports(partition)

    def slow_predict(devices: Devices, *cells: np.ndarray) -> np.ndarray:
        time.sleep(SLOWER * (devices.ratings.count == MANY))
        return predict(devices, *cells)

    monkeypatch.setattr(one_shot, "reports", slow_reports)
    monkeypatch.setattr(Devices, "predict", slow_predict)
    key, opened = node_key(ec.generate_private_key(ec.SECP384R1())), []
    for count in (FEW, MANY):
        folder = install(tmp_path / str(count), SETUP, RATINGS)
        folder.node_key_file.write_bytes(key)
        rated = [
            f"{item},{VALUES[place % VALUES.size]}" for place, item in enumerate(RATINGS.item_ids[:count])
        ]
        folder.profile_file.write_text("\n".join(["item,rating", *rated, ""]))
        opened.append(Device(DeviceFolder(folder.path)))
    return opened


def questions(run: int) -> list[Message]:
    return [request(REPORT, GROUP, run), request(PERSONALIZE, GROUP, run, table=TABLE)]


def intervals(superlink: WatchingSuperLink, device: Device, run: int) -> list[float]:
    """Ask for a report, then send a table: from question to answer, to the next question, and so on."""
    superlink.times.clear()
    for question in questions(run):
        superlink.put(question)
    service = serving(device)
    asking = Service(service.fleet, service.served, service.stopped, AFTER)
    begin = time.time() - time.monotonic()
    asking.run_once()
    sent = superlink.replies[-2:]
    dated = [reply.metadata.created_at - begin for reply in sent]
    assert len(superlink.times) == 5
    return [*np.diff(superlink.times).tolist(), *(date - superlink.times[0] for date in dated)]


def least_probability(seen: np.ndarray) -> float:
    """Return how probable times so different are by chance, of the interval that differs most.

    Parameters
    ----------
    seen : ndarray, shape (trials, 2, intervals)
    """
    chances = mannwhitneyu(seen[:, 0], seen[:, 1], axis=0, method="exact").pvalue
    return float(chances.min() * chances.size)


def test_when_answers_leave_does_not_depend_on_the_profile(
    superlink: WatchingSuperLink, pair: list[Device]
) -> None:
    runs = range(1, TRIALS + 1)
    seen = np.array([[intervals(superlink, device, run) for device in pair] for run in runs])
    assert least_probability(seen) > FALSE_ALARM


def test_answers_that_left_when_they_are_ready_would_be_noticed() -> None:
    """So many trials suffice for what slows the one device down, if the machine's own pauses are shorter."""
    pauses = np.random.default_rng(1).uniform(0, SLOWER, size=(TRIALS, 2, 6))
    assert least_probability(pauses) > FALSE_ALARM
    pauses[:, 1, 0] += SLOWER
    assert least_probability(pauses) < FALSE_ALARM
