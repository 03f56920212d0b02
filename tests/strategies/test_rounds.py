import numpy as np
import pytest
from flwr.common.serde import message_to_proto

from strategies.rounds import (
    message_size,
    reply_content,
    reply_message,
    report_sizes,
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


def test_nobody_has_no_size() -> None:
    assert (
        report_sizes("query.report", "g", np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)).size == 0
    )
