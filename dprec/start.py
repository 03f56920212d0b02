"""The start of the commands: check that the packages are those of this distribution, then hand over.

The command line is named here as a string, as in the metadata of an installed script: nothing in this
package imports the simulation.
"""

import atexit
import ctypes
import gc
import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import NoReturn

from dprec.errors import InputError

PACKAGES = ("clients", "dprec", "simulation", "strategies")
COMMAND_LINE = "simulation.console.command_line"

_ENDING = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
"""Signals that ask a program to end, and who handles them unless somebody says otherwise."""

_HOME = Path(__file__).resolve().parents[1]


def check_packages(packages: Sequence[str] = PACKAGES) -> None:
    """Raise InputError if another module would be imported instead of one of the packages.

    The current directory is searched even if this process does not import from it, since Ray puts it first on
    the path of its workers.
    """
    try:
        Path.cwd()
    except FileNotFoundError:
        raise InputError("the current directory", "it was deleted", "a directory that exists") from None
    for name in packages:
        for spec in (find_spec(name), PathFinder.find_spec(name, [os.path.curdir])):
            # A folder without an __init__.py hides nothing.
            if spec is None or spec.origin is None:
                continue
            if Path(spec.origin).resolve() != _HOME / spec.name / "__init__.py":
                where, found = str(Path(spec.origin).absolute()), f"hides the package {name!r} of {_HOME}"
                raise InputError(where, found, "another name, or another directory to start in")


def memory_limit() -> int | None:
    """Return the bytes of addresses that this process may have; None without a limit."""
    with suppress(ImportError):
        import resource  # which not every system has

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        return None if limit == resource.RLIM_INFINITY else limit
    return None


def check_memory() -> None:
    """Raise InputError where Polars and Numba cannot be loaded: they end in thousands of lines."""
    limit = memory_limit()
    if limit is not None and limit < _LEAST_MEMORY:
        least = f"at least {_LEAST_MEMORY / 1e9:g} GB"
        raise InputError("memory", f"a limit of {limit / 1e9:.3g} GB", f"{least}, or none: {NO_LIMIT}")


_LEAST_MEMORY = 600_000_000
NO_LIMIT = "ulimit -v unlimited"


def interrupt_once(number: int, frame: FrameType | None) -> NoReturn:
    """Interrupt the program, and ignore what follows: half of an orderly end shows tracebacks, as Ray does.

    SIGTERM, by which schedulers and containers stop a program, ends it as an interrupt from the keyboard.
    """
    for ending in _ENDING:
        signal.signal(ending, signal.SIG_IGN)
    raise KeyboardInterrupt


def return_memory(library: str | None = None) -> None:
    """Have the C library, if it is glibc, return large arrays to the system as soon as they are freed.

    Else it keeps what threads have freed in heaps of their own, and more and larger arrays the larger those
    were that have been freed: a tenth of what a large run takes.
    """
    with suppress(OSError, AttributeError):
        set_option = ctypes.CDLL(library).mallopt
        for option, value in _OF_GLIBC:
            set_option(option, value)


_OF_GLIBC = ((-8, 1), (-3, 1 << 22), (-1, 1 << 24))
"""M_ARENA_MAX, one heap; M_MMAP_THRESHOLD and M_TRIM_THRESHOLD, bytes; as in malloc.h."""


def collect_rarely() -> None:
    """Look for cycles of objects less often, and not at the exit.

    Imports make hundreds of thousands of objects that all stay: a tenth of a run's time went into looking.
    """
    gc.set_threshold(500_000, 10, 10)
    atexit.register(gc.freeze)


def run_command_line(command_line: str = COMMAND_LINE, packages: Sequence[str] = PACKAGES) -> None:
    """Check memory and some packages, then run the command line of a module, which exits."""
    check_memory()
    return_memory()
    collect_rarely()
    # Who ignores them, as in the background of a shell, goes on ignoring them.
    for ending, default_handler in _ENDING.items():
        if signal.getsignal(ending) is default_handler:
            signal.signal(ending, interrupt_once)
    check_packages(packages)
    import_module(command_line).main()
