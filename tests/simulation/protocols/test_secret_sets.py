"""The protocol best-secret-set: what it promises, what it charges, and what it refuses."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprec.accounting import PrivacyBudget, gaussian_epsilon, largest_mu
from dprec.datasets import Synthetic
from dprec.secret_sets import SecretSetOptions
from dprec.secret_sets.method import split_at
from dprec.sums import SecureAggregation, ShuffledAggregation, TrustedAggregation
from simulation import run
from simulation.protocols.secret_sets import SecretSetProtocol
from simulation.result import RunResult
from tests.refusals import refused_at
from tests.simulation.divisions import bits, compare, divided

BUDGET = PrivacyBudget(epsilon=1.0, per="user", composition="pld", delta=1e-6)
PROTOCOL = SecretSetProtocol(privacy=BUDGET, aggregation=TrustedAggregation())
TRAIN = Synthetic(users=30, items=20, ratings=300).load()


def values(simulation: dict[str, Any] | None = None, **protocol: Any) -> dict[str, Any]:
    privacy = {"epsilon": 2.0, "per": "user", "composition": "pld", "delta": 1e-5}
    return {
        "name": "sums",
        "seed": 1,
        "dataset": {"kind": "synthetic", "users": 60, "items": 30, "ratings": 900},
        "split": {"kind": "holdout", "test_fraction": 0.2},
        "protocol": {"kind": "best-secret-set", "privacy": privacy, **protocol},
        "simulation": {"backend": "local", **(simulation or {})},
    }


def ran(simulation: dict[str, Any] | None = None, **protocol: Any) -> RunResult:
    return run(values(simulation, **protocol), page=False)


@pytest.mark.parametrize("kind", ["trusted", "secure", "shuffle"])
def test_the_bits_do_not_depend_on_cohorts_whatever_fails(tmp_path: Path, kind: str) -> None:
    """Of a secure sum from which a report is missing, nothing is learned: all releases would fail."""
    faults = {"dropout": 0.2, "straggle": 0.1, "corrupt": 0.2} if kind == "trusted" else {"dropout": 0.02}
    several = {"histogram": "netflix", "split": [0.2, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]}
    config = values(
        {"faults": faults},
        aggregation={"kind": kind},
        sums={"histogram": "netflix"} if kind == "shuffle" else several,
        privacy={"epsilon": 8.0, "per": "user", "composition": "pld", "delta": 1e-5},
    )
    expected = bits(None, divided(config, "local", 1, "all"), tmp_path / "all")
    compare(expected, bits(None, divided(config, "local", 1, 7), tmp_path / "sevens"))


def test_the_rounds_compose_to_what_was_asked() -> None:
    base = 1 / largest_mu(1.0, 1e-6)
    multipliers = np.array(PROTOCOL.multipliers)
    assert multipliers.size == 3
    assert np.sum(multipliers**-2.0) == pytest.approx(base**-2, rel=1e-6)
    assert np.all(np.array(replace(PROTOCOL, adjacency="replace-one").multipliers) == 2 * multipliers)
    assert PROTOCOL.accountant().get_epsilon(1e-6)[0] == pytest.approx(1.0, rel=1e-6)
    assert PROTOCOL.accountant().get_epsilon(1e-6)[0] <= 1.0


def test_everybody_is_charged_for_what_was_promised_and_trusts_nobody_with_a_set() -> None:
    privacy = ran().summary["privacy"]
    assert privacy["epsilon_composed"]["max"] == pytest.approx(2.0, rel=1e-3)
    assert privacy["epsilon_composed"]["max"] <= 2.0
    assert (privacy["status"], privacy["trust"]) == ("proved", "secure-aggregation")
    assert privacy["hides_rated_items"]


def test_between_any_two_profiles_epsilon_is_that_of_twice_the_distance() -> None:
    promised = PROTOCOL.guarantee((1000, 50))
    twice = gaussian_epsilon(2 * largest_mu(1.0, 1e-6), 1e-6)
    assert f"between any two profiles it is {twice:.4g}" in promised.statements[1]


def test_sums_follow_from_users_and_budget_on_devices_and_at_the_server() -> None:
    suited = PROTOCOL.suited_to(TRAIN)
    tau = PROTOCOL.whole_multiplier / TRAIN.n_users
    assert suited.sums.split == suited.method.options.split == split_at(tau)
    assert suited.multipliers == suited.setup().multipliers
    given = replace(PROTOCOL, sums=SecretSetOptions(split=(0.5, 0.1, 0.4, 0.0, 0.0, 0.0, 0.0, 0.0)))
    assert given.suited_to(TRAIN) == given


def test_without_noise_the_table_helps() -> None:
    kept = ran(privacy=None, aggregation={"kind": "trusted"}, sums={"histogram": "netflix"})
    assert kept.summary["privacy"]["status"] == "none"
    least = {"epsilon": 0.01, "per": "user", "composition": "pld", "delta": 1e-6}
    nothing = ran(privacy=least, aggregation={"kind": "trusted"}, sums={"histogram": "netflix"})
    assert kept.summary["accuracy"]["rmse"] < nothing.summary["accuracy"]["rmse"]


def test_what_cannot_be_kept_to_is_refused() -> None:
    with refused_at("sums.split"):
        replace(PROTOCOL, sums=SecretSetOptions(split=(1.0,) + 7 * (0.0,))).check(TRAIN)
    for split in (8 * (0.0,), (0.5, 0.5), (0.5, 0.1, 0.4, 1e-300, 0.0, 0.0, 0.0, 0.0)):
        with refused_at("sums.split"):
            replace(PROTOCOL, sums=SecretSetOptions(split=split)).among(1000, 50).check(TRAIN)
    with refused_at("sums.histogram"):
        replace(PROTOCOL, sums=SecretSetOptions(histogram=(1.0, 1.0, 1.0))).check(TRAIN)
    with refused_at("privacy.per"):
        replace(PROTOCOL, privacy=replace(BUDGET, per="rating", composition="sum")).check(TRAIN)
    with refused_at("aggregation.norm"):
        coarse = SecureAggregation(norm=2, colluders=3)
        replace(PROTOCOL, aggregation=coarse).check(TRAIN)


def test_a_few_numbers_of_each_contribution_are_those_of_items_and_not_of_features() -> None:
    shuffled = replace(PROTOCOL, aggregation=ShuffledAggregation(messages=64)).among(1_000_000, 1000)
    assert shuffled.method.rounds == 2
    assert {part for parts in shuffled.sums.parts for part, _ in parts} == {"counts", "residuals"}
