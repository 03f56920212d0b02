"""CoLR: what a device sends, how the table moves by it, what it weighs, and that it can be hidden."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprec.errors import SettingError
from dprec.federated import RULES, LowRankUpdates, Profile, Shapes, Trial, UpdateCode, code_of
from dprec.federated.local_training import examples
from dprec.federated.low_rank import factor_of
from dprec.ratings import POSITIVE
from simulation import audit, run
from simulation.storage.run_directory import Checkpoints
from tests.make import ON_THIS_MACHINE, small_run

ITEMS = 9
PROFILE = Profile(np.array([1, 4, 7], np.int32), np.full(3, np.nan), ITEMS)
BUDGET = {"epsilon": 2.0, "per": "user", "composition": "pld", "delta": 1e-5}


def chance(score: float) -> float:
    return float(1 / (1 + np.exp(-score)))


@pytest.mark.parametrize("rank", [1, 2, 4])
def test_a_device_trains_what_the_factor_of_the_round_leaves_free(rank: int) -> None:
    """One by one, two steps with all examples, the factor frozen and rescaled as in the authors' code."""
    size, rate, ridge = 4, 0.4, 0.05
    model = LowRankUpdates(
        size=size, rank=rank, negatives=2, batch=100, rate=rate, ridge=ridge, item_rate=3.0
    )
    parameters = table, number = model.start(ITEMS, POSITIVE, np.random.default_rng(1))
    state = model.begin(ITEMS, POSITIVE, np.random.default_rng(2))
    made = model.update(parameters, PROFILE, np.random.default_rng(3), state)

    items, labels = examples(np.random.default_rng(3), PROFILE, 2)
    frozen = np.sqrt(size / rank) * factor_of(int(number[0]), rank, size)
    own, sent = state[0].copy(), np.zeros((ITEMS, rank))
    for _ in range(2):
        of_own, of_sent = 2 * ridge * own, np.zeros((ITEMS, rank))
        for item, label in zip(items, labels, strict=True):
            vector = table[item] + sent[item] @ frozen
            error = chance(own @ vector) - label
            of_own += error * vector / items.size
            of_sent[item] += np.sqrt(rank / size) * frozen @ (error * own + 2 * ridge * vector)
        own, sent = own - rate * of_own, sent - rate * of_sent
    np.testing.assert_allclose(made.change[0], sent, atol=1e-14)
    np.testing.assert_allclose(made.state[0], own, atol=1e-14)

    moved, following = model.step(parameters, made.change, 1)
    np.testing.assert_allclose(moved - table, 3.0 * sent @ frozen, atol=1e-13)
    assert np.linalg.matrix_rank(moved - table, tol=1e-9) == min(rank, 4)
    assert following.tolist() == [number[0] + 1]


def test_the_factor_has_orthonormal_rows_another_in_each_round_and_is_evenly_drawn() -> None:
    """The mean of A^T A over 4000 rounds is rank / size times the identity.

    An entry deviates by less than .25 in a round, so by 6 deviations of .004 with a probability of 1e-7.
    """
    one, other = factor_of(5, 2, 6), factor_of(6, 2, 6)
    np.testing.assert_allclose(one @ one.T, np.eye(2), atol=1e-14)
    assert np.abs(one - other).max() > 0.01
    factors = np.stack([factor_of(number, 2, 6) for number in range(4000)])
    mean = np.einsum("nri,nrj->ij", factors, factors) / len(factors)
    np.testing.assert_allclose(mean, np.eye(6) / 3, atol=0.024)


def test_numbers_of_rounds_are_exact_as_they_are_sent() -> None:
    code = code_of(model := LowRankUpdates(size=6, rank=2), ITEMS, POSITIVE, 1.0, 0.0)
    table = model.start(ITEMS, POSITIVE, np.random.default_rng(1))[0]
    last = float((1 << 24) - 1)
    _, (read, number) = code.unpack(code.pack((table, np.array([last]))))
    assert number.tolist() == [last]
    assert read.shape == table.shape
    assert len(code.pack((table, number))) == 4 * (ITEMS * 6 + 1)
    with pytest.raises(ValueError, match="bytes"):
        code.unpack(bytes(4 * ITEMS * 2))


@pytest.mark.parametrize(("deviation", "size"), [(0.0, 2), (3.0, 4)])
def test_what_is_sent_has_as_many_numbers_as_items_times_the_rank(deviation: float, size: int) -> None:
    code = code_of(LowRankUpdates(rank=4), ITEMS, POSITIVE, 1.0, deviation)
    assert code.report_bytes == ITEMS * 4 * size
    adapting = code_of(LowRankUpdates(rank=4), ITEMS, POSITIVE, 1.0, deviation, bit=0.1)
    assert adapting.report_bytes == (ITEMS * 4 + 1) * size
    parameters = LowRankUpdates(rank=4).start(ITEMS, POSITIVE, np.random.default_rng(1))
    read, (table, number) = adapting.unpack(adapting.pack(parameters))
    assert isinstance(read, UpdateCode)
    assert read.clip == 1.0
    np.testing.assert_array_equal(table, parameters[0].astype(np.float32))
    assert number.tolist() == parameters[1].tolist()


def test_more_directions_than_numbers_are_refused() -> None:
    with pytest.raises(SettingError, match="rank: 5; accepted: at most size, 4"):
        LowRankUpdates(size=4, rank=5)


@dataclass(frozen=True, kw_only=True)
class SendsWhole(LowRankUpdates):
    """What is said to be sent is not what a device computes."""

    def sends(self, shapes: Shapes) -> Shapes:
        return shapes


@dataclass(frozen=True, kw_only=True)
class SendsOthers(LowRankUpdates):
    """The same, of another number of columns."""

    def sends(self, shapes: Shapes) -> Shapes:
        return ((shapes[0][0], self.rank + 1),)


@pytest.mark.parametrize(
    ("model", "found", "change"),
    [
        (SendsWhole(size=4, rank=2), "change of 1 arrays", "to 2, as sends returned"),
        (
            SendsOthers(size=4, rank=2),
            "change of a user is an array of shape (24, 2)",
            "to (24, 3), the same for every user",
        ),
    ],
)
def test_a_device_that_computes_other_shapes_than_are_sent_breaks_a_rule(
    model: LowRankUpdates, found: str, change: str
) -> None:
    (shapes,) = (rule for rule in RULES if rule.name == "shapes")
    assert shapes.broken(Trial.of(model)) == (found, change)


def values(**protocol: Any) -> dict[str, Any]:
    own = {"kind": "federated", "model": {"kind": "colr", "size": 8, "rank": 2}, "rounds": 3, **protocol}
    data = {"kind": "synthetic", "users": 40, "items": 12, "ratings": 300, "positive": ">= 4"}
    return {
        **small_run(own),
        "dataset": data,
        "split": {"kind": "user-holdout"},
        "simulation": ON_THIS_MACHINE,
    }


@pytest.mark.thorough
@pytest.mark.parametrize(("trust", "size"), [("central", 2), ("local", 4)])
def test_a_run_with_a_budget_sends_the_short_updates_and_keeps_its_promise(trust: str, size: int) -> None:
    config = values(trust=trust, privacy=BUDGET)
    result = run(config, page=False)
    assert result.summary["privacy"]["status"] == "proved"
    for line in result.rounds:
        assert line["uplink"]["payload_bytes"] == line["asked"] * 12 * 2 * size
        assert line["downlink"]["payload_bytes"] >= line["asked"] * 4 * (12 * 8 + 1)
    assert audit(config, trials=400).holds


def test_an_interrupted_run_goes_on_to_the_figures_of_a_whole_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, save = values(sampling={"rate": 0.6}), Checkpoints.save

    def interrupted(checkpoints: Checkpoints, state: Any) -> None:
        save(checkpoints, state)
        if len(state.records) == 2:
            raise KeyboardInterrupt

    whole = run(config, page=False)
    monkeypatch.setattr(Checkpoints, "save", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(config, tmp_path, page=False)
    monkeypatch.undo()
    again = run(config, tmp_path, resume=True, page=False)
    for one, other in zip(whole.rounds, again.rounds, strict=True):
        for name in ("accuracy", "observed"):
            assert json.dumps(one[name]) == json.dumps(other[name])
