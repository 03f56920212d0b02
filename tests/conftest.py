"""The order of the tests: the modules that take longest begin, so that no worker idles at the end."""

import pytest

SLOWEST_MODULES = (
    "test_determinism_on_ray.py",
    "test_cluster.py",
    "test_gate.py",
    "test_iterative_runs.py",
    "test_page_in_browser.py",
    "test_determinism.py",
    "test_pages.py",
    "test_audit.py",
    "test_command_line.py",
    "test_contract.py",
    "test_running.py",
    "test_wheel.py",
    "test_readme.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Move the slowest modules to the front."""
    order = {name: place for place, name in enumerate(SLOWEST_MODULES)}
    items.sort(key=lambda item: order.get(item.path.name, len(order)))
