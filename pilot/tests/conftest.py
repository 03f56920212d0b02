"""What tests of the pilot share: no deadline of an example, no lines of progress."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from dprec.progress import silent

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# How long an example takes says more about the machine's other work than about the code.
settings.register_profile("dprec", deadline=None)
settings.load_profile("dprec")


@pytest.fixture(autouse=True, scope="session")
def no_lines_of_progress() -> Iterator[None]:
    """Keep off standard error what depends on how busy the machine is."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("simulation.console.progress.Lines", lambda write: silent)
        yield
