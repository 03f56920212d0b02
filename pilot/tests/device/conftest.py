"""What all tests of devices share: secrets that are the same in every session, and unchanged loggers."""

import hashlib
import logging
from itertools import count

import pytest


@pytest.fixture(autouse=True)
def known_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each new device another secret, but each session the same: no test passes or fails by chance."""
    numbers = count()
    monkeypatch.setattr(
        "dprec_pilot.device.folder._new_secret", lambda: hashlib.sha256(b"device %d" % next(numbers)).digest()
    )


@pytest.fixture(autouse=True)
def levels_as_imported() -> None:
    """Undo what the command sets for its whole process, which may have run a test of it."""
    for name in ("dprec.device", "flwr", "httpx", "httpcore"):
        logging.getLogger(name).setLevel(logging.NOTSET)
