"""What a network carries is counted from messages, visits and polls."""

import numpy as np
import pytest

from dprec.wire import WITHOUT_RECORD, NetworkOptions, TrafficLedger, network_bytes
from dprec.wire.traffic import MEASURED, Contacts

NO_CONTACTS = Contacts(connections=0, polls=0, heartbeats=0)
ROUND = 1.0
"""Bytes by which a sum of measured parts may miss a whole."""


@pytest.fixture
def reported() -> TrafficLedger:
    """Return the traffic of a user who is asked for a report of 80 bytes, beside one who is not asked."""
    ledger = TrafficLedger(2)
    ledger.charge_downlink(np.array([0]), 0, 110, objects=WITHOUT_RECORD)
    ledger.charge_uplink(np.array([0]), 80, 240)
    return ledger


def test_who_is_not_asked_costs_nothing(reported: TrafficLedger) -> None:
    up, down = network_bytes(reported, NetworkOptions(minutes_per_round=1).contacts(reported.requests))
    assert up[0] > 0
    assert down[0] > 0
    assert (up[1], down[1]) == (0, 0)


def test_a_report_costs_eight_requests(reported: TrafficLedger) -> None:
    """A poll, two objects, a confirmation, an envelope and three objects: some 1,000 bytes up for each."""
    up, down = network_bytes(reported, NO_CONTACTS)
    assert 8 * 900 < up[0] - 240 < 8 * 1250
    assert 8 * 150 < down[0] - 110 < 8 * 350


def test_a_visit_adds_a_handshake_a_heartbeat_and_a_last_poll(reported: TrafficLedger) -> None:
    alone = network_bytes(reported, NO_CONTACTS)
    visiting = network_bytes(reported, NetworkOptions().contacts(reported.requests))
    for way in (0, 1):
        added = MEASURED.handshake[way] + MEASURED.heartbeat[way] + MEASURED.poll[way]
        assert visiting[way][0] - alone[way][0] == pytest.approx(added, abs=ROUND)


@pytest.mark.parametrize(
    ("seconds", "polls", "connections", "heartbeats"),
    [(3.0, 20, 1, 3), (0.5, 120, 1, 3), (5.0, 12, 13, 3), (7.0, 8, 9, 3), (40.0, 1, 2, 1), (90.0, 1, 2, 1)],
)
def test_polls_fill_the_minutes_and_connect_anew_when_they_are_rare(
    seconds: float, polls: int, connections: int, heartbeats: int
) -> None:
    options = NetworkOptions(minutes_per_round=1, poll_seconds=seconds)
    contacts = options.contacts(np.array([0, 1, 2]))
    assert np.array_equal(contacts.polls, np.array([0, polls, 2 * polls]))
    assert np.array_equal(contacts.connections, np.array([0, connections, 2 * connections]))
    assert np.array_equal(contacts.heartbeats, np.array([0, heartbeats, 2 * heartbeats]))


def test_a_longer_message_costs_its_own_bytes_more(reported: TrafficLedger) -> None:
    before = network_bytes(reported, NO_CONTACTS)
    reported.uplink_message[0] += 5_000
    reported.downlink_message[0] += 70
    after = network_bytes(reported, NO_CONTACTS)
    assert (after[0][0] - before[0][0], after[1][0] - before[1][0]) == (5_000, 70)
