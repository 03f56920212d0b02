"""What an operator sees of a pilot on a real SuperLink, and what the SuperLink keeps when a run is over."""

import re
import stat
from pathlib import Path

from flwr.app import ConfigRecord
from flwr.proto.message_pb2 import PushObjectRequest
from flwr.supercore.inflatable.inflatable_object import get_object_type_from_object_content

from dprec.exchange import Reports
from dprec_pilot.server.enrolling import enrol
from dprec_pilot.server.run_log import ENDED, FAILED, how_it_ended
from dprec_pilot.server.server_folder import ServerFolder
from dprec_pilot.server.status import status_of
from dprec_pilot.server.superlink import seen_nodes, seen_runs
from pilot.tests.deployed.wire import ON_A_SUPERLINK, Wire, await_that, free_port, wired
from pilot.tests.make import BLP, USERS, pilot

pytestmark = ON_A_SUPERLINK

SHORTEST = 8
"""Bytes of a report that are found by chance in a file with a probability of 1e-12."""


def reports(wire: Wire) -> list[bytes]:
    """Return the reports that devices have sent, inside TLS."""
    heard, found = bytes(wire.read.kept_up), []
    for request in re.finditer(rb"POST /v1/fleet/push-object HTTP/1.1\r\n(.*?)\r\n\r\n", heard, re.DOTALL):
        length = int(re.search(rb"content-length: (\d+)", request[1], re.IGNORECASE)[1])  # type: ignore[index]
        body = heard[request.end() : request.end() + length]
        if len(body) < length:
            continue
        content = PushObjectRequest.FromString(body).object_content
        if get_object_type_from_object_content(content) == "ConfigRecord":
            record = ConfigRecord.inflate(content)
            if "reports" in record:
                found += [report for report in Reports.of(record).reports if len(report) >= SHORTEST]
    return found


def kept(server: Path, contents: list[bytes]) -> int:
    """Return how many of some contents are in the SuperLink's files."""
    files = b"\0".join(path.read_bytes() for path in server.glob("superlink.db*"))
    return sum(content in files for content in contents)


def logs(wire: Wire, server: ServerFolder) -> str:
    """Return what Flower shows of all runs."""
    runs = seen_runs(wire.address, server.certificate)
    return "".join(wire.flower("log", "--show", str(run), "pilot") for run in runs)


def test_runs_can_be_followed_and_leave_no_report_in_the_superlink(tmp_path: Path) -> None:
    port = free_port()
    _, server = pilot(BLP, tmp_path / "pilot", seeded=False, host="127.0.0.1", port=port)
    devices, first, second = tmp_path / "pilot" / "devices", *(server.path / "runs" / name for name in "12")
    with wired(tmp_path / "pilot", port) as wire:
        assert enrol(server, wire.address) == USERS
        wire.devices(sorted(devices.iterdir()), "devices")
        wire.run(server, first)
        await_that(lambda: len(reports(wire)) == USERS, wire)
        sent = reports(wire)
        # They are in the database while the run needs them.
        await_that(lambda: kept(server.path, sent) > 0 or (first / "summary.json").exists(), wire)
        before = kept(server.path, sent)
        files = list(server.path.glob("superlink.db*"))
        assert {path.name for path in files} >= {"superlink.db", "superlink.db-wal"}
        assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
        await_that(lambda: (how_it_ended(first) or "").startswith(ENDED), wire)
        nodes = seen_nodes(wire.address, server.certificate)
        assert {each.device for each in status_of(server, nodes).users} == {"online"}
        await_that(lambda: kept(server.path, sent) == 0, wire)
        assert before > 0
        # Nobody has anything left to spend.
        wire.run(server, second)
        await_that(lambda: (how_it_ended(second) or "").startswith(FAILED), wire)
        # Flower takes what a run says every few seconds, and the rest when it ends.
        await_that(lambda: f"{FAILED} after" in logs(wire, server), wire)
        told_by_flower = logs(wire, server)
    assert f"query.report: {USERS} answered" in told_by_flower
    assert f"round 1: 0 reports can be used; {USERS} budget-spent" in told_by_flower
    assert [run.causes for run in status_of(server).runs] == [{}, {"budget-spent": USERS}]
