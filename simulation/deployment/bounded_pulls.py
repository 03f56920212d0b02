"""Bounds how long Flower's grid waits for a reply whose sender died while it sent it.

Flower announces a reply before its contents follow, and waits for these for two hours by default. Meanwhile
the server would hear nobody else.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial


@contextmanager
def bounded_pulls(seconds: float) -> Iterator[None]:
    """Give up a reply whose contents do not follow within so many seconds, as long as the context lasts."""
    from flwr.superlink.grid import http_grid

    name = "pull_objects"
    unbounded = getattr(http_grid, name)
    setattr(http_grid, name, partial(unbounded, max_time=seconds, initial_backoff=0.1, backoff_cap=1.0))
    try:
        yield
    finally:
        setattr(http_grid, name, unbounded)
