"""How a device is served: what it asks a server, what it takes from it, and what its owner is told."""

import logging
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import partial
from pathlib import Path

import httpx
import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from flwr.app import ArrayRecord, Message, RecordDict
from flwr.proto.fleet_pb2 import PushMessagesResponse
from flwr.proto.message_pb2 import ObjectTree
from flwr.supercore.primitives.asymmetric import public_key_to_bytes

from dprec.errors import InputError, RunError
from dprec.exchange import RefusalCode
from dprec_pilot.device import fleet, service
from dprec_pilot.device.device import LOG, Device
from dprec_pilot.device.fleet import BoundedTransport, Fleet, TooLargeError
from dprec_pilot.device.folder import DeviceFolder
from dprec_pilot.device.node_key import read_node_key
from dprec_pilot.device.service import LONGEST_ONLINE, Served, Service, opened_devices
from pilot.tests.device.devices import install, report_in
from pilot.tests.device.fake_superlink import NODE, FakeSuperLink
from pilot.tests.device.test_device import RATINGS, ROUNDS_SETUP, again, train

ADDRESS = "server.test:443"
SMALL = 1 << 20
"""Bytes that an answer may have in these tests."""


def node_key(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


KEY = node_key(ec.generate_private_key(ec.SECP384R1()))


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
    folder = install(tmp_path / "u0", ROUNDS_SETUP, RATINGS)
    folder.node_key_file.write_bytes(KEY)
    return Device(folder)


def serving(device: Device) -> Service:
    key = read_node_key(device.folder.node_key_file)
    return Service(Fleet(ADDRESS, Path("ca.crt")), [Served(device, key)], threading.Event())


def test_a_device_says_that_it_is_online_whenever_it_is_started(
    superlink: FakeSuperLink, device: Device, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger=LOG.name):
        serving(device).run_once()
        serving(again(device)).run_once()
    assert "send-node-heartbeat" in superlink.paths
    assert [record.getMessage() for record in caplog.records] == [f"{device.name}: online"] * 2


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


def test_a_server_that_has_lost_its_memory_is_met_anew(superlink: FakeSuperLink, device: Device) -> None:
    device.remember_node(3)
    superlink.faults = [status(401)]
    serving(device).run_once()
    assert superlink.paths[:2] == ["send-node-heartbeat", "activate-node"]
    assert again(device).node_id == NODE


def test_devices_that_are_served_all_the_time_leave_at_the_end(
    superlink: FakeSuperLink, device: Device
) -> None:
    running = serving(device)
    superlink.put(train(1))
    superlink.faults = [unreachable, unreachable]
    superlink.idle = running.stopped.set
    running.run(0.01)
    assert [reply.has_content() for reply in superlink.replies] == [True]
    assert superlink.paths[-1] == "deactivate-node"
    assert superlink.intervals == [30.0]


def test_many_devices_stay_online_until_all_have_had_their_turn(
    superlink: FakeSuperLink, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "_VISIT_SECONDS", 20.0)
    running = serving(device)
    superlink.idle = running.stopped.set
    running.run(3.0)
    assert superlink.intervals == [80.0]


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


def test_answers_that_took_too_long_take_twice_as_long_from_then_on(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = [100.0]
    monkeypatch.setattr(service.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(service.time, "sleep", lambda seconds: clock.__setitem__(0, clock[0] + seconds))
    monkeypatch.setattr(fleet.ssl.SSLContext, "load_verify_locations", lambda *_, **__: None)
    running, ended = serving(device), []
    for due in (100.25, 100.0, 101.0):
        running._rest(due)
        ended.append((clock[0], running._period))
    assert ended == [(100.25, 0.25), (100.25, 0.5), (101.0, 0.5)]


def status(code: int, **headers: str) -> Callable[[httpx.Request], httpx.Response]:
    return lambda request: httpx.Response(code, request=request, headers=headers)


def unreachable(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("[Errno 111] Connection refused")


def at(minutes: float) -> str:
    return format_datetime(datetime.now(UTC) + timedelta(minutes=minutes), usegmt=True)


@pytest.mark.parametrize(
    ("fault", "line"),
    [
        (status(401), "the server does not know the key of this device"),
        (status(412), "the server does not know the key of this device, or takes it for one that is online"),
        (status(401, date=at(60)), "s behind the server's"),
        (status(401, date=at(-60)), "s ahead of the server's"),
        (status(404), "the server refuses (status 404)"),
    ],
)
def test_who_is_not_admitted_is_told_why(
    superlink: FakeSuperLink,
    device: Device,
    caplog: pytest.LogCaptureFixture,
    fault: Callable[[httpx.Request], httpx.Response],
    line: str,
) -> None:
    superlink.faults = [fault]
    with caplog.at_level(logging.INFO, logger=LOG.name), pytest.raises(RunError, match="1 of 1 devices"):
        serving(device).run_once()
    (record,) = caplog.records
    assert record.getMessage().startswith("u0: not served, ")
    assert line in record.getMessage()


def test_a_device_that_was_removed_is_told_so_and_asks_more_and_more_seldom(
    superlink: FakeSuperLink,
    device: Device,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    device.remember_node(NODE)
    clock = [100.0]
    running = serving(device)
    running.served[0].pause = 1.0

    def wait(seconds: float) -> bool:
        clock[0] += max(seconds, 0.5)
        if clock[0] > 300:
            running.stopped.set()
        return True

    monkeypatch.setattr(service.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(running.stopped, "wait", wait)
    superlink.status = {"send-node-heartbeat": 401, "activate-node": 412}
    with caplog.at_level(logging.INFO, logger=LOG.name):
        running.run(0.5)
    said = [record.getMessage() for record in caplog.records]
    removed = "u0: not served, the server no longer knows the key of this device"
    assert all(line.startswith(removed) for line in said)
    pauses = [float(line.rpartition("next attempt in ")[2].removesuffix(" s")) for line in said]
    assert pauses[:8] == [1, 2, 4, 8, 16, 32, 60, 60]
    assert again(device).node_id == NODE


def test_the_next_key_takes_its_place_once_the_server_knows_it(
    superlink: FakeSuperLink, device: Device, caplog: pytest.LogCaptureFixture
) -> None:
    folder, secret = device.folder, device.folder.secret
    device.remember_node(3)
    later = node_key(ec.generate_private_key(ec.SECP384R1()))
    folder.next_node_key_file.write_bytes(later)
    superlink.known, superlink.node = (
        {public_key_to_bytes(read_node_key(folder.node_key_file).public_key())},
        3,
    )
    with opened_devices([folder.path], seeded=False) as served:
        Service(Fleet(ADDRESS, Path("ca.crt")), served, threading.Event()).run_once()
    assert superlink.paths == ["activate-node", "send-node-heartbeat", "pull-messages"]
    assert folder.next_node_key_file.exists()
    superlink.known, superlink.node = (
        {public_key_to_bytes(read_node_key(folder.next_node_key_file).public_key())},
        NODE,
    )
    superlink.paths.clear()
    superlink.put(train(1))
    with (
        caplog.at_level(logging.INFO, logger=LOG.name),
        opened_devices([folder.path], seeded=False) as served,
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


@pytest.mark.parametrize("status", [403, 412, 500])
def test_a_reply_that_nobody_waits_for_is_dropped(
    superlink: FakeSuperLink, device: Device, status: int
) -> None:
    superlink.put(train(1))
    superlink.status = {"push-messages": status}
    serving(device).run_once()
    assert again(device).pending is None


def test_a_refusal_says_no_more_than_its_code(superlink: FakeSuperLink, device: Device) -> None:
    device.answer(train(1))
    device.forget_reply()
    device.folder.profile_file.write_text("item,rating\n")
    for kept in device.folder.kept_profile_file("").parent.iterdir():
        kept.unlink()
    superlink.put(train(2))
    serving(again(device)).run_once()
    (reply,) = superlink.replies
    assert (reply.error.code, reply.error.reason) == (RefusalCode.INTERNAL_FAILURE, "INTERNAL_FAILURE")


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


def test_only_the_newest_work_of_a_device_is_done(
    superlink: FakeSuperLink, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[int] = []
    begun, go_on, numbers = threading.Event(), threading.Event(), iter(range(9))

    def work_of(number: int) -> Callable[[], None]:
        return lambda: (begun.set(), go_on.wait(9), done.append(number))[0]

    monkeypatch.setattr(Device, "take_work", lambda _: work_of(next(numbers)))
    running = serving(device)
    monkeypatch.setattr(running.fleet, "close", go_on.set)
    monkeypatch.setattr(
        running, "_rest", lambda due: begun.wait(9) if running.served[0].reply is None else None
    )
    for round_index in range(1, 5):
        superlink.put(train(round_index))
    running.run_once()
    assert done == [0, 3]


def unknown_part(superlink: FakeSuperLink, monkeypatch: pytest.MonkeyPatch) -> None:
    push = superlink._push_messages

    def asking_for_more(data: bytes) -> PushMessagesResponse:
        push(data)
        return PushMessagesResponse(objects_to_push=["0" * 64], session_id="1")

    monkeypatch.setattr(superlink, "_push_messages", asking_for_more)


def impossible_date(superlink: FakeSuperLink, monkeypatch: pytest.MonkeyPatch) -> None:
    superlink.faults = [status(401, date="Mon, 1 Jan 99999999999999999999 00:00:00 GMT")] * 9


def no_answer(superlink: FakeSuperLink, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fleet, "pull", lambda *_: 1 / 0)


@pytest.mark.parametrize("spoil", [unknown_part, impossible_date, no_answer])
def test_no_answer_of_a_server_ends_the_process(
    superlink: FakeSuperLink,
    device: Device,
    monkeypatch: pytest.MonkeyPatch,
    spoil: Callable[[FakeSuperLink, pytest.MonkeyPatch], None],
) -> None:
    superlink.put(train(1))
    spoil(superlink, monkeypatch)
    with pytest.raises(RunError, match="1 of 1 devices were not served"):
        serving(device).run_once()


def many_objects(superlink: FakeSuperLink) -> None:
    superlink.tree = ObjectTree(children=[ObjectTree(object_id=f"{number:064d}") for number in range(99)])


def lost_object(superlink: FakeSuperLink) -> None:
    superlink.objects.popitem()


def exchanged_object(superlink: FakeSuperLink) -> None:
    first, *_, last = superlink.objects
    superlink.objects[first] = superlink.objects[last]


def garbage(superlink: FakeSuperLink) -> None:
    superlink.objects = dict.fromkeys(superlink.objects, b"\xff\0garbage")


def huge(superlink: FakeSuperLink) -> None:
    superlink.objects = dict.fromkeys(superlink.objects, bytes(SMALL // 2))


def arrays(superlink: FakeSuperLink) -> None:
    superlink.waiting.clear()
    message = train(1)
    message.content = RecordDict({"request": ArrayRecord([np.zeros(3)])})
    superlink.put(message)


@pytest.mark.parametrize("spoil", [many_objects, lost_object, exchanged_object, garbage, huge, arrays])
def test_what_is_no_request_is_refused_before_it_is_read(
    superlink: FakeSuperLink, device: Device, spoil: Callable[[FakeSuperLink], None]
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


@pytest.mark.parametrize(
    ("contents", "found"),
    [
        (b"", "no key"),
        (node_key(rsa.generate_private_key(65537, 1024)), "a key of type"),
    ],
)
def test_a_key_that_flower_would_not_take_is_named(device: Device, contents: bytes, found: str) -> None:
    device.folder.node_key_file.write_bytes(contents)
    with pytest.raises(InputError, match=rf"node\.key: {found}"):
        read_node_key(device.folder.node_key_file)


def test_devices_are_opened_from_their_folders_or_the_folder_of_all(device: Device, tmp_path: Path) -> None:
    with opened_devices([tmp_path, device.folder.path], seeded=False) as served:
        assert [one.device.name for one in served] == ["u0"]
        with (
            pytest.raises(InputError, match="in use by another process"),
            opened_devices([device.folder.path], seeded=False),
        ):
            pass
    with pytest.raises(InputError, match=r"no device\.json"), opened_devices([tmp_path / "no"], seeded=False):
        pass


def test_a_real_device_and_one_of_a_test_are_not_confused(device: Device) -> None:
    with pytest.raises(InputError, match="a device that draws from its secret"):
        Device(device.folder, seeded=True)
