"""Every message type has its answer, and none is given to a message without its record."""

from pathlib import Path

import pytest
from flwr.app import ConfigRecord, Message, MetricRecord, RecordDict

from clients.app import client_app
from clients.faults import FaultOptions
from clients.population import write_population
from dprec.datasets import Synthetic
from dprec.exchange import DELIVER, IDENTIFY, REPLACE, REPORT, SLOPES, TRAIN, OneShotSetup, RefusalCode
from dprec.mechanisms.unprotected import Raw
from dprec.randomness import RunKeys
from simulation.engine.grids import LocalGrid


def answer(folder: Path, message_type: str, content: RecordDict) -> Message:
    ratings = Synthetic(users=10, items=10, ratings=40).load()
    write_population(
        folder / "run",
        ratings,
        users_per_node=10,
        keys=RunKeys.derive(1).installed,
        faults=FaultOptions(),
        setup=OneShotSetup(mechanism=Raw(), privacy=None),
    )
    grid = LocalGrid(client_app(str(folder)), 1)
    node = next(iter(grid.get_node_ids()))
    (reply,) = grid.send_and_receive([Message(content, node, message_type, group_id="run")])
    return reply


@pytest.mark.parametrize("message_type", [IDENTIFY, REPORT])
def test_questions_without_a_record_are_answered(tmp_path: Path, message_type: str) -> None:
    assert answer(tmp_path, message_type, RecordDict()).has_content()


@pytest.mark.parametrize("message_type", [TRAIN, SLOPES, DELIVER, REPLACE])
@pytest.mark.parametrize(
    "content",
    [
        RecordDict(),
        RecordDict({"request": MetricRecord({"round": 1})}),
        RecordDict({"other": ConfigRecord({"round": 1})}),
    ],
    ids=["nothing", "metrics", "another name"],
)
def test_a_request_without_its_record_is_refused(
    tmp_path: Path, message_type: str, content: RecordDict, caplog: pytest.LogCaptureFixture
) -> None:
    reply = answer(tmp_path, message_type, content)
    assert reply.error.code == RefusalCode.MALFORMED_REQUEST
    assert "a request without a record" in caplog.text


def test_a_message_of_another_type_is_refused(tmp_path: Path) -> None:
    assert answer(tmp_path, "query.profile", RecordDict()).has_error()
