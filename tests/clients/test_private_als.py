"""What a device contributes to sums, whatever a server asks of it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dprec.exchange import DELIVER, STATISTICS, RefusalCode
from dprec.protocols.baselines import NothingSentProtocol
from dprec.protocols.private_als import FactorizationOptions, ItemModel, PrivateAlsProtocol
from dprec.sums import Aggregation, CentralAggregation, LocalAggregation
from tests.builders import OneNode, populated
from tests.make import synthetic

ITEMS, USERS = 12, 10
OPTIONS = FactorizationOptions(rank=2, bias_rounds=1, factor_rounds=1, ratings_per_user=4)
MODEL = replace(
    ItemModel.begin(ITEMS, 2, 3.0),
    weights=np.full(ITEMS, 256),
    factors=np.random.default_rng(1).normal(0, 1, (ITEMS, 2)),
)


class Server(OneNode):
    """Asks for statistics; ``seed``: of what the devices hold."""

    def __init__(self, folder: Path, aggregation: Aggregation | None = None, seed: int = 1) -> None:
        added_up = aggregation or CentralAggregation()
        protocol = PrivateAlsProtocol(factorization=OPTIONS, aggregation=added_up, noise=(3.0, 4.0))
        for key, installed in {"run": protocol, "other": NothingSentProtocol()}.items():
            ratings = synthetic(USERS, ITEMS, 70, seed=seed)
            populated(folder / key, ratings, installed, USERS, individual_reports=True)
        super().__init__(folder)

    def reports(self, round_index: int, model: ItemModel = MODEL) -> list[bytes] | int:
        """Return the reports, or the code with which the node refuses."""
        return self.told(STATISTICS, round=round_index, factors=model.encode())


@pytest.fixture
def server(tmp_path: Path) -> Server:
    return Server(tmp_path)


def test_a_round_is_answered_for_one_model_only(server: Server) -> None:
    first = server.reports(1)
    assert isinstance(first, list)
    assert len(first) == USERS
    assert server.reports(1) == first
    assert server.reports(1, replace(MODEL, mean=2.0)) == RefusalCode.CHANGED_REQUEST
    second = server.reports(2, replace(MODEL, mean=2.0))
    assert isinstance(second, list)
    assert server.reports(1) == RefusalCode.ROUND_ANSWERED


def test_a_device_reports_to_nobody_in_particular_once_whatever_it_holds_and_is_asked(tmp_path: Path) -> None:
    local = LocalAggregation(epsilon=1.0, shares=(0.5, 0.5), users=USERS)
    for place, (seed, model) in enumerate(((1, MODEL), (2, replace(MODEL, mean=2.0)))):
        before, after = Server(tmp_path / f"{place}a", local), Server(tmp_path / f"{place}b", local, seed)
        first, second = before.reports(1), after.reports(2, model)
        assert isinstance(first, list)
        assert isinstance(second, list)
        assert [bool(one) != bool(other) for one, other in zip(first, second, strict=True)] == [True] * USERS
        assert 0 < sum(map(bool, first)) < USERS


def test_no_other_round_is_answered_than_was_agreed_on(server: Server) -> None:
    assert server.reports(0) == RefusalCode.MALFORMED_REQUEST
    assert server.reports(3) == RefusalCode.TOO_MANY_ROUNDS


def test_a_malformed_model_is_refused(server: Server) -> None:
    for model in (b"", MODEL.encode()[:-1], replace(MODEL, mean=np.nan).encode()):
        for kind in (STATISTICS, DELIVER):
            assert server.told(kind, round=1, factors=model) == RefusalCode.MALFORMED_REQUEST
    assert isinstance(server.reports(1), list)
    assert server.told(DELIVER, factors=MODEL.encode()) == []


def test_devices_of_another_protocol_refuse(server: Server) -> None:
    answer = server.told(STATISTICS, "other", round=1, factors=MODEL.encode())
    assert answer == RefusalCode.NOT_SET_UP
