import numpy as np

from dprec.wire import WITHOUT_RECORD, TrafficLedger


def test_each_direction_is_charged_apart() -> None:
    ledger = TrafficLedger(4)
    ledger.charge_downlink(slice(None), 0, 100)
    ledger.charge_uplink(np.array([1, 3]), np.array([10, 30]), np.array([110, 130]))
    ledger.charge_uplink(slice(3, 4), 5, 105)
    assert ledger.uplink_payload.tolist() == [0, 10, 0, 35]
    assert ledger.uplink_message.tolist() == [0, 110, 0, 235]
    assert ledger.downlink_payload.tolist() == [0, 0, 0, 0]
    assert ledger.downlink_message.tolist() == [100] * 4
    assert ledger.messages.tolist() == [1, 2, 1, 3]
    assert ledger.requests.tolist() == [1] * 4


def test_objects_are_counted_by_what_a_message_carries() -> None:
    ledger = TrafficLedger(2)
    ledger.charge_downlink(slice(None), 0, 100, objects=WITHOUT_RECORD)
    ledger.charge_downlink(np.array([1]), 5, 200)
    ledger.charge_uplink(np.array([1]), 5, 200)
    assert ledger.downlink_objects.tolist() == [2, 5]
    assert ledger.uplink_objects.tolist() == [0, 3]


def test_millions_of_bytes_times_millions_of_users_do_not_overflow() -> None:
    ledger = TrafficLedger(2)
    ledger.charge_uplink(slice(None), 2**40, 2**41)
    assert ledger.uplink_message.sum() == 2**42
