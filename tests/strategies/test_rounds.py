import numpy as np
import pytest
from flwr.common.serde import message_to_proto

from dprec.exchange import FinalFactors
from dprec.wire import TrafficLedger
from strategies.rounds import (
    RoundAccount,
    message_size,
    reply_content,
    reply_message,
    report_sizes,
    request_content,
    request_message,
)

# Where the numbers of users and the lengths of payloads begin to need another byte.
USERS = [0, 1, 62, 63, 64, 65, 127, 128, 8190, 8191, 8192, 8193, 2**20 - 1, 2**20, 2**27 - 1, 2**27]
PAYLOADS = [0, 1, 2, 50, 100, 126, 127, 128, 129, 200, 16000, 16383, 16384, 16385]


@pytest.mark.parametrize("user", USERS)
def test_the_size_is_that_of_the_serialised_message(user: int) -> None:
    payloads = np.array([PAYLOADS[user % len(PAYLOADS)], *PAYLOADS])
    sizes = report_sizes("query.report", "00000001", user + np.arange(payloads.size), payloads)
    for offset, payload in enumerate(payloads.tolist()):
        message = reply_message("query.report", reply_content(user + offset, [bytes(payload)]), "00000001")
        assert sizes[offset] == message_size(message) == message_to_proto(message).ByteSize()


def test_requests_are_charged_as_if_each_had_been_serialised() -> None:
    ledger, payloads = TrafficLedger(20_000), np.arange(20_000)[::-1].copy()
    RoundAccount("query.report", "g", ledger).charge_requests(
        np.arange(20_000), payloads, lambda payload: request_content(FinalFactors(payload))
    )
    for user in [*range(0, 20_000, 1013), *range(3600, 3640), *range(19_850, 20_000)]:
        content = request_content(FinalFactors(bytes(int(payloads[user]))))
        expected = message_size(request_message("query.report", content, "g"))
        assert ledger.downlink_message[user] == expected
