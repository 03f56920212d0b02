"""The group of every message of a deployment: 4 characters of its protocol, and 4 of its run.

A run has a key of its own, which the server draws when the run starts and keeps until it has ended. Devices
bind noise, memory and charges to it: the same key is the same run, whatever Flower calls it, so a server that
was restarted goes on where it was. A key that is used again gets the answers that it got before, at no cost;
another key is another run, which the limits of devices count.
"""

import os
import re
from base64 import urlsafe_b64encode

from dprec.exchange import Refusal, RefusalCode

_BYTES = 3
"""Of the protocol's fingerprint, and of a run key: 4 characters each."""

_KEY = re.compile("[A-Za-z0-9_-]{4}", re.ASCII)


def new_run_key() -> str:
    """Draw the key of a run: 24 bits as 4 characters of base64url.

    Two of the first hundred runs of a pilot are the same to its devices with a probability of 3e-4; then they
    repeat or refuse answers.
    """
    return urlsafe_b64encode(os.urandom(_BYTES)).decode()


def is_run_key(text: str) -> bool:
    """Return whether a text can be the key of a run."""
    return _KEY.fullmatch(text) is not None


def group_of(fingerprint: str, run_key: str) -> str:
    """Return the group of the messages of a run: 4 characters of the protocol's fingerprint, 4 of the run."""
    return _of_protocol(fingerprint) + run_key


def run_key_in(group: str, fingerprint: str) -> str:
    """Return the key of the run that a group names; raises a Refusal for another protocol, or without one."""
    own = _of_protocol(fingerprint)
    if not group.startswith(own):
        raise Refusal(RefusalCode.CHANGED_SETUP, f"a run of the protocol {group[:8]!r}; agreed: {own}")
    run_key = group.removeprefix(own)
    if not is_run_key(run_key):
        raise Refusal(RefusalCode.MALFORMED_REQUEST, "a request of a run without a key")
    return run_key


def _of_protocol(fingerprint: str) -> str:
    return urlsafe_b64encode(bytes.fromhex(fingerprint)[:_BYTES]).decode()
