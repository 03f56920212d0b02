"""Who takes part: invited, admitted, enrolled, given other keys, removed; and what the operator is told."""

import threading
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from dprec.errors import InputError, RunError
from dprec_pilot.device.node_key import NodeKeyPair, PublicLine, new_node_key
from dprec_pilot.server import enrolling
from dprec_pilot.server.certificates import Authority
from dprec_pilot.server.enrolling import admit, enrol, invite, remove
from dprec_pilot.server.server_folder import Enrolled, ServerFolder, read_enrolment, write_enrolment
from pilot.tests.device.test_fleet import Listener, dated
from pilot.tests.server.control import FIRST_NODE, FakeControl, installed, pem
from tests.refusals import refused_at

SUPERLINK = "127.0.0.1:8000"


@pytest.fixture
def control(monkeypatch: pytest.MonkeyPatch) -> FakeControl:
    return installed(monkeypatch)


@pytest.fixture
def server(tmp_path: Path) -> ServerFolder:
    """A pilot that all join, with three users invited."""
    folder = ServerFolder(tmp_path)
    write_enrolment(folder.enrolment_file, [])
    (tmp_path / "ca.crt").write_bytes(Authority.new(10).issued.certificate)
    assert invite(folder, ["ann", "bob, the 2nd", "cy"]) == [0, 1, 2]
    return folder


def admitted(server: ServerFolder, *users: int) -> list[NodeKeyPair]:
    keys = [new_node_key() for _ in users]
    lines = [("LINE", PublicLine(user, key.public).text) for user, key in zip(users, keys, strict=True)]
    admit(server, lines)
    return keys


def signing(key: NodeKeyPair) -> ec.EllipticCurvePrivateKey:
    read = load_pem_private_key(key.private, None)
    assert isinstance(read, ec.EllipticCurvePrivateKey)
    return read


def listed(server: ServerFolder) -> list[Enrolled]:
    return read_enrolment(server.enrolment_file)


def test_numbers_are_positions_and_are_given_once(server: ServerFolder) -> None:
    assert listed(server) == [Enrolled("ann", None), Enrolled("bob, the 2nd", None), Enrolled("cy", None)]
    assert invite(server, ["dee"]) == [3]
    before = listed(server)
    for names in (["eve", "ann"], ["eve", "eve"], ["eve", ""], ["eve", " "], ["eve", "a\nb"], ["\x1b[2J"]):
        with refused_at("NAME"):
            invite(server, names)
    assert listed(server) == before


def test_nobody_joins_where_devices_mask_together(server: ServerFolder) -> None:
    line = PublicLine(0, new_node_key().public).text
    (server.path / "directory.txt").write_text("")
    before = listed(server)
    with refused_at(str(server.path)):
        invite(server, ["dee"])
    with refused_at(str(server.path)):
        admit(server, [("LINE", line)])
    assert listed(server) == before


def test_admitted_devices_are_enrolled_and_others_may_follow(
    server: ServerFolder, control: FakeControl
) -> None:
    with refused_at("enrolment.csv"):
        enrol(server, SUPERLINK)
    first, third = admitted(server, 0, 2)
    assert enrol(server, SUPERLINK) == 2
    assert [each.node_id for each in listed(server)] == [FIRST_NODE, None, FIRST_NODE + 1]
    (second,) = admitted(server, 1)
    assert enrol(server, SUPERLINK) == 3
    assert [each.public_key for each in listed(server)] == [first.public, second.public, third.public]
    assert [each.node_id for each in listed(server)] == [FIRST_NODE, FIRST_NODE + 2, FIRST_NODE + 1]
    assert len(control.nodes) == 3


def test_a_line_that_comes_twice_changes_nothing(server: ServerFolder, control: FakeControl) -> None:
    (key,) = admitted(server, 1)
    enrol(server, SUPERLINK)
    before = listed(server)
    assert admit(server, [("LINE", PublicLine(1, key.public).text)]) == ["bob, the 2nd"]
    assert listed(server) == before


def test_lines_that_may_not_be_admitted_are_named_and_none_is(server: ServerFolder) -> None:
    (key,) = admitted(server, 1)
    before, other = listed(server), new_node_key()
    for line in (
        PublicLine(3, other.public),
        PublicLine(1, other.public),
        PublicLine.signed(1, other.public, signing(other)),
        PublicLine.signed(2, other.public, signing(key)).text.replace("2 ", "1 ", 1),
        PublicLine(2, key.public),
        "2 ssh-ed25519 AAAA",
    ):
        text = line if isinstance(line, str) else line.text
        good = PublicLine(0, new_node_key().public).text
        with refused_at("line 2"):
            admit(server, [("line 1", good), ("line 2", text)])
    with refused_at("line 2"):
        admit(server, [("line 1", PublicLine(0, other.public).text), ("line 2", f"2 {other.public}")])
    assert listed(server) == before


def test_a_later_key_takes_the_place_of_the_one_before(server: ServerFolder, control: FakeControl) -> None:
    first, bystander = admitted(server, 0, 1)
    enrol(server, SUPERLINK)
    later = new_node_key()
    admit(server, [("LINE", PublicLine.signed(0, later.public, signing(first)).text)])
    # Until it is enrolled, the device is known by its first key.
    assert listed(server)[0] == Enrolled("ann", later.public, FIRST_NODE)
    assert control.status_of(first.public) == "registered"
    assert enrol(server, SUPERLINK) == 2
    assert listed(server)[0] == Enrolled("ann", later.public, FIRST_NODE + 2)
    assert [control.status_of(key.public) for key in (first, bystander, later)] == [
        "unregistered",
        "registered",
        "registered",
    ]


def test_a_key_that_was_unregistered_is_named_and_the_others_are_enrolled(
    server: ServerFolder, control: FakeControl
) -> None:
    first, second = admitted(server, 0, 1)
    enrol(server, SUPERLINK)
    control.nodes[0].status = "unregistered"
    (third,) = admitted(server, 2)
    with pytest.raises(RunError) as caught:
        enrol(server, SUPERLINK)
    line = str(caught.value)
    assert line.startswith("1 of 3 devices are not enrolled, the others are: ")
    assert f"{server.enrolment_file}:2: user ann: its key was unregistered" in line
    assert "dprec-pilot rotate" in line
    assert listed(server)[2].node_id == FIRST_NODE + 2
    later = new_node_key()
    admit(server, [("LINE", PublicLine.signed(0, later.public, signing(first)).text)])
    assert enrol(server, SUPERLINK) == 3
    assert [control.status_of(key.public) for key in (second, third, later)] == ["registered"] * 3


def test_a_key_that_the_superlink_refuses_is_named_with_its_reason(
    server: ServerFolder, control: FakeControl
) -> None:
    keys = admitted(server, 0, 1)
    control.refused = {pem(keys[1].public)}
    with pytest.raises(RunError, match=r"enrolment\.csv:3: user bob, the 2nd: .*Public key already in use"):
        enrol(server, SUPERLINK)
    assert [each.node_id for each in listed(server)] == [FIRST_NODE, None, None]


def test_a_key_that_is_none_is_named(server: ServerFolder, control: FakeControl) -> None:
    (key,) = admitted(server, 0)
    enrolled = listed(server)
    write_enrolment(server.enrolment_file, [enrolled[0], Enrolled("bob", "no key"), enrolled[2]])
    with pytest.raises(RunError, match=r"enrolment\.csv:3: user bob: its public key is none"):
        enrol(server, SUPERLINK)
    assert control.status_of(key.public) == "registered"
    remove(server, SUPERLINK, "bob")
    assert enrol(server, SUPERLINK) == 1


def test_many_refusals_are_counted_and_some_are_named(server: ServerFolder, control: FakeControl) -> None:
    write_enrolment(server.enrolment_file, [Enrolled(f"u{user}", f"junk {user}") for user in range(9)])
    with pytest.raises(RunError, match="9 of 9 devices") as caught:
        enrol(server, SUPERLINK)
    assert str(caught.value).count("enrolment.csv:") == 5
    assert str(caught.value).endswith("; and 4 more")


def test_what_was_registered_is_written_down_when_the_superlink_goes(
    server: ServerFolder, control: FakeControl
) -> None:
    admitted(server, 0, 1, 2)
    control.fails_after = 2
    with pytest.raises(RunError, match="gone"):
        enrol(server, SUPERLINK)
    assert [each.node_id for each in listed(server)] == [FIRST_NODE, FIRST_NODE + 1, None]


def test_a_removed_device_is_known_no_longer_and_its_number_is_not_given_again(
    server: ServerFolder, control: FakeControl
) -> None:
    first, second = admitted(server, 0, 1)
    enrol(server, SUPERLINK)
    remove(server, SUPERLINK, "ann")
    assert listed(server)[0] == Enrolled("ann", None)
    assert [control.status_of(key.public) for key in (first, second)] == ["unregistered", "registered"]
    assert enrol(server, SUPERLINK) == 1
    for user in ("ann", "nobody"):
        with refused_at("enrolment.csv"):
            remove(server, SUPERLINK, user)
    assert invite(server, ["dee"]) == [3]
    # A key that was taken off comes back as another one, whether or not it is signed.
    later = new_node_key()
    admit(server, [("LINE", PublicLine.signed(0, later.public, signing(first)).text)])
    assert enrol(server, SUPERLINK) == 2


def test_a_device_that_was_admitted_and_not_enrolled_can_be_removed(
    server: ServerFolder, control: FakeControl
) -> None:
    (key,) = admitted(server, 1)
    remove(server, SUPERLINK, "bob, the 2nd")
    assert control.status_of(key.public) is None
    assert listed(server)[1] == Enrolled("bob, the 2nd", None)


def test_removing_again_after_a_crash_ends_it(server: ServerFolder, control: FakeControl) -> None:
    admitted(server, 0)
    enrol(server, SUPERLINK)
    enrolled = listed(server)
    remove(server, SUPERLINK, "ann")
    write_enrolment(server.enrolment_file, enrolled)
    remove(server, SUPERLINK, "ann")
    assert listed(server)[0] == Enrolled("ann", None)


def test_two_changes_at_once_are_made_one_after_the_other(
    server: ServerFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, inside, go_on = enrolling.read_enrolment, threading.Event(), threading.Event()
    calls = iter(range(9))

    def slowly(path: Path) -> list[Enrolled]:
        enrolled = read(path)
        if next(calls) == 1:
            inside.set()
            go_on.wait(9)
        return enrolled

    monkeypatch.setattr(enrolling, "read_enrolment", slowly)
    threads = [threading.Thread(target=invite, args=(server, [name])) for name in ("dee", "eve")]
    threads[0].start()
    assert inside.wait(9)
    threads[1].start()
    go_on.set()
    for thread in threads:
        thread.join(9)
    assert [each.user for each in listed(server)[3:]] == ["dee", "eve"]


def test_a_folder_that_is_no_servers_is_left_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"enrolment\.csv: No such file"):
        invite(ServerFolder(tmp_path), ["ann"])
    assert list(tmp_path.iterdir()) == []


def test_the_operator_reads_what_is_wrong_with_the_certificate(
    server: ServerFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    admitted(server, 0)
    authority = Authority.new(3650)
    (tmp_path / "ca.crt").write_bytes(authority.issued.certificate)
    with dated(monkeypatch, -100.0):
        listener = Listener(tmp_path, authority.issue(["127.0.0.1"], 1))
    with pytest.raises(RunError, match="certificate has expired; dprec-pilot renew"):
        enrol(server, listener.address)
    listener.close()
