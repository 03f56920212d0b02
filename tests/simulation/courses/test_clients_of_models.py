"""Federated models of one client, in runs: what a device draws and keeps, and who is told of it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import ConfigRecord, RecordDict

from clients.population import Brought
from dprec.accounting import gaussian_epsilon
from dprec.exchange import REPLY, TELL, UPDATE, RefusalCode, Reports, Told
from dprec.federated import FederatedModel, code_of
from dprec.protocols.federated import FederatedProtocol
from dprec.ratings import Ratings
from simulation import load, run
from simulation.result import RunResult
from simulation.storage.run_directory import Checkpoints
from tests.builders import OneNode, populated
from tests.faulty_models import InTensors, Personal, Twofold
from tests.make import STARS, small_run, synthetic
from tests.refusals import refused_at
from tests.simulation.divisions import bits, compare, divided, written

BUDGET = {"epsilon": 2.0, "per": "user", "composition": "pld", "delta": 1e-5}
ROUNDS, USERS, ITEMS = 3, 60, 20
FAULTS = {"dropout": 0.3, "straggle": 0.1, "corrupt": 0.1}


def values(model: str, faults: dict[str, float] | None = None, **protocol: Any) -> dict[str, Any]:
    own = {"kind": "federated", "model": {"kind": f"tests.faulty_models:{model}"}, "rounds": ROUNDS}
    here = {"backend": "local", "faults": faults or {}}
    return small_run({**own, "privacy": BUDGET, **protocol}, USERS, ITEMS, 700, simulation=here)


@pytest.mark.parametrize("nodes", [7, pytest.param(1, marks=pytest.mark.thorough)])
@pytest.mark.parametrize(
    "protocol", [{}, {"trust": "local"}, {"sampling": {"clients": 20}, "trust": "local"}]
)
def test_the_bits_do_not_depend_on_the_nodes(tmp_path: Path, protocol: dict[str, Any], nodes: int) -> None:
    """What devices draw, keep and report of a model is theirs, whoever hosts them."""
    config = values("Personal", FAULTS, **protocol)
    whole = bits(None, divided(config, "local", 1, "all"), tmp_path / "all")
    compare(whole, bits(None, divided(config, "local", 1, nodes), tmp_path / "parts"))


def test_models_with_tensors_and_with_arrays_give_the_same_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = divided(values("InTensors"), "local", 1, "all")
    in_tensors = bits(None, config, tmp_path / "tensors")
    monkeypatch.setattr(InTensors, "wrapped", np.asarray)
    compare(in_tensors, bits(None, config, tmp_path / "arrays"))


def test_both_forms_of_a_model_give_the_same_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = divided(values("Twofold", FAULTS), "local", 1, 7)
    by_partition = bits(None, config, tmp_path / "partition")
    for method in ("updates", "predictor"):
        monkeypatch.setattr(Twofold, method, getattr(FederatedModel, method))
    compare(by_partition, bits(None, config, tmp_path / "user"))


@pytest.mark.parametrize(
    ("name", "where", "found"),
    [
        ("Half", "protocol.model", "neither update and predict"),
        ("Training", "protocol.model", "parameters, profile or state are changed in place"),
        ("OfOwnItems", "tests.faulty_models:OfOwnItems", "change of a user is an array of shape"),
        ("KeepsFractions", "tests.faulty_models:KeepsFractions", "state of a user is an array of float64"),
    ],
)
def test_a_model_that_breaks_a_rule_is_refused_before_anything_runs(
    name: str, where: str, found: str
) -> None:
    with refused_at(where) as caught:
        run(values(name), page=False)
    assert caught.value.found.startswith(found)


class Killed(BaseException):
    """Ends a run as a kill would."""


def test_a_run_that_is_resumed_goes_on_from_what_devices_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the same bits, also where a round was lost with the process."""
    config = divided(values("Personal", FAULTS, rounds=4), "local", 1, 7)
    whole = bits(None, config, tmp_path / "whole")
    saved = Checkpoints.save

    def dying(self: Checkpoints, state: Any) -> None:
        if len(state.records) != 2:
            saved(self, state)
        if len(state.records) in (2, 3) and lives.pop():
            raise Killed

    lives = [False, True, False, True]
    monkeypatch.setattr(Checkpoints, "save", dying)
    for _ in range(2):
        with pytest.raises(Killed):
            run(config, tmp_path / "killed", resume=True, page=False)
    run(config, tmp_path / "killed", resume=True, page=False)
    compare(whole, written(tmp_path / "killed"))


def counted(result: RunResult) -> dict[int, int]:
    """Return in how many rounds a device took part by what it keeps, by user."""
    columns = (np.asarray(result.predictions[name]).tolist() for name in ("user", "prediction"))
    return {user: int(prediction) - 1 for user, prediction in zip(*columns, strict=True)}


def test_a_device_keeps_what_it_computed_in_the_rounds_that_it_answered() -> None:
    result = run(values("CountsRounds", {"dropout": 0.4}, trust="local"), page=False)
    protocol = load(values("CountsRounds", trust="local")).protocol
    assert isinstance(protocol, FederatedProtocol)
    rounds = [gaussian_epsilon(2 * np.sqrt(number) / protocol.deviation, 1e-5) for number in range(4)]
    columns = (np.asarray(result.traffic[name]).tolist() for name in ("user", "epsilon_composed"))
    composed = dict(zip(*columns, strict=True))
    known = counted(result)
    assert set(known.values()) == {0, 1, 2, 3}
    for user, number in known.items():
        assert composed[user] == pytest.approx(rounds[number], rel=1e-6)


def test_only_who_is_asked_keeps_what_it_computes() -> None:
    result = run(values("CountsRounds", sampling={"clients": 15}, trust="local"), page=False)
    assert [line["replies"] for line in result.rounds] == [15] * ROUNDS
    known = counted(result)
    assert {0, 1} <= set(known.values())
    columns = (np.asarray(result.traffic[name]).tolist() for name in ("user", "epsilon_composed"))
    assert {user for user, epsilon in zip(*columns, strict=True) if epsilon and user in known} == {
        user for user, number in known.items() if number
    }


class Server(OneNode):
    """Asks for updates, and has told what devices keep."""

    def updates(self, round_index: int, sent: bytes, **more: Any) -> list[bytes] | int:
        return self.told(UPDATE, round=round_index, factors=sent, **more)

    def kept(self) -> np.ndarray[Any, Any]:
        reply = self.ask(TELL, RecordDict())
        answered = reply.content[REPLY]
        assert isinstance(answered, ConfigRecord)
        return Told.of(answered).kept[0].ravel()


RATINGS: Ratings = synthetic(10, ITEMS, 60)
CODE = code_of(Personal(), ITEMS, STARS, 1.0, 0.0)


def asked(*users: int) -> bytes:
    return np.packbits(np.isin(np.arange(10), users)).tobytes()


def sent(value: float) -> bytes:
    return CODE.pack((np.full(ITEMS, value),))


def of_nodes(folder: Path) -> Server:
    """Return a server whose run has one node."""
    protocol = FederatedProtocol(model=Personal(), rounds=ROUNDS)
    populated(folder / "run", RATINGS, protocol, individual_reports=True)
    return Server(folder, {"run": Brought.for_protocol(protocol)})


@pytest.fixture
def server(tmp_path: Path) -> Server:
    return of_nodes(tmp_path)


def test_a_device_that_is_asked_again_repeats_what_it_sent_and_keeps(server: Server) -> None:
    begun = server.kept()
    first = server.updates(1, sent(2.0))
    once = server.kept()
    assert isinstance(first, list)
    assert (once != begun).all()
    assert server.updates(1, sent(2.0)) == first
    assert np.array_equal(server.kept(), once)
    assert server.updates(1, sent(2.5)) == RefusalCode.CHANGED_REQUEST
    assert np.array_equal(server.kept(), once)
    second = server.updates(2, sent(2.0))
    assert second != first
    twice = server.kept()
    assert (twice != once).all()
    assert server.updates(2, sent(2.0)) == second
    assert np.array_equal(server.kept(), twice)
    assert server.updates(1, sent(2.0)) == RefusalCode.ROUND_ANSWERED


def test_who_is_asked_after_others_of_its_node_keeps_what_all_at_once_would(
    server: Server, tmp_path: Path
) -> None:
    begun = server.kept()
    for users in ((3, 4), (4, 5)):
        assert server.updates(1, sent(2.0), asked=asked(*users)) != RefusalCode.CHANGED_REQUEST
    apart = server.kept()
    assert np.flatnonzero(apart != begun).tolist() == [3, 4, 5]
    whole = of_nodes(tmp_path / "other")
    whole.updates(1, sent(2.0))
    assert np.array_equal(whole.kept()[3:6], apart[3:6])


def test_a_reply_holds_reports_alone(server: Server) -> None:
    content = RecordDict({"request": ConfigRecord({"round": 1, "factors": sent(2.0)})})
    answered = server.ask(UPDATE, content).content[REPLY]
    assert isinstance(answered, ConfigRecord)
    assert set(answered) == {"first", "reports"}
    assert Reports.of(answered).reports == server.updates(1, sent(2.0))


def told(spares: bool, nodes: int | None = None, **split: Any) -> dict[str, Any]:
    """Return a run on sets of items, whose devices may be told what they are tested on."""
    model = {"kind": "tests.clients_of_models:RememberSpared", "spares_tested": spares}
    own = {"kind": "federated", "model": model, "rounds": 2}
    config = small_run(own, USERS, ITEMS, 500, simulation={"backend": "local"})
    config["dataset"]["positive"] = ">= 1"
    left_out = {"kind": "leave-one-out", "by": "random"}
    return config | {"split": split or left_out, "evaluation": {"ranking": {"cutoffs": [1]}}}


@pytest.mark.parametrize("spares", [True, False])
def test_devices_know_what_they_are_tested_on_only_where_a_model_says_so(spares: bool) -> None:
    """Whoever remembers what it was told to spare needs nothing else, and the run says so."""
    summary = run(told(spares)).summary
    hits = summary["accuracy"]["ranking"]["hit_rate_at"]["1"]
    assert hits == 1.0 if spares else hits < 0.5
    assert any("which items they are tested on" in note for note in summary["privacy"]["notes"]) is spares


def test_what_devices_are_told_does_not_depend_on_the_nodes(tmp_path: Path) -> None:
    whole = bits(None, divided(told(True), "local", 1, "all"), tmp_path / "all")
    compare(whole, bits(None, divided(told(True), "local", 1, 7), tmp_path / "parts"))


def test_cold_users_cannot_be_told_what_they_are_tested_on() -> None:
    with refused_at("protocol"):
        run(told(True, kind="cold-users", test_users=0.25, test_fraction=0.4))


@pytest.mark.parametrize(
    "own", [{"attacks": [{"kind": "membership"}]}, {"schedule": {"kind": "fresh", "days": 30}}]
)
def test_devices_are_told_nothing_in_runs_that_are_made_again(own: dict[str, Any]) -> None:
    config = told(True)
    if "schedule" in own:
        config["dataset"]["arrivals"] = {}
        del config["split"], config["evaluation"]
    with refused_at("protocol"):
        run(config | own)
