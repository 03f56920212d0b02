"""The audit of sums with noise: below the promise, and above it with too little noise or noise used again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dprec.accounting import PrivacyBudget
from dprec.errors import SettingError
from dprec.private_als import FactorizationOptions, SecureAggregation, TrustedAggregation
from dprec.randomness import ReleaseDraws
from simulation.auditing.sums import NoisySums, sum_findings
from simulation.protocols.audited import Finding
from simulation.protocols.private_als import PrivateAlsProtocol

OF_DEVICES = PrivateAlsProtocol(
    privacy=PrivacyBudget(epsilon=2.0, per="user", composition="pld", delta=1e-3),
    factorization=FactorizationOptions(rank=0),
    aggregation=SecureAggregation(colluders=3, dropouts=0.2),
)
OF_SERVER = replace(OF_DEVICES, aggregation=TrustedAggregation())
FAILURE = 1e-6
WHOLE, BUT_FOR, LONGEST = 1, 2, 0


def released(protocol: PrivateAlsProtocol) -> NoisySums:
    sums = protocol.factorization, protocol.aggregation, protocol.multipliers
    return NoisySums(*sums, protocol.sensitivity, protocol.accountant)


def findings(protocol: PrivateAlsProtocol, trials: int = 40_000) -> list[Finding]:
    return list(sum_findings(released(protocol), protocol.promise(), trials, 1, FAILURE))


def defects(protocol: PrivateAlsProtocol, trials: int = 10_000) -> set[str]:
    return {finding.test for finding in findings(protocol, trials) if finding.defect}


@pytest.mark.parametrize("adjacency", ["add-or-remove-one", "replace-one"])
@pytest.mark.parametrize("protocol", [OF_DEVICES, OF_SERVER], ids=["devices", "server"])
def test_the_bound_on_sums_is_below_the_promise_and_not_far_below(
    protocol: PrivateAlsProtocol, adjacency: str
) -> None:
    found = findings(replace(protocol, adjacency=adjacency))
    assert [finding.test for finding in found if finding.defect] == []
    assert 0.5 < found[WHOLE].at_least <= found[WHOLE].promised == 2.0
    assert found[WHOLE].promised > found[BUT_FOR].promised > found[BUT_FOR].at_least > 0.5
    assert found[LONGEST].exact
    assert 0.99 * 2.0 < found[LONGEST].at_least <= 2.0 * (1 + 1e-9)


def test_what_is_looked_at_where_devices_add_the_noise_and_where_a_server_does() -> None:
    tests = [finding.test for finding in findings(OF_DEVICES, 1000)]
    assert len(tests) == 3
    assert "less the noise of 3 colluding devices" in tests[WHOLE]
    assert [finding.test for finding in findings(OF_SERVER, 1000)] == [
        "the longest of some contributions",
        "a whole profile, in the sums of all rounds",
        "a whole profile, in the sums of all rounds, but for a probability of 0.01",
        "noise of two rounds",
        "noise of two items",
        "noise of two runs",
        "noise of other sums",
    ]


def test_noise_that_counts_on_too_many_devices_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dprec.private_als.secure.honest_shares", lambda users, *_: 12 * users)
    assert any("colluding devices" in test for test in defects(OF_DEVICES, 40_000))


def test_noise_of_another_round_run_or_sum_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = ReleaseDraws.generator

    def alike(draws: ReleaseDraws, purpose: str, released: np.ndarray) -> np.random.Generator:
        return honest(ReleaseDraws(1, 1), purpose, 0 * released)

    monkeypatch.setattr(ReleaseDraws, "generator", alike)
    assert {"noise of two rounds", "noise of two runs", "noise of other sums"} <= defects(OF_SERVER)


@pytest.mark.parametrize("rotation", [False, True])
def test_contributions_that_are_sketched_and_turned_keep_to_their_length(rotation: bool) -> None:
    aggregation = SecureAggregation(colluders=3, dropouts=0.2, sketch=0.3, rotation=rotation)
    sketched = findings(replace(OF_DEVICES, aggregation=aggregation), 1000)
    assert 0.98 * 2.0 < sketched[LONGEST].at_least <= 2.0


def test_only_sums_with_noise_are_audited() -> None:
    assert OF_DEVICES.audited() is OF_DEVICES
    assert OF_SERVER.audited() is OF_SERVER
    with pytest.raises(SettingError, match="a protocol whose devices protect what they send"):
        PrivateAlsProtocol(aggregation=TrustedAggregation()).audited()
