"""What a device's folder holds, who may read it, and what is refused in it."""

import errno
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dprec.accounting import PrivacyBudget
from dprec.errors import InputError
from dprec.mechanisms import BoundedLaplace
from dprec.personalization import OrdinalProcess
from dprec_pilot import files as durable
from dprec_pilot.computing import COMPUTES
from dprec_pilot.device.device import Device
from dprec_pilot.device.folder import DeviceFolder
from dprec_pilot.device.profile import read_state
from pilot.tests.make import KEYS, RATINGS, ROUNDS_SETUP, again, agreement_on, install, report_in, train
from tests import make
from tests.own_family import OwnBits
from tests.refusals import refused_at

SETUP = make.one_shot(BoundedLaplace(), PrivacyBudget(epsilon=1.0))


@pytest.fixture
def device(tmp_path: Path) -> DeviceFolder:
    return install(tmp_path / "u1", SETUP, user=1, seeded=KEYS)


def test_every_part_of_a_protocol_is_in_its_fingerprint() -> None:
    agreement = agreement_on(SETUP)
    others = [
        replace(agreement, protocol=replace(SETUP, privacy=PrivacyBudget(epsilon=1.5))),
        replace(agreement, levels=(1.0, 2.0)),
        replace(agreement, items=13),
        replace(agreement, catalogue="0"),
        replace(agreement, public="0" * 32),
        replace(agreement, process=OrdinalProcess(level=0.5)),
        replace(agreement, computes=COMPUTES + 1),
    ]
    prints = {each.fingerprint for each in [agreement, *others]}
    assert len(prints) == 8
    assert len(agreement.group("AAAB")) == len("00000001")


def test_a_second_process_is_told_in_one_line(device: DeviceFolder) -> None:
    with device.locked(), refused_at("u1"), DeviceFolder(device.path).locked():
        pass
    with DeviceFolder(device.path).locked():
        pass


@pytest.mark.parametrize(
    ("name", "contents", "read", "where"),
    [
        ("profile.csv", "item,rating\n1,3\n1,3\n", DeviceFolder.profile, "profile.csv:3"),
        ("profile.csv", "item,rating\n99,3\n", DeviceFolder.profile, "profile.csv:2"),
        ("profile.csv", "item,rating\n1,nan\n", DeviceFolder.profile, "profile.csv:2"),
        ("profile.csv", "rating\n", DeviceFolder.profile, "profile.csv:1"),
        ("catalogue.txt", "1\n2\n", DeviceFolder.profile, "catalogue.txt"),
        ("device.json", '{"user": 1}', lambda device: device.options, "device.json, limits"),
        ("protocol.json", "{}", lambda device: device.agreement, "protocol.json, protocol"),
        (
            "protocol.json",
            f'{{"computes": {COMPUTES + 1}}}',
            lambda device: device.agreement,
            "protocol.json",
        ),
        ("secret.key", "short", lambda device: device.secret, "secret.key"),
        ("state", "x" * 64, lambda device: read_state(device.state_file), "state"),
    ],
)
def test_what_is_damaged_is_named(
    device: DeviceFolder, name: str, contents: str, read: Callable[[DeviceFolder], object], where: str
) -> None:
    (device.path / name).write_text(contents)
    with refused_at(where):
        read(DeviceFolder(device.path))


def test_a_secret_that_others_can_read_is_none(device: DeviceFolder) -> None:
    device.secret_file.chmod(0o640)
    with refused_at("secret.key"):
        _ = DeviceFolder(device.path).secret


def test_a_class_that_the_installation_does_not_name_is_not_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, budget = "tests.own_family:OwnBits", PrivacyBudget(epsilon=2.0, per="user")
    device = install(tmp_path / "own", make.one_shot(OwnBits(), budget), RATINGS)
    assert device.options.classes == (own,)
    assert device.agreement.protocol == make.one_shot(OwnBits(), budget)
    place = tmp_path / "planted"
    (tmp_path / "planted_family.py").write_text(f"import os\nos.mkdir({str(place)!r})\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    protocol, options = device.protocol_file.read_text(), device.options_file.read_text()
    for named, text in (
        (options, protocol.replace(own, "planted_family:Bits")),
        (options, protocol.replace(own, "os:system")),
        (options.replace(f'"{own}"', ""), protocol),
    ):
        device.protocol_file.write_text(text)
        device.options_file.write_text(named)
        with pytest.raises(InputError) as caught:
            _ = DeviceFolder(device.path).agreement
        assert "protocol.mechanism.kind" in caught.value.where
    assert not place.exists()


MOMENTS = 8
"""At least the system calls that make an answer durable: those for the memory, then those for the ledger."""


class Killed(BaseException):
    """Not caught by what catches errors, like a signal."""


class Disk:
    """Lets a number of system calls pass, and then raises an error before or after the next one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left, self.after = -1, False
        self.error: BaseException | type[BaseException] = Killed
        self.calls = 0
        for name in ("fsync", "replace"):
            monkeypatch.setattr(durable.os, name, self.wrapped(getattr(os, name)))

    def wrapped(self, call: Any) -> Any:
        def wrapping(*arguments: Any) -> None:
            self.calls += 1
            failing = self.left == 0
            self.left -= 1
            if failing and not self.after:
                raise self.error
            call(*arguments)
            if failing:
                raise self.error

        return wrapping


def test_a_file_and_then_its_folder_are_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file before it has its name, and its folder after that, so that the name lasts."""
    calls = list[str]()
    folder, replace_ = tmp_path.stat(), os.replace

    def synced(descriptor: int) -> None:
        what = os.fstat(descriptor)
        calls.append("folder" if os.path.samestat(what, folder) else f"{what.st_size} bytes")

    def renamed(source: str, target: Path) -> None:
        calls.append("name")
        replace_(source, target)

    monkeypatch.setattr(durable.os, "fsync", synced)
    monkeypatch.setattr(durable.os, "replace", renamed)
    durable.write_durably(tmp_path / "file", b"whole")
    assert calls == ["5 bytes", "name", "folder"]
    durable.append_durably(tmp_path / "file", b" and more", after=5)
    assert calls[3:] == ["14 bytes", "folder"]
    assert (tmp_path / "file").read_bytes() == b"whole and more"


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


@pytest.fixture
def running(tmp_path: Path) -> Device:
    running = Device(install(tmp_path / "u0", ROUNDS_SETUP))
    running.answer(train(1))
    return running


def rounds(running: Device) -> list[int]:
    return [charge.round for charge in running.charges]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("moment", range(MOMENTS))
@pytest.mark.parametrize("cut", [0, 1, 60])
def test_killed_at_any_moment(running: Device, disk: Disk, moment: int, after: bool, cut: int) -> None:
    disk.left, disk.after, disk.error = moment, after, Killed
    left = []
    try:
        left.append(report_in(running.answer(train(2))))
    except Killed:
        # What was not synced may be lost, in part or as a whole.
        size = running.folder.ledger_file.stat().st_size
        os.truncate(running.folder.ledger_file, max(size - cut, len(whole_lines(running, 1))))
    disk.left = -1
    revived = again(running)
    assert rounds(revived) in ([1], [1, 2])
    assert not (left and rounds(revived) == [1])
    # The same question is answered alike, and charged once; another one contradicts what may have left.
    left.append(report_in(revived.answer(train(2))))
    assert len(set(left)) == 1
    assert rounds(revived) == rounds(again(revived)) == [1, 2]
    assert again(revived).answer(train(2, seed=1)).has_error()


def whole_lines(running: Device, count: int) -> bytes:
    """Return the first lines of the ledger."""
    return b"".join(running.folder.ledger_file.read_bytes().splitlines(keepends=True)[:count])


@pytest.mark.parametrize("moment", range(MOMENTS))
def test_a_full_disk_lets_nothing_leave(running: Device, disk: Disk, moment: int) -> None:
    disk.left, disk.error = moment, OSError(errno.ENOSPC, "No space left on device")
    reply = running.answer(train(2))
    assert reply.has_error() is (disk.calls > moment)
    assert moment < MOMENTS - 1 or not reply.has_error()
    if reply.has_error():
        assert reply.error.reason == "INTERNAL_FAILURE"
    disk.left = -1
    assert running.answer(train(2)).has_content()
    assert rounds(running) == rounds(again(running)) == [1, 2]


def test_a_ledger_that_is_cut_in_its_last_line_is_whole_again(running: Device) -> None:
    running.answer(train(2))
    path, first = running.folder.ledger_file, len(whole_lines(running, 1))
    whole = path.read_bytes()
    for size in [*range(first, len(whole), 40), len(whole) - 1]:
        path.write_bytes(whole[:size])
        assert rounds(again(running)) == [1, 2]
        assert path.read_bytes() == whole


def test_a_ledger_without_more_than_its_last_line_is_not_used(running: Device) -> None:
    for round_index in (2, 3):
        running.answer(train(round_index))
    path = running.folder.ledger_file
    lines = path.read_bytes().splitlines(keepends=True)
    damaged = {
        b"": 1,
        lines[0]: 2,
        lines[0] + lines[2]: 2,
        b"".join([lines[0].replace(b'"round": 1', b'"round": 4'), *lines[1:]]): 1,
        b"".join([lines[1], *lines[1:]]): 1,
    }
    for contents, line in damaged.items():
        path.write_bytes(contents)
        with pytest.raises(InputError, match=rf"ledger\.jsonl:{line}: a line that is missing or damaged"):
            again(running)


def test_a_memory_of_another_time_is_not_used(running: Device) -> None:
    old = running.folder.state_file.read_bytes()
    running.answer(train(2))
    running.folder.state_file.write_bytes(old)
    with pytest.raises(InputError, match=r"ledger\.jsonl:2: a line that the device does not remember"):
        again(running)
