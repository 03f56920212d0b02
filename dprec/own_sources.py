"""Which code a class or function from outside has: a digest that changes when the code does.

Of a module, the whole file counts, so that what its classes call counts too. A class of a notebook or script
has no file of its own: its functions count as they are compiled, with what they refer to there. Other
modules that either imports do not count.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from dprec.components import imported_function, is_importable, is_ours, reference_of
from dprec.components.user_defined import outside

_DIGITS = 16

_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def sources_of(components: Iterable[type[Any]]) -> dict[str, str]:
    """Return a digest of the code of each class from outside, by ``module:Class``.

    Returns
    -------
    dict
        16 hexadecimal digits each: of the class and of those that it is derived from.
    """
    return {reference_of(component): _digest(component) for component in components}


def sources_of_functions(references: Iterable[str]) -> dict[str, str]:
    """Return a digest of the file of each function, by its ``module:function``."""
    files = {reference: inspect.getsourcefile(imported_function(reference)) for reference in references}
    return {
        reference: hashlib.sha256(b"" if file is None else Path(file).read_bytes()).hexdigest()[:_DIGITS]
        for reference, file in files.items()
    }


def _digest(component: type[Any]) -> str:
    digest = hashlib.sha256()
    for base in outside(component):
        digest.update(base.__qualname__.encode() + b"\0")
        digest.update(hashlib.sha256(_source(base)).digest())
    return digest.hexdigest()[:_DIGITS]


def _source(component: type[Any]) -> bytes:
    """Return the file that a class is in, or else its compiled functions."""
    file = getattr(sys.modules.get(component.__module__), "__file__", None)
    if file is not None and file.endswith(".py") and is_importable(component):
        return Path(file).read_bytes()
    return "\n".join(_written(component, set())).encode()


def _written(value: Any, seen: set[int]) -> Iterator[str]:
    """Write what a value consists of, the same in every process."""
    if isinstance(value, staticmethod | classmethod):
        value = value.__func__
    if isinstance(value, _PLAIN):
        yield repr(value)
    elif isinstance(value, tuple):  # which processes share differently
        for entry in value:
            yield from _written(entry, seen)
    elif id(value) not in seen:
        seen.add(id(value))
        yield from _parts(value, seen)


def _parts(value: Any, seen: set[int]) -> Iterator[str]:
    parts: Iterable[Any] = ()
    match value:
        case type() if not is_ours(value) and not is_importable(value):
            parts = _members(value)
        case property():
            parts = (value.fget, value.fset)
        case FunctionType():
            parts = _of_function(inspect.unwrap(value))
        case CodeType():
            yield f"{value.co_code.hex()} {value.co_names} {value.co_varnames} {value.co_freevars}"
            parts = value.co_consts
        case list():
            parts = value
        case set() | frozenset():
            parts = sorted(map(repr, value))
        case dict():
            parts = value.items()
    for part in parts:
        yield from _written(part, seen)


def _members(component: type[Any]) -> Iterator[Any]:
    """Yield the names and values that a class defines, without what Python adds to it."""
    for name in sorted(vars(component)):
        value = vars(component)[name]
        if not name.startswith("__") or isinstance(value, FunctionType):
            yield from (name, value)


def _of_function(function: Any) -> Iterator[Any]:
    """Yield the code of a function, its defaults and those names of its own program that it refers to."""
    yield from (function.__code__, function.__defaults__, function.__kwdefaults__)
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # an empty one
            yield cell.cell_contents
    known = function.__globals__
    named = [known[name] for name in function.__code__.co_names if name in known]
    yield from (value for value in named if getattr(value, "__module__", "__main__") == "__main__")
