"""What is told of a run while it goes on, and after it has failed."""

import json
import pickle
import stat
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from flwr.app import Message

from dprec.errors import InputError, RunError
from dprec_pilot.server.run_log import (
    ENDED,
    FAILED,
    RUN_LOG,
    STOPPED,
    followed,
    handled_by,
    how_it_ended,
)
from dprec_pilot.server.server_folder import write_enrolment
from dprec_pilot.server.serving import serve
from pilot.tests.device.devices import DeviceGrid
from pilot.tests.server.pilots import BLP, PG, USERS, grid_of, pilot
from simulation.storage.exchanges import EXCHANGES, read_exchanges
from simulation.storage.run_files import parse_rounds
from strategies.participation import NoReportError, RoundRecord

EVERYBODY = tuple(str(user) for user in range(1, USERS + 1))


def spend(devices: Path, *users: int) -> None:
    """Leave devices nothing to spend."""
    for user in users:
        path = devices / f"{user:06d}" / "device.json"
        path.write_text(path.read_text().replace('"runs": 1', '"runs": 0'))


def test_rounds_and_questions_are_told_as_they_happen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, server = pilot(PG, tmp_path / "pilot")
    spend(tmp_path / "pilot" / "devices", 1)
    grid, seen = grid_of(server), list[tuple[int, int]]()
    enrolled = server.enrolled()
    enrolled[2] = replace(enrolled[2], node_id=None)
    write_enrolment(server.enrolment_file, enrolled)
    ask = DeviceGrid.push_messages

    def asked(self: DeviceGrid, messages: list[Message]) -> object:
        rounds = tmp_path / "out" / "rounds.jsonl"
        seen.append(
            (
                len(read_exchanges(tmp_path / "out")),
                len(rounds.read_text().splitlines()) if rounds.exists() else 0,
            )
        )
        return ask(self, messages)

    monkeypatch.setattr(DeviceGrid, "push_messages", asked)
    with handled_by(sys.stdout):
        serve(grid, server, tmp_path / "out")
    # Three rounds, and the delivery.
    assert seen == [(0, 0), (1, 1), (2, 2), (3, 3)]
    exchanges = read_exchanges(tmp_path / "out")
    assert [(each.exchange, each.asks, each.round) for each in exchanges] == [
        (1, "train", 1),
        (2, "train", 2),
        (3, "train", 3),
        (4, "query.deliver", None),
    ]
    users = [each.user for each in enrolled]
    for exchange in exchanges[:3]:
        assert exchange.answered == (users[0], *users[3:])
        assert exchange.refused == {"budget-spent": (users[1],)}
        assert exchange.absent == exchange.late == ()
    assert exchanges[3].answered == (users[0], users[1], *users[3:])
    log = (tmp_path / "out" / RUN_LOG).read_text()
    assert capsys.readouterr().out == log
    assert sum("round " in line for line in log.splitlines()) >= 3
    assert (how_it_ended(tmp_path / "out") or "").startswith(ENDED)
    for name in (RUN_LOG, EXCHANGES):
        assert stat.S_IMODE((tmp_path / "out" / name).stat().st_mode) == 0o600


def test_a_run_that_nobody_answers_leaves_its_causes_and_its_reason_in_one_line(tmp_path: Path) -> None:
    _, server = pilot(BLP, tmp_path / "pilot")
    spend(tmp_path / "pilot" / "devices", *range(USERS))
    with pytest.raises(NoReportError) as error:
        serve(grid_of(server), server, tmp_path / "out")
    (record,) = parse_rounds((tmp_path / "out" / "rounds.jsonl").read_text(), "rounds.jsonl")
    assert record == error.value.record
    assert (record.replies, record.causes) == (0, {"budget-spent": USERS})
    (exchange,) = read_exchanges(tmp_path / "out")
    assert len(exchange.refused["budget-spent"]) == USERS
    ended = how_it_ended(tmp_path / "out") or ""
    assert ended.startswith(FAILED)
    assert ended.endswith(str(error.value))
    assert not (tmp_path / "out" / "summary.json").exists()


def test_the_reason_crosses_processes_with_its_round() -> None:
    record = RoundRecord(1, 0, 5, None, 1, 2, 3, 4, 0.5, {"absent": 5})
    again = pickle.loads(pickle.dumps(NoReportError("nobody", record)))
    assert (type(again), str(again), again.record) == (NoReportError, "nobody", record)


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


def test_a_run_that_is_resumed_adds_to_what_was_told(tmp_path: Path) -> None:
    line = {
        "exchange": 1,
        "asks": "train",
        "round": 1,
        "began": "2026-01-01T00:00:00+00:00",
        "seconds": 1.0,
        "answered": ["a"],
        "late": [],
        "absent": [],
        "refused": {},
    }
    (tmp_path / EXCHANGES).write_text(json.dumps(line) + "\n")
    before = read_exchanges(tmp_path)
    with followed(tmp_path, []) as log:
        log.note(before[0].model_copy(update={"seconds": 9.0, "began": "later"}))
        assert read_exchanges(tmp_path) == before
        log.note(before[0].model_copy(update={"exchange": 2}))
    assert [each.exchange for each in read_exchanges(tmp_path)] == [1, 2]


def test_damaged_lines_are_named(tmp_path: Path) -> None:
    (tmp_path / EXCHANGES).write_text('{"exchange": 0}\n')
    with pytest.raises(InputError, match=f"{EXCHANGES}, line 1"):
        read_exchanges(tmp_path)


def test_a_long_computation_tells_how_far_it_is_now_and_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr("dprec_pilot.server.run_log.time.monotonic", lambda: now[0])
    with followed(tmp_path, []) as log:
        for step in range(1, 31):
            now[0] = float(step)
            log.progress("completing", step, 30)
    lines = (tmp_path / RUN_LOG).read_text().splitlines()
    assert [line.rpartition("completing: ")[2] for line in lines[1:-1]] == [
        "10 of 30",
        "20 of 30",
        "30 of 30",
    ]
