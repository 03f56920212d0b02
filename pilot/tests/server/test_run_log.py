"""What is told of a run and of its devices, while it goes on and after it has ended."""

import json
import stat
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from flwr.app import Message

from dprec.errors import RunError
from dprec_pilot.server.run_log import ENDED, FAILED, RUN_LOG, STOPPED, followed, how_it_ended
from dprec_pilot.server.server_folder import Enrolled, ServerFolder, write_enrolment
from dprec_pilot.server.serving import serve
from dprec_pilot.server.status import InRun, status_of
from dprec_pilot.server.superlink import NodeSeen
from pilot.tests.make import PG, USERS, folders_of, grid_of, pilot
from pilot.tests.test_console import typed
from simulation.storage.exchanges import EXCHANGES, read_exchanges


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> ServerFolder:
    """Return the folder of a pilot after a run that one device refused, one missed, and one cannot join."""
    _, server = pilot(PG, tmp_path_factory.mktemp("pilots") / "pilot")
    options, run, seen = folders_of(server)[1].options_file, server.path / "runs" / "7", []
    options.write_text(options.read_text().replace('"runs": 1', '"runs": 0'))
    grid = grid_of(server)
    enrolled = server.enrolled()
    enrolled[2] = replace(enrolled[2], node_id=None)
    write_enrolment(server.enrolment_file, [*enrolled, Enrolled("later", None)])
    ask = grid.push_messages

    def asked(messages: Iterable[Message]) -> Iterable[str]:
        rounds = run / "rounds.jsonl"
        lines = rounds.read_text().splitlines() if rounds.exists() else []
        seen.append((len(read_exchanges(run)), len(lines)))
        return ask(messages)

    grid.push_messages = asked  # type: ignore[method-assign]
    serve(grid, server, run)
    # What was asked in three rounds was told before the next, and before the delivery.
    assert seen == [(0, 0), (1, 1), (2, 2), (3, 3)]
    return server


def test_questions_are_told_with_who_answered_and_who_did_not(server: ServerFolder) -> None:
    run, users = server.path / "runs" / "7", [each.user for each in server.enrolled()]
    *rounds, delivery = read_exchanges(run)
    assert [(each.asks, each.round) for each in rounds] == [("train", number) for number in (1, 2, 3)]
    assert (delivery.exchange, delivery.asks, delivery.round) == (4, "query.deliver", None)
    for exchange in rounds:
        assert exchange.answered == (users[0], *users[3:USERS])
        assert exchange.refused == {"budget-spent": (users[1],)}
        assert exchange.absent == exchange.late == ()
    assert delivery.answered == (*users[:2], *users[3:USERS])
    assert sum("round " in line for line in (run / RUN_LOG).read_text().splitlines()) >= 3
    for name in (RUN_LOG, EXCHANGES):
        assert stat.S_IMODE((run / name).stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("error", "ended"),
    [
        (RunError("two\nlines"), f"{FAILED} after 0 s: two lines"),
        (ZeroDivisionError(), f"{FAILED} after 0 s: ZeroDivisionError"),
        (KeyboardInterrupt(), f"{STOPPED} after 0 s"),
        (SystemExit(1), f"{STOPPED} after 0 s"),
    ],
)
def test_whatever_ends_a_run_is_the_last_line(tmp_path: Path, error: BaseException, ended: str) -> None:
    def run() -> None:
        with followed(tmp_path, []):
            assert how_it_ended(tmp_path) is None
            raise error

    with pytest.raises(type(error)):
        run()
    assert how_it_ended(tmp_path) == ended


def test_the_status_says_what_became_of_everybody(server: ServerFolder) -> None:
    long_ago = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    first, second = (each.node_id or 0 for each in server.enrolled()[:2])
    nodes = [NodeSeen(first, "online", long_ago), NodeSeen(second, "unregistered", None)]
    status = status_of(server, nodes, "127.0.0.1:1")
    users = status.users
    assert (users[0].device, users[0].last_seen) == ("online", long_ago)
    assert [users[user].device for user in (1, 2, USERS)] == ["unregistered", None, None]
    assert [each.has_key for each in users] == [True] * USERS + [False]
    made = sorted(path.name for path in (server.path.parent / "devices").iterdir())
    assert [each.folder for each in users] == [*made, None]
    spent = pytest.approx(1.6)
    assert users[0].runs["7"] == InRun(answered=(1, 2, 3), received=1, epsilon_per_user=spent)
    assert users[1].runs["7"] == InRun(refused={"budget-spent": (1, 2, 3)}, received=1, epsilon_per_user=0.0)
    assert users[USERS].runs == {}
    (run,) = status.runs
    assert (run.name, run.questions, run.rounds, run.answers) == ("7", 4, 3, 3 * (USERS - 2))
    assert run.causes["budget-spent"] == 3
    assert run.state.startswith(ENDED)
    assert datetime.fromisoformat(run.began or "") <= datetime.now(UTC)


def test_the_command_prints_a_table_or_json(server: ServerFolder, capsys: pytest.CaptureFixture[str]) -> None:
    assert typed("status", str(server.path)) == 0
    table = capsys.readouterr().out
    assert all(part in table for part in ("answered 1-3, ε 1.6", "budget-spent 1-3", "no key"))
    assert typed("status", str(server.path), "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["users"][1]["runs"]["7"]["refused"] == {"budget-spent": [1, 2, 3]}
