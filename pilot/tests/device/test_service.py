"""How a device is served: what it asks a server, what it takes from it, and what its owner is told."""

import logging
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import httpx
import numpy as np
import pytest
from flwr.app import ArrayRecord, Message, RecordDict
from flwr.proto.message_pb2 import ObjectTree
from flwr.supercore.primitives.asymmetric import public_key_to_bytes

from dprec.errors import RunError
from dprec_pilot import console
from dprec_pilot.device import fleet, service
from dprec_pilot.device.device import LOG, Device
from dprec_pilot.device.fleet import BoundedTransport, Fleet, TooLargeError
from dprec_pilot.device.folder import DeviceFolder
from dprec_pilot.device.node_key import new_node_key, read_node_key
from dprec_pilot.device.service import LONGEST_ONLINE, Served, Service, opened_devices
from pilot.tests.device.fake_superlink import NODE, FakeSuperLink
from pilot.tests.make import ROUNDS_SETUP, again, install, report_in, train, write_profile

ADDRESS = "server.test:443"
SMALL = 1 << 20
"""Bytes that an answer may have in these tests."""


KEY = new_node_key().private


def public_key(node_key_file: Path) -> bytes:
    return public_key_to_bytes(read_node_key(node_key_file).public_key())


@pytest.fixture
def superlink(monkeypatch: pytest.MonkeyPatch) -> FakeSuperLink:
    server = FakeSuperLink()
    monkeypatch.setattr(fleet, "BoundedTransport", lambda context: server)
    monkeypatch.setattr(fleet, "LARGEST_BODY", SMALL)
    monkeypatch.setattr(fleet.ssl.SSLContext, "load_verify_locations", lambda *_, **__: None)
    monkeypatch.setattr(fleet.time, "sleep", lambda _: None)
    monkeypatch.setattr(service, "_FIRST_PAUSE", 0.0)
    return server


@pytest.fixture
def device(tmp_path: Path) -> Device:
    folder = install(tmp_path / "u0", ROUNDS_SETUP)
    folder.node_key_file.write_bytes(KEY)
    return Device(folder)


def serving(device: Device) -> Service:
    key = read_node_key(device.folder.node_key_file)
    return Service(Fleet(ADDRESS, Path("ca.crt")), [Served(device, key)], threading.Event())


def test_a_device_wakes_answers_what_waits_and_leaves(superlink: FakeSuperLink, device: Device) -> None:
    superlink.put(train(1))
    superlink.put(train(2))
    serving(device).run_once()
    assert len(superlink.replies) == 2
    assert len(again(device).charges) == 2
    assert device.pending is None
    # It stays online, so that messages can wait for the next visit, for which its number is known.
    assert superlink.intervals == [LONGEST_ONLINE]
    assert "deactivate-node" not in superlink.paths
    superlink.paths.clear()
    serving(again(device)).run_once()
    assert superlink.paths == ["send-node-heartbeat", "pull-messages"]
    assert report_in(superlink.replies[1]) == report_in(again(device).answer(train(2)))


def test_answers_leave_at_fixed_times_however_long_they_take(
    superlink: FakeSuperLink, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, took, left, answer = [1e9], [0.0], [], Device.answer

    def slow_answer(asked: Device, message: Message) -> Message:
        reply = answer(asked, message)
        reply.metadata.created_at = clock[0]
        clock[0] += took[0]
        return reply

    monkeypatch.setattr(Device, "answer", slow_answer)
    for module in (service, fleet):
        monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
        monkeypatch.setattr(module.time, "time", lambda: clock[0])
        monkeypatch.setattr(module.time, "sleep", lambda seconds: clock.__setitem__(0, clock[0] + seconds))
    for run, took[0] in enumerate((0.001, 0.1, 0.2, 0.3, 0.6), start=1):
        running = serving(device)
        began = clock[0]
        superlink.put(train(1, run=run))
        running.run_once()
        left.append(superlink.replies[-1].metadata.created_at - began)
    assert left == pytest.approx([0.25, 0.25, 0.25, 0.5, 0.75], abs=1e-6)


def spoiled_secret(folder: DeviceFolder) -> None:
    (folder.path / "secret.key").write_bytes(b"")


def spoiled_profile(folder: DeviceFolder) -> None:
    write_profile(folder, {0: 99.0})


@pytest.mark.parametrize(
    ("spoil", "file"), [(spoiled_secret, "secret.key"), (spoiled_profile, "profile.csv")]
)
def test_one_faulty_folder_is_named_and_the_others_are_served(
    superlink: FakeSuperLink,
    device: Device,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    spoil: Callable[[DeviceFolder], None],
    file: str,
) -> None:
    monkeypatch.setattr(service, "_log_to_standard_error", lambda: None)
    monkeypatch.setattr(service.signal, "signal", lambda *_: None)
    other, folders = (
        install(device.folder.path.parent / "u1", ROUNDS_SETUP, user=1),
        device.folder.path.parent,
    )
    other.node_key_file.write_bytes(new_node_key().private)
    spoil(other)
    superlink.put(train(1))
    command = ["device", str(folders), "--superlink", ADDRESS, "--ca", "ca.crt", "--once"]
    with pytest.raises(SystemExit) as ended:
        console.main(command)
    assert ended.value.code == 2
    assert len(superlink.replies) == 1
    (told,) = [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR]
    assert told.startswith(f"u1: not served, {other.path / file}")
    end = (
        "u1: 1 of 2 devices not served, for reasons said above; accepted: folders of devices that can be used"
    )
    assert capsys.readouterr().err == f"dprec-pilot: {end}\n"
    # Nobody has it who cannot serve it.
    with other.locked():
        pass


def status(code: int) -> Callable[[httpx.Request], httpx.Response]:
    return lambda request: httpx.Response(code, request=request)


def unreachable(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("[Errno 111] Connection refused")


def test_the_next_key_takes_its_place_once_the_server_knows_it(
    superlink: FakeSuperLink, device: Device, caplog: pytest.LogCaptureFixture
) -> None:
    folder, secret = device.folder, device.folder.secret
    device.remember_node(3)
    later = new_node_key().private
    folder.next_node_key_file.write_bytes(later)
    superlink.known, superlink.node = {public_key(folder.node_key_file)}, 3
    with opened_devices([folder.path], seeded=False) as (served, _):
        Service(Fleet(ADDRESS, Path("ca.crt")), served, threading.Event()).run_once()
    assert superlink.paths == ["activate-node", "send-node-heartbeat", "pull-messages"]
    assert folder.next_node_key_file.exists()
    superlink.known, superlink.node = {public_key(folder.next_node_key_file)}, NODE
    superlink.paths.clear()
    superlink.put(train(1))
    with (
        caplog.at_level(logging.INFO, logger=LOG.name),
        opened_devices([folder.path], seeded=False) as (served, _),
    ):
        Service(Fleet(ADDRESS, Path("ca.crt")), served, threading.Event()).run_once()
    assert superlink.paths[:2] == ["activate-node", "pull-messages"]
    assert caplog.records[0].getMessage() == "u0: online, by its next key"
    assert (folder.node_key_file.read_bytes(), folder.next_node_key_file.exists()) == (later, False)
    assert DeviceFolder(folder.path).secret == secret
    assert again(device).node_id == NODE
    assert len(again(device).charges) == 1


def test_a_server_that_is_away_is_tried_again_and_then_given_up(
    superlink: FakeSuperLink, device: Device, caplog: pytest.LogCaptureFixture
) -> None:
    superlink.faults = [unreachable, status(503), status(429)]
    serving(device).run_once()
    assert superlink.paths[-1] == "pull-messages"
    superlink.faults = [unreachable] * 9
    caplog.clear()
    with caplog.at_level(logging.INFO, logger=LOG.name), pytest.raises(RunError, match="1 of 1 devices"):
        serving(device).run_once()
    assert {record.getMessage() for record in caplog.records} == {
        "u0: server.test:443 is away ([Errno 111] Connection refused)"
    }


def test_a_reply_that_may_not_have_arrived_is_sent_again_and_charged_once(
    superlink: FakeSuperLink, device: Device
) -> None:
    superlink.put(train(1))
    running = serving(device)
    superlink.status = {"push-messages": 503}
    with pytest.raises(RunError):
        running.run_once()
    kept = again(device).pending
    assert kept is not None
    superlink.status = {}
    serving(again(device)).run_once()
    assert [report_in(reply) for reply in superlink.replies] == [report_in(kept)]
    assert again(device).pending is None
    assert len(again(device).charges) == 1


def test_what_is_done_for_the_user_does_not_delay_the_end_that_a_server_sees(
    superlink: FakeSuperLink, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    running = serving(device)
    close, wait = running.fleet.close, running._worker.shutdown
    monkeypatch.setattr(running.fleet, "close", lambda: (events.append("closed"), close()))
    monkeypatch.setattr(running._worker, "shutdown", lambda: (events.append("waits"), wait()))
    worked: list[bool] = []
    monkeypatch.setattr(Device, "take_work", lambda _: partial(worked.append, True))
    superlink.put(train(1))
    running.run_once()
    assert events == ["closed", "waits"]
    assert worked == [True]


def objects_of(contents: Callable[[bytes], bytes]) -> Callable[[FakeSuperLink], object]:
    """Return what gives all objects other contents."""
    return lambda link: link.objects.update({name: contents(own) for name, own in link.objects.items()})


def arrays(superlink: FakeSuperLink) -> None:
    superlink.waiting.clear()
    message = train(1)
    message.content = RecordDict({"request": ArrayRecord([np.zeros(3)])})
    superlink.put(message)


MANY = ObjectTree(children=[ObjectTree(object_id=f"{number:064d}") for number in range(99)])


@pytest.mark.parametrize(
    "spoil",
    [
        lambda link: setattr(link, "tree", MANY),
        lambda link: link.objects.popitem(),
        lambda link: link.objects.update({min(link.objects): link.objects[max(link.objects)]}),
        objects_of(lambda own: b"\xff\0garbage"),
        objects_of(lambda own: bytes(SMALL // 2)),
        arrays,
    ],
    ids=["many", "lost", "exchanged", "garbage", "huge", "arrays"],
)
def test_what_is_no_request_is_refused_before_it_is_read(
    superlink: FakeSuperLink, device: Device, spoil: Callable[[FakeSuperLink], object]
) -> None:
    superlink.put(train(1))
    spoil(superlink)
    serving(device).run_once()
    (reply,) = superlink.replies
    assert reply.error.reason == "MALFORMED_REQUEST"
    assert again(device).charges == ()


@pytest.mark.parametrize("headers", [{}, {"content-encoding": "gzip"}])
def test_no_more_is_read_than_a_device_has_room_for(
    monkeypatch: pytest.MonkeyPatch, headers: dict[str, str]
) -> None:
    class Endless(httpx.SyncByteStream):
        def __iter__(self) -> "Endless":
            return self

        def __next__(self) -> bytes:
            return bytes(1 << 20)

    monkeypatch.setattr(
        httpx.HTTPTransport,
        "handle_request",
        lambda self, request: httpx.Response(200, headers=headers, stream=Endless()),
    )
    monkeypatch.setattr(fleet, "LARGEST_BODY", SMALL)
    with httpx.Client(transport=BoundedTransport(True)) as client, pytest.raises(TooLargeError):
        client.post("https://server.test/")
