"""What all tests of devices share: secrets that are the same in every session."""

import hashlib
from itertools import count

import pytest


@pytest.fixture(autouse=True)
def known_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each new device another secret, but each session the same: no test passes or fails by chance."""
    numbers = count()
    monkeypatch.setattr(
        "dprec_pilot.device.folder._new_secret", lambda: hashlib.sha256(b"device %d" % next(numbers)).digest()
    )
