"""The programs of benchmarks, which import each other by their names."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.paths import ROOT

FOLDERS = ROOT / "benchmarks", ROOT / "benchmarks" / "choosing"
PROGRAMS = [path for folder in FOLDERS for path in sorted(folder.glob("*.py"))]


@contextmanager
def at_hand() -> Iterator[None]:
    """Have programs find each other, as if one of them were run; forget them afterwards."""
    places, known = sys.path[:], set(sys.modules)
    sys.path[:0] = map(str, FOLDERS)
    try:
        yield
    finally:
        sys.path[:] = places
        for name in set(sys.modules) - known:
            if Path(getattr(sys.modules[name], "__file__", None) or ".").parent in FOLDERS:
                del sys.modules[name]
