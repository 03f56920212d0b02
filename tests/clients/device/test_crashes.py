"""A device that dies at any moment, or whose disk is full: nothing is charged twice, nothing is forgotten."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from clients.device import durable
from clients.device.device import Device
from clients.device.folder import DeviceFolder
from dprec.errors import InputError
from tests.clients.device.devices import install, report_in
from tests.clients.device.test_device import RATINGS, ROUNDS_SETUP, again, train

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


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


@pytest.fixture
def device(tmp_path: Path) -> Device:
    device = Device(install(tmp_path / "u0", ROUNDS_SETUP, RATINGS))
    device.answer(train(1))
    return device


def rounds(device: Device) -> list[int]:
    return [charge.round for charge in device.charges]


def test_an_answer_has_as_many_moments_as_are_tried(device: Device, disk: Disk) -> None:
    device.answer(train(2))
    assert 0 < disk.calls < MOMENTS


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("moment", range(MOMENTS))
@pytest.mark.parametrize("cut", [0, 1, 60])
def test_killed_at_any_moment(device: Device, disk: Disk, moment: int, after: bool, cut: int) -> None:
    disk.left, disk.after, disk.error = moment, after, Killed
    left = []
    try:
        left.append(report_in(device.answer(train(2))))
    except Killed:
        # What was not synced may be lost, in part or as a whole.
        size = device.folder.ledger_file.stat().st_size
        os.truncate(device.folder.ledger_file, max(size - cut, len(whole_lines(device, 1))))
    disk.left = -1
    revived = again(device)
    assert rounds(revived) in ([1], [1, 2])
    assert not (left and rounds(revived) == [1])
    # The same question is answered alike, and charged once; another one contradicts what may have left.
    left.append(report_in(revived.answer(train(2))))
    assert len(set(left)) == 1
    assert rounds(revived) == rounds(again(revived)) == [1, 2]
    assert again(revived).answer(train(2, seed=1)).has_error()


def whole_lines(device: Device, count: int) -> bytes:
    """Return the first lines of the ledger."""
    return b"".join(device.folder.ledger_file.read_bytes().splitlines(keepends=True)[:count])


@pytest.mark.parametrize("moment", range(MOMENTS))
def test_a_full_disk_lets_nothing_leave(device: Device, disk: Disk, moment: int) -> None:
    disk.left, disk.error = moment, OSError(errno.ENOSPC, "No space left on device")
    reply = device.answer(train(2))
    assert reply.has_error() is (disk.calls > moment)
    if reply.has_error():
        assert reply.error.reason == "INTERNAL_FAILURE"
    disk.left = -1
    assert device.answer(train(2)).has_content()
    assert rounds(device) == rounds(again(device)) == [1, 2]


def test_a_ledger_that_is_cut_in_its_last_line_is_whole_again(device: Device) -> None:
    device.answer(train(2))
    path, first = device.folder.ledger_file, len(whole_lines(device, 1))
    whole = path.read_bytes()
    for size in [*range(first, len(whole), 40), len(whole) - 1]:
        path.write_bytes(whole[:size])
        assert rounds(again(device)) == [1, 2]
        assert path.read_bytes() == whole


def test_a_ledger_without_more_than_its_last_line_is_not_used(device: Device) -> None:
    for round_index in (2, 3):
        device.answer(train(round_index))
    path, lines = device.folder.ledger_file, device.folder.ledger_file.read_bytes().splitlines(keepends=True)
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
            again(device)


def test_a_memory_of_another_time_is_not_used(device: Device) -> None:
    old = device.folder.state_file.read_bytes()
    device.answer(train(2))
    device.folder.state_file.write_bytes(old)
    with pytest.raises(InputError, match=r"ledger\.jsonl:2: a line that the device does not remember"):
        again(device)


def test_a_lost_memory_is_no_fresh_start(device: Device) -> None:
    device.folder.state_file.unlink()
    with pytest.raises(InputError, match=r"state: No such file"):
        again(device)


def test_what_a_dead_process_left_unfinished_is_removed(device: Device) -> None:
    unfinished = device.folder.path / f"{durable.PART}x"
    unfinished.touch()
    with DeviceFolder(device.folder.path).locked():
        assert not unfinished.exists()
