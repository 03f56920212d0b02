"""One source for a loop: compiled by Numba where that is installed, interpreted with the same bits elsewhere.

A kernel takes flat arrays and numbers, whose types its annotations state: `Ints` is an array of one
dimension that is read, ``Table[Floats]`` one of two, and ``Written[...]`` one that the kernel writes to.
Compiled loops neither check bounds nor hold Python's lock, so a kernel that reads what others sent checks
each place before it reads there, and a thread may work on each range of users.

Integers of 64 bits without sign meet only their like: beside signed ones, Numba computes in floating point.
Neither fast mathematics nor parallel loops are used: both change the order of sums.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast, get_args, get_origin, get_type_hints

import numpy as np

from dprec.errors import InputError
from dprec.progress import Progress, silent
from dprec.start import NO_LIMIT, memory_limit

if TYPE_CHECKING:
    from numba.core.types import Type

ArrayT = TypeVar("ArrayT")
FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

_WRITTEN, _TWO_DIMENSIONS = "written", "two dimensions"

Written = Annotated[ArrayT, _WRITTEN]
"""An array that a kernel writes to."""

Table = Annotated[ArrayT, _TWO_DIMENSIONS]
"""An array of two dimensions, its rows contiguous."""


class Kernel:
    """A loop that is compiled, or loaded from disk, when it is first called: by Python or by another loop.

    The machine code is kept on disk for later processes, where a directory for it can be written to.
    """

    def __init__(self, loop: Callable[..., Any]) -> None:
        functools.update_wrapper(self, loop)
        self._loop = loop

    def __call__(self, *arguments: Any) -> Any:
        """Run it."""
        return self.ready(*arguments)

    @functools.cached_property
    def ready(self) -> Any:
        """The compiled loop, or the function as it is where Numba is absent."""
        numba = _numba()
        if numba is None or numba.config.DISABLE_JIT:
            return _interpreted(self._loop)
        hints = get_type_hints(self._loop, include_extras=True)
        hints.pop("return")
        signature = tuple(_numba_type(hint) for hint in hints.values())
        compile_it = functools.partial(numba.njit, signature, nogil=True, error_model="numpy")
        try:
            return compile_it(cache=True)(self._loop)
        except RuntimeError as error:
            if "no locator available" not in str(error):
                raise
            return compile_it()(self._loop)

    @property
    def _numba_type_(self) -> Type:
        """What Numba takes it for where another loop calls it."""
        return cast("Type", self.ready._numba_type_)


def compiled(kernel: FunctionT) -> FunctionT:
    """Compile a function for the types of its annotations when it is first called."""
    return cast("FunctionT", Kernel(kernel))


def prepare(progress: Progress = silent) -> None:
    """Compile all kernels, or load them from disk: at once, so that no worker does it beside another."""
    package = importlib.import_module(__package__)
    names = [f"{__package__}.{module.name}" for module in pkgutil.iter_modules(package.__path__)]
    members = [(name, member) for name in names for member in vars(importlib.import_module(name)).values()]
    kernels = [member for name, member in members if isinstance(member, Kernel) and member.__module__ == name]
    for done, kernel in enumerate(kernels):
        with compiling_told(progress, done, len(kernels)):
            kernel.ready  # noqa: B018


@contextmanager
def compiling_told(progress: Progress, done: int = 0, total: int = 0) -> Iterator[None]:
    """Say so while a kernel is compiled, which takes seconds; to load one from disk takes no time."""
    if _numba() is None:
        yield
        return
    from numba.core import event

    class CompilationListener(event.Listener):
        def on_start(self, event: object) -> None:
            progress("compiling", done, total)

        def on_end(self, event: object) -> None:
            pass

    with event.install_listener("numba:compile", CompilationListener()):
        yield


def _numba() -> Any:
    """Return Numba's package, or None where it is absent.

    Raises InputError where a limit on memory keeps its library out, which it calls a file that is not found.
    """
    try:
        import numba
    except ImportError:
        return None
    except OSError as error:
        limit = memory_limit()
        if limit is None:
            raise
        found = f"a limit of {limit / 1e9:.2g} GB, within which Numba cannot be loaded"
        raise InputError("memory", found, f"a larger limit, or none: {NO_LIMIT}") from error
    return numba


def _interpreted(kernel: FunctionT) -> FunctionT:
    @functools.wraps(kernel)
    def run(*arguments: Any) -> Any:
        # As compiled: integers wrap around, and a division by zero is infinite.
        with np.errstate(all="ignore"):
            return kernel(*arguments)

    return cast("FunctionT", run)


def _numba_type(hint: Any) -> Type:
    """Return Numba's type of an annotation."""
    from numba import from_dtype, types

    marks: set[str] = set()
    while get_origin(hint) is Annotated:
        hint, *metadata = get_args(hint)
        marks.update(metadata)
    scalars = {int: types.int64, float: types.float64, bool: types.boolean}
    if hint in scalars:
        return scalars[hint]
    if isinstance(hint, type) and issubclass(hint, np.generic):
        return from_dtype(np.dtype(hint))
    # An array is numpy.ndarray[shape, numpy.dtype[scalar]].
    (scalar,) = get_args(get_args(hint)[1])
    dimensions = 2 if _TWO_DIMENSIONS in marks else 1
    return types.Array(from_dtype(np.dtype(scalar)), dimensions, "C", readonly=_WRITTEN not in marks)
