"""What a protocol leaves behind."""

import numpy as np
import pytest

from dprec.accounting import Guarantee, PrivacyAccountant
from dprec.wire import TrafficLedger
from simulation.protocols import Outcome
from strategies.participation import RoundRecord


@pytest.mark.parametrize(("seconds", "server"), [(10.0, 4.0), (6.0, 0.0), (1.0, 0.0)])
def test_the_server_works_outside_the_rounds(seconds: float, server: float) -> None:
    outcome = Outcome(
        predict=lambda users, items: np.zeros(users.size),
        traffic=TrafficLedger(1),
        accountant=PrivacyAccountant(rated=np.ones(1, dtype=np.bool_)),
        guarantee=Guarantee("none", "central", False, "the server receives the true ratings."),
        rounds=tuple(RoundRecord(number, 1, 0, None, 0, 0, 0, 0, 2.0 * number) for number in (1, 2)),
        seconds=seconds,
    )
    assert outcome.clients_seconds == 6.0
    assert outcome.server_seconds == server
