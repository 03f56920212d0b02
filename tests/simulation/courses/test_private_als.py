"""Protocols of sums in rounds, dp-als and sums-on-device: what their rounds compose to, charge and send."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprec.accounting import gaussian_epsilon, largest_mu
from dprec.errors import RunError
from dprec.protocols.base import Public
from dprec.protocols.implicit_als import ImplicitAlsProtocol
from dprec.protocols.private_als import ItemModel, PrivateAlsProtocol
from dprec.protocols.secret_sets import SecretSetOptions, SecretSetProtocol, split_at
from dprec.secure_aggregation import MessageSizes, graph_size
from dprec.sums import CentralAggregation, SecureAggregation, ShuffledAggregation
from simulation import load, run
from simulation.result import RunResult
from tests.make import ON_THIS_MACHINE, STARS, small_run, user_budget
from tests.simulation.divisions import bits, compare, divided

FACTORS = PrivateAlsProtocol(privacy=user_budget())
SECRET_SETS = SecretSetProtocol(privacy=user_budget(), aggregation=CentralAggregation())
USERS, ITEMS, ROUNDS = 60, 12, 2


def ran(
    kind: str, faults: dict[str, float] | None = None, epsilon: float = 2.0, items: int = 30, **own: Any
) -> RunResult:
    privacy = {"epsilon": epsilon, "per": "user", "composition": "pld", "delta": 1e-5}
    protocol = {"kind": kind, "privacy": privacy, **own}
    simulation = {**ON_THIS_MACHINE, "faults": faults or {}}
    return run(small_run(protocol, USERS, items, USERS * items // 2, simulation=simulation), page=False)


@pytest.mark.parametrize(("protocol", "rounds"), [(FACTORS, FACTORS.factorization.rounds), (SECRET_SETS, 3)])
def test_the_rounds_compose_to_what_was_asked(protocol: Any, rounds: int) -> None:
    base = 1 / largest_mu(1.0, 1e-6)
    multipliers = np.array(protocol.multipliers)
    assert multipliers.size == rounds
    assert np.sum(multipliers**-2.0) == pytest.approx(base**-2, rel=1e-6)
    assert np.all(np.array(replace(protocol, adjacency="replace-one").multipliers) == 2 * multipliers)
    assert 1 - 1e-6 <= protocol.accountant().get_epsilon(1e-6)[0] <= 1.0
    # Between any two profiles, epsilon is that of twice the distance.
    twice = gaussian_epsilon(2 * largest_mu(1.0, 1e-6), 1e-6)
    assert f"any two profiles it is {twice:.4g}" in protocol.guarantee((1000, 50)).statements[1]


@pytest.mark.parametrize(("adjacency", "times"), [("add-or-remove-one", 1.0), ("replace-one", 2.0)])
def test_the_noise_of_sets_keeps_epsilon_under_both_adjacencies(adjacency: str, times: float) -> None:
    protocol = load("dp-ials", [f"protocol.adjacency={adjacency}"]).protocol
    assert isinstance(protocol, ImplicitAlsProtocol)
    composed = 1 / np.sqrt((1 / np.array(protocol.multipliers) ** 2).sum())
    assert gaussian_epsilon(times / composed, 1e-6) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("kind", ["dp-als", "sums-on-device"])
def test_everybody_is_charged_for_what_was_promised(kind: str) -> None:
    spent = ran(kind).summary["privacy"]["epsilon_composed"]["max"]
    assert 2.0 * (1 - 1e-3) <= spent <= 2.0


def test_who_misses_a_round_is_charged_for_the_other() -> None:
    lossy = ran("dp-als", {"dropout": 0.3}, factorization={"rank": 0, "bias_rounds": ROUNDS})
    spent = set(np.round(lossy.traffic["epsilon_composed"], 9).tolist())
    once = round(gaussian_epsilon(largest_mu(2.0, 1e-5) / np.sqrt(2), 1e-5), 9)
    assert sorted(spent) == pytest.approx([0.0, once, 2.0], rel=1e-6)


@pytest.mark.parametrize("aggregation", ["central", "secure-aggregation", "shuffle"])
def test_the_bits_do_not_depend_on_cohorts_whatever_fails(tmp_path: Path, aggregation: str) -> None:
    """Of a secure sum from which a report is missing, nothing is learned: all releases would fail."""
    several = {"histogram": "netflix", "split": [0.2, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]}
    protocol = {
        "kind": "sums-on-device",
        "privacy": {"epsilon": 8.0, "per": "user", "composition": "pld", "delta": 1e-5},
        "aggregation": {"kind": aggregation},
        "sums": {"histogram": "netflix"} if aggregation == "shuffle" else several,
    }
    faults = (
        {"dropout": 0.2, "straggle": 0.1, "corrupt": 0.2} if aggregation == "central" else {"dropout": 0.02}
    )
    config = small_run(protocol, simulation={**ON_THIS_MACHINE, "faults": faults})
    whole, sevens = (
        bits(None, divided(config, "local", 1, size), tmp_path / str(size)) for size in ("all", 7)
    )
    compare(whole, sevens)


def test_sums_follow_from_users_and_budget_on_devices_and_at_the_server() -> None:
    public = Public(30, 20, STARS)
    suited = SECRET_SETS.suited(public)
    assert suited.sums.split == split_at(SECRET_SETS.whole_multiplier / public.n_users)
    assert suited.multipliers == suited.installed.multipliers
    assert suited.installed.sums == suited.sums
    given = replace(SECRET_SETS, sums=SecretSetOptions(split=(0.5, 0.1, 0.4, 0.0, 0.0, 0.0, 0.0, 0.0)))
    assert given.suited(public) == given
    # A few numbers of each contribution are those of items and not of features.
    shuffled = replace(SECRET_SETS, aggregation=ShuffledAggregation(messages=64))
    shuffled = shuffled.suited(Public(1_000_000, 1000, STARS))
    assert shuffled.rounds == 2
    assert {part for parts in shuffled.sums.parts for part, _ in parts} == {"counts", "residuals"}


def secure(faults: dict[str, float] | None = None, **aggregation: Any) -> RunResult:
    factorization = {"rank": 0, "bias_rounds": ROUNDS}
    added_up = {"kind": "secure-aggregation", **aggregation}
    return ran("dp-als", faults, 4.0, ITEMS, factorization=factorization, aggregation=added_up)


def test_everybody_is_charged_for_every_message_of_a_secure_sum() -> None:
    result = secure(modulus_bits=20)
    degree = graph_size(USERS, 0.1, 5).degree
    # Counts and sums in the first round, sums alone in the second.
    sizes = [MessageSizes(degree, ITEMS * width, 20) for width in (2, 1)]
    assert set(result.traffic["uplink_payload_bytes"]) == {sum(sum(size.uplink) for size in sizes)}
    down = sum(sum(size.downlink) for size in sizes)
    models = (ROUNDS + 1) * len(ItemModel.begin(ITEMS, 0, 3.0).encode())
    assert set(result.traffic["downlink_payload_bytes"]) == {models + down}


def test_damaged_reports_count_as_dropouts_of_whom_too_many_release_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert secure({"corrupt": 0.1}, dropouts=0.4, colluders=0).summary["accuracy"]["rmse"] is not None

    def unmasked(*_: Any) -> None:
        pytest.fail("a total was released")

    monkeypatch.setattr(SecureAggregation, "release", unmasked)
    message = r"^too many devices dropped out in every round \(rounds: 2\): ([\d.]+)% of them or more, where "
    allowed = r"protocol\.aggregation\.dropouts allows 10\.0%$"
    for faults in ({"dropout": 0.5}, {"corrupt": 0.5}):
        with pytest.raises(RunError, match=message + allowed) as caught:
            secure(faults)
        (share,) = re.findall(message, str(caught.value))
        lost = float(share) * USERS / 100
        assert 0.1 * USERS < lost < USERS
        assert lost == pytest.approx(round(lost), abs=0.05 * USERS / 100)


def test_a_failed_release_among_others_is_charged_and_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        SecureAggregation, "can_release", lambda self, present, added_up, done, seed: done == 1
    )
    privacy = secure().summary["privacy"]
    assert "Of 2 releases 1 failed" in " ".join(privacy["notes"])
    assert privacy["epsilon_composed"]["max"] == pytest.approx(4.0, rel=1e-6)
