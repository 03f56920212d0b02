"""Federated models of one's own: clipped updates, noise in sums or on devices, and what is proved of them."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import clients.federated
from clients.population import Partition
from dprec.accounting import gaussian_epsilon
from dprec.federated import STEPS, UpdateCode
from dprec.protocols.federated import FederatedProtocol
from dprec.randomness import ReleaseDraws
from simulation import audit, load, run
from tests.documents.pages import write_files
from tests.make import ON_THIS_MACHINE, small_run
from tests.refusals import refused_at

BUDGET = {"epsilon": 2.0, "per": "user", "composition": "pld", "delta": 1e-5}
ROUNDS = 3


@pytest.fixture(autouse=True)
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Put the model of the documentation where it is imported from."""
    write_files("docs/federated.md", tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    yield
    sys.modules.pop("federated_factors", None)


def values(simulation: dict[str, Any] | None = None, **protocol: Any) -> dict[str, Any]:
    own = {"kind": "federated", "model": {"kind": "federated_factors:Factors"}, "rounds": ROUNDS}
    here = {**ON_THIS_MACHINE, **(simulation or {})}
    return small_run({**own, "privacy": BUDGET, **protocol}, 60, 20, 700, simulation=here)


def test_who_misses_rounds_loses_less() -> None:
    result = run(values({"faults": {"dropout": 0.4}}), page=False)
    # Whose the model is stands behind the name.
    assert result.summary["completion"] == "federated_factors:Factors"
    losses = np.unique(result.traffic["epsilon_composed"])
    protocol = load(values()).protocol
    assert isinstance(protocol, FederatedProtocol)
    expected = [gaussian_epsilon(np.sqrt(rounds) / protocol.deviation, 1e-5) for rounds in range(ROUNDS + 1)]
    assert losses.size > 2
    assert all(np.isclose(expected, loss, rtol=1e-6).any() for loss in losses)


@pytest.mark.parametrize(
    ("trust", "adjacency", "sensitivity"),
    [
        ("central", "add-or-remove-one", 1.0),
        ("central", "replace-one", 2.0),
        ("local", "add-or-remove-one", 2.0),
    ],
)
def test_the_noise_is_the_smallest_that_keeps_the_promise(
    trust: str, adjacency: str, sensitivity: float
) -> None:
    protocol = load(values(trust=trust, adjacency=adjacency)).protocol
    assert isinstance(protocol, FederatedProtocol)
    mu = sensitivity * np.sqrt(ROUNDS) / protocol.deviation
    assert gaussian_epsilon(mu, 1e-5) == pytest.approx(2.0, rel=1e-6)
    assert protocol.deviation_on_devices == (protocol.deviation if trust == "local" else 0.0)


@pytest.mark.parametrize("method", ["updates", "step", "predictor"])
def test_a_model_with_other_shapes_is_refused_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    import federated_factors

    def wrong(*_: Any) -> Any:
        return (lambda *_: np.zeros(3)) if method == "predictor" else (np.zeros((2, 2)),)

    monkeypatch.setattr(federated_factors.Factors, method, wrong)
    with refused_at("protocol.model") as caught:
        run(values(), page=False)
    assert caught.value.found.startswith(method)


def test_a_model_of_ratings_is_told_how_it_would_rank() -> None:
    sets = {**values()["dataset"], "positive": ">= 4"}
    with refused_at("protocol.kind") as caught:
        run({**values(), "dataset": sets}, page=False)
    assert 'predicted = "lists" in federated_factors:Factors' in caught.value.accepted


@pytest.mark.thorough
@pytest.mark.parametrize("trust", ["central", "local"])
def test_the_promise_is_audited(trust: str) -> None:
    assert audit(values(trust=trust), trials=400).holds


def test_updates_of_any_length_count_at_most_a_clip() -> None:
    code = UpdateCode(((2, 2), (3,)), clip=0.5, deviation=0.0)
    rows = np.array([[3.0, -4.0, 0, 0, 0, 0, 0], [0.1] * 7, [np.inf] + [0.0] * 6, [1e200] * 7])
    updates = rows[:, :4].reshape(-1, 2, 2), rows[:, 4:]
    reports = code.reports(code.steps(updates)[0], None)  # type: ignore[arg-type]
    assert {len(report) for report in reports} == {code.report_bytes} == {14}
    read = np.array([np.frombuffer(report, "<i2") for report in reports]).astype(float)
    assert (np.linalg.norm(read, axis=1) <= STEPS).all()
    assert read[0][:2] == pytest.approx([0.6 * STEPS, -0.8 * STEPS], abs=1)
    assert read[1] == pytest.approx(0.2 * STEPS, abs=1)
    assert (read[2] == 0).all()


@pytest.mark.parametrize("report", [b"", bytes(13), bytes(15), b"\xff\x7f" * 7, b"\x00\x80" + bytes(12)])
def test_a_report_that_no_device_sends_is_not_added(report: bytes) -> None:
    code = UpdateCode(((7,),), clip=1.0, deviation=0.0)
    good = np.array([STEPS, 0, 0, 0, 0, 0, 0], dtype="<i2").tobytes()
    valid, aggregate = code.decode([good, report, good])
    assert valid.tolist() == [True, False, True]
    assert aggregate.users == 2
    assert aggregate.total.tolist() == [2 * STEPS, 0, 0, 0, 0, 0, 0]
    assert code.possible(aggregate)
    assert code.decode([])[1].users == 0


def test_the_noise_of_a_sum_is_as_wide_as_it_should_be_and_changes_with_the_round() -> None:
    code = UpdateCode(((20_000,),), clip=2.0, deviation=0.0)
    total = np.zeros(20_000, dtype=np.int64)
    (one,), (other,) = (code.released(total, 10, 3.0, ReleaseDraws(1, number))[0] for number in (1, 2))
    assert one.std() == pytest.approx(3.0 * 2.0 / 10, rel=0.03)
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.03


def test_a_device_that_holds_nothing_sends_zeros_whatever_a_model_computes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is the none with which epsilon compares a profile: the opposite would be twice as far from it."""
    honest, hosted = UpdateCode.reports, clients.federated.profiles_of
    sent, held = [], []

    def reports(code: UpdateCode, steps: Any, draws: Any, senders: Any = None) -> Any:
        if senders is not None:  # who is computed before the run is made up
            sent.extend(steps.any(axis=1))
        return honest(code, steps, draws, senders)

    def profiles_of(part: Partition) -> Any:
        profiles = hosted(part)
        held.extend(np.diff(profiles.indptr) > 0)
        return profiles

    def updates(model: Any, parameters: Any, profiles: Any) -> Any:
        return tuple(np.ones((profiles.n_users, *each.shape)) for each in parameters)

    config = values()
    config["dataset"]["ratings"] = 90
    monkeypatch.setattr(UpdateCode, "reports", reports)
    monkeypatch.setattr(clients.federated, "profiles_of", profiles_of)
    protocol = load(config).protocol
    monkeypatch.setattr(type(protocol.model), "updates", updates)
    run(config, page=False)
    assert len(sent) == ROUNDS * 60
    assert 0 < sum(sent) < len(sent)
    assert held[: len(sent)] == sent
