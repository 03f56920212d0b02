"""How a pilot is doing, from its folder, its runs and what a SuperLink knows."""

import json
import math
import shutil
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from flwr.app import Message
from flwr.proto.node_pb2 import NodeInfo
from flwr.supercore.control import ControlHttpClient

from dprec.errors import RunError
from dprec_pilot.server.journal import JOURNAL, Journal, waited_for
from dprec_pilot.server.run_log import ENDED, FAILED, RUN_LOG, followed
from dprec_pilot.server.server_folder import Enrolled, ServerFolder, write_enrolment
from dprec_pilot.server.serving import serve
from dprec_pilot.server.status import GOES_ON, KILLED, InRun, PilotStatus, RunStatus, status_of
from dprec_pilot.server.superlink import NodeSeen, seen_nodes, seen_runs, start_run
from pilot.tests.server.pilots import BLP, PG, USERS, grid_of, pilot
from pilot.tests.server.test_run_log import spend
from pilot.tests.test_console import typed
from tests.refusals import refused_at

LONG_AGO = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> ServerFolder:
    """Return the folder of a pilot after a run that one device refused, and one that is not enrolled."""
    folder = tmp_path_factory.mktemp("pilots") / "pilot"
    _, server = pilot(PG, folder)
    spend(folder / "devices", 1)
    grid = grid_of(server)
    enrolled = server.enrolled()
    write_enrolment(server.enrolment_file, [*enrolled, Enrolled("later", None)])
    serve(grid, server, server.path / "runs" / "7")
    return server


def test_everybody_has_what_became_of_the_device(server: ServerFolder) -> None:
    enrolled = server.enrolled()
    first, second = (each.node_id or 0 for each in enrolled[:2])
    nodes = [
        NodeSeen(first, "online", LONG_AGO),
        NodeSeen(second, "unregistered", None),
        NodeSeen(5, "online", None),
    ]
    status = status_of(server, nodes, "127.0.0.1:1")
    assert [each.user for each in status.users] == [each.user for each in enrolled]
    by_user = dict(zip(range(USERS + 1), status.users, strict=True))
    assert (by_user[0].device, by_user[0].last_seen) == ("online", LONG_AGO)
    assert [by_user[user].device for user in (1, 2, USERS)] == ["unregistered", None, None]
    assert [each.has_key for each in status.users] == [True] * USERS + [False]
    assert by_user[0].runs["7"] == InRun(answered=(1, 2, 3), received=1, epsilon_per_user=pytest.approx(1.6))
    assert by_user[1].runs["7"] == InRun(
        refused={"budget-spent": (1, 2, 3)}, received=1, epsilon_per_user=0.0
    )
    assert by_user[USERS].runs == {}


def test_a_run_has_its_causes_and_its_end(server: ServerFolder) -> None:
    (run,) = status_of(server).runs
    assert (run.name, run.questions, run.rounds, run.answers) == ("7", 4, 3, 3 * (USERS - 1))
    assert run.causes == {"budget-spent": 3}
    assert run.state.startswith(ENDED)
    assert datetime.fromisoformat(run.began or "") <= datetime.now(UTC)


def test_runs_that_fail_go_on_or_are_killed_are_told_apart(tmp_path: Path) -> None:
    _, server = pilot(BLP, tmp_path / "pilot")
    spend(tmp_path / "pilot" / "devices", *range(USERS))
    with pytest.raises(RunError) as error:
        serve(grid_of(server), server, tmp_path / "failed")
    states = []

    def state() -> str:
        (run,) = status_of(server, elsewhere=[tmp_path / "failed"]).runs
        return run.state

    states.append(state())
    with followed(tmp_path / "failed", []):
        states.append(state())
    # A process that is killed leaves its log as it was, and no lock.
    log = tmp_path / "failed" / RUN_LOG
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:-1]))
    states.append(state())
    assert states[0].startswith(FAILED)
    assert states[0].endswith(str(error.value))
    assert states[1:] == [GOES_ON, KILLED]


@pytest.mark.thorough
def test_an_open_question_is_counted_while_devices_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, server = pilot(BLP, tmp_path / "pilot")
    seen = list[RunStatus]()
    note = Journal.note_replies

    def noted(self: Journal, replies: Sequence[Message]) -> None:
        note(self, replies)
        seen.extend(status_of(server).runs)

    monkeypatch.setattr(Journal, "note_replies", noted)
    serve(grid_of(server), server, server.path / "runs" / "1")
    assert [run.waited_for for run in seen] == [(USERS, USERS)] * 2
    assert {run.state for run in seen} == {GOES_ON}
    assert [run.waited_for for run in status_of(server).runs] == [None]


def test_a_directory_that_is_no_runs_is_named(server: ServerFolder, tmp_path: Path) -> None:
    with refused_at(tmp_path.name):
        status_of(server, elsewhere=[tmp_path])


def test_a_journal_that_cannot_be_read_is_named_and_none_says_nothing(tmp_path: Path) -> None:
    assert waited_for(tmp_path / JOURNAL, "") is None
    (tmp_path / JOURNAL).mkdir()
    with refused_at(JOURNAL):
        waited_for(tmp_path / JOURNAL, "")


def test_runs_of_one_name_are_told_apart_and_one_is_told_once(server: ServerFolder, tmp_path: Path) -> None:
    first, other = server.path / "runs" / "7", tmp_path / "7"
    shutil.copytree(first, other)
    known = status_of(server)
    found = status_of(server, elsewhere=[other, first.parent / ".." / "runs" / "7"])
    names = [run.name for run in found.runs]
    assert len(names) == len(set(names)) == len(known.runs) + 1
    assert len(found.users[0].runs) == len(known.users[0].runs) + 1


@pytest.mark.parametrize(
    "address",
    ["[::1", "x:y:1", "::1:1", "host", "host:", "host:0", "host:65536", "a@b:1", "x/y:1", "https://x:1"],
)
def test_what_is_no_address_is_named(server: ServerFolder, address: str) -> None:
    with refused_at("--superlink"):
        seen_nodes(address, server.certificate)
    with refused_at("--superlink"):
        start_run(server.path, superlink=address)


@pytest.mark.parametrize("text", ["", "x", "\0"])
def test_an_authority_that_is_none_is_named(server: ServerFolder, tmp_path: Path, text: str) -> None:
    shutil.copytree(server.path, tmp_path / "server")
    (tmp_path / "server" / "ca.crt").write_text(text)
    with refused_at("ca.crt"):
        start_run(tmp_path / "server", superlink="127.0.0.1:1")


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ({"status": "registered"}, None),
        ({"status": "offline", "last_deactivated_at": "soon"}, None),
        ({"status": "online", "online_until": 1e300}, None),
        ({"status": "online", "online_until": math.nan}, None),
        (
            {"status": "online", "online_until": LONG_AGO.timestamp() + 60, "heartbeat_interval": 30.0},
            LONG_AGO,
        ),
        ({"status": "offline", "last_deactivated_at": LONG_AGO.isoformat()}, LONG_AGO),
    ],
)
def test_when_a_device_was_seen_follows_from_its_heartbeats(given: dict[str, object], seen: object) -> None:
    node = NodeInfo(node_id=7, **given)  # type: ignore[arg-type]
    assert NodeSeen.of(node) == NodeSeen(7, str(given["status"]), seen)  # type: ignore[arg-type]


def test_what_is_no_superlink_is_one_line(server: ServerFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def page(self: object, context: object) -> httpx.Response:
        return httpx.Response(200, text="<html>", request=httpx.Request("POST", "https://server.test"))

    monkeypatch.setattr(ControlHttpClient, "_send", page)
    with pytest.raises(RunError, match="no SuperLink"):
        seen_nodes("server.test:1", server.certificate)
    with pytest.raises(RunError, match="no SuperLink"):
        seen_runs("server.test:1", server.certificate)
    with pytest.raises(RunError, match="no SuperLink"):
        start_run(server.path, superlink="server.test:1")


def test_one_of_a_kind_is_told_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    from dprec_pilot.status_table import print_status

    run = RunStatus("7", "runs/7", None, "the run goes on", 1, 1, 1, {}, None)
    print_status(PilotStatus("blp-mf", "0" * 64, None, (), (run,)), as_json=False)
    assert "7, not begun: 1 round, 1 answer; the run goes on" in capsys.readouterr().out


def test_the_command_prints_a_table_or_json(server: ServerFolder, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed("status", str(server.path)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert f"{USERS + 1} users, {USERS} registered" in lines[0]
    assert "3 rounds, 12 answers, 3 budget-spent" in lines[1]
    users = {line.split()[0]: line for line in lines[2:] if line.strip()}
    enrolled = server.enrolled()
    assert "answered 1-3, ε 1.6" in users[enrolled[0].user]
    assert "budget-spent 1-3" in users[enrolled[1].user]
    assert "no key" in users["later"]
    assert typed("status", str(server.path), "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert [run["causes"] for run in told["runs"]] == [{"budget-spent": 3}]
    assert told["users"][1]["runs"]["7"]["refused"] == {"budget-spent": [1, 2, 3]}


def test_a_superlink_that_is_not_there_is_one_line(
    server: ServerFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    assert typed("status", str(server.path), "--superlink", "127.0.0.1:1") == 1
    assert capsys.readouterr().err.count("\n") == 1


def test_rounds_are_printed_in_short(server: ServerFolder) -> None:
    from dprec_pilot.status_table import _in_run

    did = InRun(answered=(1, 2, 3, 5, 7, 8), absent=(4,), refused={"busy": (6,)}, epsilon_per_user=None)
    assert _in_run(did) == "answered 1-3 5 7-8, busy 6, absent 4"
    assert _in_run(replace(did, answered=(), absent=(), refused={})) is None
