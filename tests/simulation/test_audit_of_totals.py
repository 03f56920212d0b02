"""The audit of totals whose noise the devices add: below the promise, and above it with too little noise."""

from __future__ import annotations

import pytest

from dprec.errors import SettingError
from dprec.privacy.calibration import PrivacyBudget
from dprec.private_als import FactorizationOptions, SecureAggregation, TrustedAggregation
from simulation.auditing.promise import promise_of
from simulation.auditing.totals import total_findings
from simulation.protocols.private_als import PrivateAlsProtocol

PROTOCOL = PrivateAlsProtocol(
    privacy=PrivacyBudget(epsilon=2.0, per="user", composition="pld", delta=1e-3),
    factorization=FactorizationOptions(rank=0),
    aggregation=SecureAggregation(colluders=3, dropouts=0.2),
)
FAILURE = 1e-6


def test_the_bound_on_a_total_is_below_the_promise_and_not_far_below() -> None:
    (finding,) = total_findings(PROTOCOL, promise_of(PROTOCOL), 40_000, 1, FAILURE)
    assert 0.5 < finding.at_least <= finding.promised == 2.0
    assert "less the noise of 3 colluding devices" in finding.test


def test_noise_that_counts_on_too_many_devices_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dprec.private_als.secure.honest_shares", lambda users, *_: 12 * users)
    (finding,) = total_findings(PROTOCOL, promise_of(PROTOCOL), 40_000, 1, FAILURE)
    assert finding.at_least > finding.promised


def test_only_devices_that_add_the_noise_are_audited() -> None:
    assert PROTOCOL.audited() is PROTOCOL
    with pytest.raises(SettingError, match="a protocol whose devices protect what they send"):
        PrivateAlsProtocol(privacy=PROTOCOL.privacy, aggregation=TrustedAggregation()).audited()
