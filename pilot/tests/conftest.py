"""What tests of the pilot share: few examples without a deadline, no wait for a disk, no progress."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from dprec.progress import silent

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# How long an example takes says more about the machine's other work than about the code.
settings.register_profile("dprec", deadline=None, max_examples=50)
settings.load_profile("dprec")


@pytest.fixture(autouse=True, scope="session")
def nothing_waits_or_tells_how_long() -> Iterator[None]:
    """Wait for no disk, as no test loses power, and keep off standard error how busy the machine is."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("os.fsync", lambda descriptor: None)
        patched.setattr("simulation.console.progress.Lines", lambda write: silent)
        yield
