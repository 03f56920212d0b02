"""One device in secure sums, and a server that asks and tells it whatever it likes.

The device's messages of an honest run are recorded once; then it is asked again, from the folder that it had
before the run, in other orders and with other contents.
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Message

from dprec.errors import InputError
from dprec.exchange import KEYS, SHARES, STATISTICS, UNMASK, RefusalCode
from dprec.protocols.sums import SumsProtocol
from dprec.secure_aggregation import graph_size
from dprec.secure_aggregation.messages import SEALED_BYTES, SECRET_BYTES, SIGNED_BYTES
from dprec_pilot.device.device import Device
from dprec_pilot.device.folder import DeviceFolder
from dprec_pilot.device.node_key import new_node_key
from dprec_pilot.masks.masking import pack_presence
from dprec_pilot.server.serving import serve
from pilot.tests.make import DeviceGrid, again, grid_of, pilot, report_in, request
from pilot.tests.server.test_secure_sums import USERS, secure
from tests.refusals import refused_at

DEGREE, THRESHOLD = astuple(graph_size(USERS, 0.17, 2))
STEPS = [KEYS, SHARES, STATISTICS, UNMASK]


@dataclass(frozen=True)
class Recorded:
    """What one device was asked in an honest run, and what it said."""

    folder: Path
    """As it was before."""
    group: str
    asked: list[tuple[str, dict[str, Any]]]
    said: list[bytes]

    def opened(self, path: Path) -> Device:
        """Return the device as it was before the run, in another folder."""
        shutil.copytree(self.folder, path)
        return Device(DeviceFolder(path), seeded=True)

    def question(self, step: int, **changes: Any) -> Message:
        """Return one of the questions of the run, with other entries."""
        kind, entries = self.asked[step]
        return self.of_kind(kind, **{**entries, **changes})

    def of_kind(self, kind: str, **entries: Any) -> Message:
        """Return a question in the run."""
        message = request(kind, self.group, **entries)
        message.metadata.__dict__["_group_id"] = self.group
        return message

    def ready(self, path: Path, steps: int) -> Device:
        """Return the device after some steps of the run."""
        device = self.opened(path)
        for step in range(steps):
            assert report_in(device.answer(self.question(step))) == self.said[step]
        return device


class _Recording(DeviceGrid):
    def __init__(self, devices: list[Device]) -> None:
        super().__init__(devices)
        self.heard: list[tuple[Message, Message]] = []

    def answer(self, message: Message) -> Message:
        reply = super().answer(message)
        if message.metadata.dst_node_id == min(self.get_node_ids()):
            self.heard.append((message, reply))
        return reply


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    folder = tmp_path_factory.mktemp("secure")
    _, server = pilot(secure("popularity-secagg"), folder / "pilot", runs=99)
    grid_of(server)
    paths = sorted((folder / "pilot" / "devices").iterdir())
    shutil.copytree(paths[0], folder / "before")
    grid = _Recording([Device(DeviceFolder(path), seeded=True) for path in paths])
    serve(grid, server, folder / "out")
    steps = [(message, reply) for message, reply in grid.heard if message.metadata.message_type in STEPS]
    return Recorded(
        folder / "before",
        steps[0][0].metadata.group_id,
        [(message.metadata.message_type, dict(message.content["request"])) for message, _ in steps],
        [report_in(reply) for _, reply in steps],
    )


def refused(device: Device, message: Message, code: RefusalCode) -> None:
    """Check that a device refuses a message, and that nothing of the folder changes."""
    before = {path.name: path.read_bytes() for path in device.folder.path.iterdir() if path.is_file()}
    reply = device.answer(message)
    assert reply.has_error()
    assert RefusalCode(reply.error.code) == code
    assert before == {path.name: path.read_bytes() for path in device.folder.path.iterdir() if path.is_file()}


def with_block(said: bytes, place: int, size: int, block: bytes) -> bytes:
    return said[: place * size] + block + said[(place + 1) * size :]


def test_a_release_is_four_steps_of_known_sizes_and_one_charge(recorded: Recorded, tmp_path: Path) -> None:
    assert [kind for kind, _ in recorded.asked] == STEPS
    sizes = [len(said) for said in recorded.said]
    assert sizes == [SIGNED_BYTES, DEGREE * SEALED_BYTES, sizes[2], DEGREE * SECRET_BYTES]
    device = recorded.ready(tmp_path / "device", 4)
    (charge,) = device.charges
    protocol = device.folder.agreement.protocol
    assert isinstance(protocol, SumsProtocol)
    assert (charge.question, charge.round, charge.delta) == (STATISTICS, 1, 1e-6)
    assert charge.per_rating == charge.per_user == charge.most_per_user == protocol.loss_of([1])
    assert 1 < protocol.loss_of([1]) < 2.5


def test_it_says_the_same_after_it_was_killed_and_when_it_is_asked_again(
    recorded: Recorded, tmp_path: Path
) -> None:
    device = recorded.opened(tmp_path / "device")
    for step in range(4):
        for _ in range(2):
            device = again(device)
            assert report_in(device.answer(recorded.question(step))) == recorded.said[step]
    assert len(device.charges) == 1


@pytest.mark.parametrize("done", range(5))
def test_no_step_is_taken_back(recorded: Recorded, tmp_path: Path, done: int) -> None:
    """Nor does one come before those that lead to it."""
    device = recorded.ready(tmp_path / "device", done)
    for _ in range(2):
        for step in range(done - 1):
            refused(device, recorded.question(step), RefusalCode.ROUND_ANSWERED)
        for step in range(done + 1, 4):
            refused(device, recorded.question(step), RefusalCode.MALFORMED_REQUEST)
        device = again(device)


def nobody(said: bytes) -> bytes:
    """Say that the first neighbour was never there."""
    return with_block(said, 0, len(said) // DEGREE, bytes(len(said) // DEGREE))


@pytest.mark.parametrize(
    ("step", "changes"),
    [
        (1, lambda entries: {"told": nobody(entries["told"])}),
        (2, lambda entries: {"shares": nobody(entries["shares"])}),
        (2, lambda entries: {"factors": entries["factors"] + b"\0"}),
        (3, lambda entries: {"told": bytes([entries["told"][0] ^ 0x80]) + entries["told"][1:]}),
    ],
)
def test_each_step_is_answered_for_one_question(
    recorded: Recorded, tmp_path: Path, step: int, changes: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    """Of the last step too: both secrets of the first neighbour would be revealed."""
    other = recorded.question(step, **changes(recorded.asked[step][1]))
    device = recorded.ready(tmp_path / "device", step + 1)
    for _ in range(2):
        refused(device, other, RefusalCode.CHANGED_REQUEST)
        device = again(device)
    assert report_in(device.answer(recorded.question(step))) == recorded.said[step]


def test_a_forgotten_run_is_not_answered_anew(recorded: Recorded, tmp_path: Path) -> None:
    """A device remembers the steps of few runs, but of each run to which round it has contributed."""
    device = recorded.ready(tmp_path / "device", 4)
    for run in range(2, 9):
        assert not device.answer(request(KEYS, recorded.group, run, round=1, told=b"")).has_error()
    assert len([name for name in device._state.records if name.startswith("secure-sum-")]) == 4
    for step, code in enumerate((RefusalCode.ROUND_ANSWERED,) * 2 + (RefusalCode.MALFORMED_REQUEST,) * 2):
        refused(device, recorded.question(step), code)


def test_keys_are_those_that_each_neighbour_has_signed_for_this_sum(
    recorded: Recorded, tmp_path: Path
) -> None:
    device, told = recorded.ready(tmp_path / "device", 1), recorded.asked[1][1]["told"]
    first, second = told[:SIGNED_BYTES], told[SIGNED_BYTES : 2 * SIGNED_BYTES]
    another = replace(recorded, folder=device.folder.path).opened(tmp_path / "other")
    own = report_in(another.answer(request(KEYS, recorded.group, 5, round=1, told=b"")))
    strangers = new_node_key()
    assert strangers.public not in (device.folder.path / "directory.txt").read_text()
    for block in (
        first[:-1] + bytes([first[-1] ^ 1]),
        bytes([first[0] ^ 1]) + first[1:],
        second,
        own,
        recorded.said[0],
        first[:64] + bytes(96),
    ):
        forged = recorded.question(1, told=with_block(told, 0, SIGNED_BYTES, block))
        refused(device, forged, RefusalCode.MALFORMED_REQUEST)
    assert report_in(device.answer(recorded.question(1))) == recorded.said[1]


@pytest.mark.parametrize("step", [1, 2])
def test_with_fewer_neighbours_than_the_threshold_it_does_not_go_on(
    recorded: Recorded, tmp_path: Path, step: int
) -> None:
    name = "shares" if step == 2 else "told"
    told = recorded.asked[step][1][name]
    size, device = len(told) // DEGREE, recorded.ready(tmp_path / "device", step)
    most = DEGREE - THRESHOLD
    few, enough = (bytes(gone * size) + told[gone * size :] for gone in (most + 1, most))
    refused(device, recorded.question(step, **{name: few}), RefusalCode.MALFORMED_REQUEST)
    assert len(report_in(device.answer(recorded.question(step, **{name: enough})))) == len(
        recorded.said[step]
    )


def test_it_reveals_nothing_where_fewer_than_the_threshold_are_said_to_be_there(
    recorded: Recorded, tmp_path: Path
) -> None:
    device = recorded.ready(tmp_path / "device", 3)
    few, enough = (pack_presence(np.arange(DEGREE) < here) for here in (THRESHOLD - 1, THRESHOLD))
    refused(device, recorded.question(3, told=few), RefusalCode.MALFORMED_REQUEST)
    answer = report_in(device.answer(recorded.question(3, told=enough)))
    blocks = [
        (answer[place : place + SECRET_BYTES], recorded.said[3][place : place + SECRET_BYTES])
        for place in range(0, len(answer), SECRET_BYTES)
    ]
    assert [mine == honest for mine, honest in blocks] == [True] * THRESHOLD + [False] * (DEGREE - THRESHOLD)


@pytest.mark.parametrize("name", ["directory.txt", "node.key"])
def test_a_device_takes_part_only_under_its_own_key_among_those_agreed_on(
    recorded: Recorded, tmp_path: Path, name: str
) -> None:
    folder = recorded.opened(tmp_path / "device").folder
    others = b"ecdsa-sha2-nistp384 other\n" * USERS
    (folder.path / name).write_bytes(others if name == "directory.txt" else new_node_key().private)
    with refused_at("directory.txt"):
        Device(DeviceFolder(folder.path), seeded=True)
    (folder.path / "directory.txt").unlink()
    with pytest.raises(InputError):
        Device(DeviceFolder(folder.path), seeded=True)


@pytest.mark.parametrize("limit", ["per_user", "per_rating", "per_user_lifetime", "delta_lifetime"])
def test_limits_of_epsilon_and_delta_are_held_before_any_key_is_given(
    recorded: Recorded, tmp_path: Path, limit: str
) -> None:
    (charge,) = recorded.ready(tmp_path / "paid", 4).charges
    cost = charge.delta if limit == "delta_lifetime" else charge.most.per_user
    for share in (1 - 1e-9, 1.0):
        device = recorded.opened(tmp_path / str(share))
        options = json.loads(device.folder.options_file.read_text())
        options["limits"][limit] = share * cost
        device.folder.options_file.write_text(json.dumps(options))
        if share < 1:
            refused(again(device), recorded.question(0), RefusalCode.BUDGET_SPENT)
        else:
            assert report_in(again(device).answer(recorded.question(0))) == recorded.said[0]


def test_what_costs_nothing_does_not_depend_on_the_ratings(recorded: Recorded, tmp_path: Path) -> None:
    """Nor do its ratings change what it has shared, if they change before it contributes."""
    device = recorded.opened(tmp_path / "device")
    profile = device.folder.path / "profile.csv"
    profile.write_text("\n".join(profile.read_text().split()[:2]) + "\n")
    assert [report_in(device.answer(recorded.question(step))) for step in (0, 1)] == recorded.said[:2]
    assert report_in(device.answer(recorded.question(2))) != recorded.said[2]
    assert report_in(device.answer(recorded.question(3))) == recorded.said[3]
