"""What tests of the pilot share: which are thorough, no deadline of an example, no lines of progress."""

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from dprec.progress import silent

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# How long an example takes says more about the machine's other work than about the code.
settings.register_profile("dprec", deadline=None)
settings.load_profile("dprec")

THOROUGH_MODULES = {"test_end_to_end.py", "test_times.py", "test_weekly.py"}
"""SuperLinks and clocks: what `make test-all` adds, beside tests that are marked where they stand."""


@pytest.fixture(autouse=True, scope="session")
def no_lines_of_progress() -> Iterator[None]:
    """Keep off standard error what depends on how busy the machine is."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("simulation.console.progress.Lines", lambda write: silent)
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark thorough ones."""
    for item in items:
        if item.path.name in THOROUGH_MODULES:
            item.add_marker("thorough")
