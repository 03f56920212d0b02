"""What all tests share: compiled modules, one thread of linear algebra, little garbage, no progress."""

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from hypothesis import settings

from dprec.progress import silent

# As in a run. The processes that share the tests, and those that a test starts, inherit it.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# How long an example takes says more about the machine's other work than about the code.
settings.register_profile("dprec", deadline=None, max_examples=50)
settings.load_profile("dprec")

# What is compiled is kept, whatever the environment says: the same processes would each compile it again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# What imports and the collection of the tests make stays until the end: nobody need search it for garbage.
gc.disable()


@pytest.fixture(autouse=True, scope="session")
def nothing_waits_or_tells_how_long() -> Iterator[None]:
    """Wait for no disk, and keep off standard error what depends on how busy the machine is.

    No test loses power; `test_progress` has its own clock.
    """
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("os.fsync", lambda descriptor: None)
        # Where there is one thread, nobody need look which libraries have more.
        patched.setattr("simulation.execution.threadpool_limits", lambda limits: nullcontext())
        patched.setattr("simulation.console.progress.Lines", lambda write: silent)
        yield


SLOWEST_MODULES = (
    "test_determinism_on_ray.py",
    "test_cluster.py",
    "test_gate.py",
    "test_iterative_runs.py",
    "test_page_in_browser.py",
    "test_determinism.py",
    "test_pages.py",
    "test_auditing.py",
    "test_command_line.py",
    "test_contract.py",
    "test_running.py",
    "test_blocks.py",
)


THOROUGH_MODULES = {
    "test_cluster.py",
    "test_decision.py",
    "test_determinism.py",
    "test_determinism_on_ray.py",
    "test_drawing.py",
    "test_gate.py",
    "test_interrupts.py",
    "test_page_in_browser.py",
    "test_pages.py",
    "test_processors.py",
    "test_real_data.py",
    "test_running.py",
    "test_watching.py",
}
"""Mutants, browsers, whole pages, pilots, clusters, interrupts, clocks, real ratings and determinism: what
`make test-all` adds, beside tests that are marked as thorough where they stand."""

READ_FIRST = "[README.md]", "[docs/start.md]"
"""Parameters of tests of what documents type that `make test` runs; `make nightly` runs the others."""

TYPED_MODULES = {"test_blocks.py", "test_formats.py", "test_notebooks.py", "test_site.py"}
"""Modules of tests of what documents show to be typed, and of how the site is built."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import no module of which no test is asked for; each process that shares the tests imports them all."""
    return ("not thorough" in config.option.markexpr and collection_path.name in THOROUGH_MODULES) or None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the modules that take longest, so that no process idles at the end; mark tiers."""
    order = {name: place for place, name in enumerate(SLOWEST_MODULES)}
    items.sort(key=lambda item: order.get(item.path.name, len(order)))
    for item in items:
        if item.path.name in THOROUGH_MODULES:
            item.add_marker("thorough")
        typed = item.path.name in TYPED_MODULES and item.path.parent.name in ("documents", "tests")
        if typed and not any(name in item.name for name in READ_FIRST):
            item.add_marker("nightly")


def pytest_collection_finish() -> None:
    """Collect garbage again, but rarely, and not among what is there before the first test."""
    gc.freeze()
    gc.set_threshold(100_000, 20, 20)
    gc.enable()
