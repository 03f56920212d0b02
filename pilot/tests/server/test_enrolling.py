"""Who takes part: invited, admitted, enrolled, given other keys, removed; and what the operator is told."""

from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_private_key,
    load_ssh_public_key,
)
from flwr.proto.control_pb2 import ListNodesResponse, RegisterNodeResponse, UnregisterNodeResponse
from flwr.proto.node_pb2 import NodeInfo

from dprec.errors import InputError, RunError
from dprec_pilot.device.node_key import NodeKeyPair, PublicLine, new_node_key
from dprec_pilot.server import superlink
from dprec_pilot.server.certificates import Authority
from dprec_pilot.server.enrolling import admit, enrol, invite, remove
from dprec_pilot.server.server_folder import Enrolled, ServerFolder, read_enrolment, write_enrolment
from tests.refusals import refused_at

SUPERLINK = "127.0.0.1:8000"
FIRST_NODE = 100


def pem(key: str) -> bytes:
    public = load_ssh_public_key(key.encode())
    return public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


@dataclass
class FakeControl:
    """A SuperLink's registry."""

    nodes: list[NodeInfo] = field(default_factory=list)

    def ListNodes(self, request: Any) -> ListNodesResponse:  # noqa: N802
        return ListNodesResponse(nodes_info=self.nodes)

    def RegisterNode(self, request: Any) -> RegisterNodeResponse:  # noqa: N802
        if request.public_key in {node.public_key for node in self.nodes}:
            raise _status(412, '{"code": 23, "detail": "Public key already in use."}')
        node = NodeInfo(
            node_id=FIRST_NODE + len(self.nodes), public_key=request.public_key, status="registered"
        )
        self.nodes.append(node)
        return RegisterNodeResponse(node_id=node.node_id)

    def UnregisterNode(self, request: Any) -> UnregisterNodeResponse:  # noqa: N802
        with suppress(StopIteration):
            known = (node for node in self.nodes if node.status != "unregistered")
            next(node for node in known if node.node_id == request.node_id).status = "unregistered"
            return UnregisterNodeResponse()
        raise _status(404, '{"code": 24, "detail": "Node ID not found for account."}')

    def status_of(self, key: str) -> str | None:
        """Return Flower's word for a key; None of one that it has never seen."""
        return next((node.status for node in self.nodes if node.public_key == pem(key)), None)

    def close(self) -> None: ...


def _status(status: int, body: str) -> httpx.HTTPStatusError:
    request = httpx.Request("POST", "https://superlink.test/v1/control")
    return httpx.HTTPStatusError(
        "refused", request=request, response=httpx.Response(status, text=body, request=request)
    )


@pytest.fixture
def control(monkeypatch: pytest.MonkeyPatch) -> FakeControl:
    """Let every SuperLink be a new one of these."""
    made = FakeControl()
    monkeypatch.setattr(superlink.ControlHttpClient, "from_server_address", lambda **_: made)
    return made


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
    assert control.status_of(first.public) == "unregistered"
    assert control.status_of(bystander.public) == control.status_of(later.public) == "registered"


def test_a_key_that_was_unregistered_is_named_and_the_others_are_enrolled(
    server: ServerFolder, control: FakeControl
) -> None:
    first, second = admitted(server, 0, 1)
    enrol(server, SUPERLINK)
    control.nodes[0].status = "unregistered"
    (third,) = admitted(server, 2)
    with pytest.raises(RunError) as caught:
        enrol(server, SUPERLINK)
    assert str(caught.value).startswith("1 of 3 devices are not enrolled, the others are: ")
    assert f"{server.enrolment_file}:2: user ann: its key was unregistered" in str(caught.value)
    later = new_node_key()
    admit(server, [("LINE", PublicLine.signed(0, later.public, signing(first)).text)])
    assert enrol(server, SUPERLINK) == 3
    assert [control.status_of(key.public) for key in (second, third, later)] == ["registered"] * 3


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


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", ":1: nothing"),
        ("user,public_key,node_id\nu1,k\n", ":2: u1,k"),
        ("user,public_key,node_id\nu1,k,1\n", ":2: node 1"),
        ("user,public_key,node_id\nu1,k,18446744073709551616\n", ":2: node 1844"),
        ("user,public_key,node_id\nu1,k,7\nu2,k,8\n", ":3: k again"),
        ("user,public_key,node_id\nu1,k,7\nu2,l,7\n", ":3: node 7 again"),
        ("user,public_key,node_id\nu1,,\nu1,,\n", ":3: user u1 again"),
    ],
)
def test_what_is_no_list_is_refused(tmp_path: Path, text: str, line: str) -> None:
    path = tmp_path / "enrolment.csv"
    path.write_text(text)
    with pytest.raises(InputError) as refused:
        read_enrolment(path)
    assert f"{path}{line}" in str(refused.value)
