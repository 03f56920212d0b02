"""User-defined components: how they are named, found and checked, which code they have, how they travel.

A configuration names one as ``module:Class``, and so runs the code of that module when it is read. Only
whoever starts a run, or installs a device, names classes: a request to a device never does.

Of a module, the whole file counts, so that what its classes call counts too. A class of a notebook or script
has no file of its own: its functions count as they are compiled, with what they refer to there. Other
modules that either imports do not count.

A class of a module travels by its name, together with the folders that this process imports from; a class
of a notebook or script, which no other process can import, travels as its code.
"""

import dataclasses
import hashlib
import importlib
import inspect
import os
import pickle
import platform
import re
import sys
import traceback
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from difflib import get_close_matches
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeVar, cast

from dprec.components.raised import OF_PYTHON, CodeError
from dprec.errors import InputError, RunError, SettingError, listed, one_line, shown, with_kind
from dprec.start import PACKAGES

ClassT = TypeVar("ClassT")

_REFERENCE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.([^\W\d]\w*|<locals>))*")

_NAMEABLE: ContextVar[Collection[str] | None] = ContextVar("nameable", default=None)
"""The classes that may be named; None for all."""

_BY_INSTANCE = "module:Class of a file, at its top level; or, from Python, an instance of the class"


def is_ours(component: type[Any]) -> bool:
    """Return whether a class belongs to this distribution."""
    return component.__module__.partition(".")[0] in PACKAGES


def reference_of(component: type[Any]) -> str:
    """Return ``module:Class``, by which a configuration names a class."""
    return f"{component.__module__}:{component.__qualname__}"


@contextmanager
def naming(component: object, accepted: str) -> Iterator[None]:
    """Say in one line what the code of a user-defined class has raised, and where, and name the class.

    ``accepted``: what the class is to return; told where what it returned has upset code of ours. What a
    component of this distribution raises is a defect, and passes as it is.
    """
    try:
        yield
    except (InputError, RunError, MemoryError):
        raise
    except Exception as error:
        if is_ours(type(component)):
            raise
        code = CodeError.of(error)
        raises_nothing = "code that raises no exception" if code.own else accepted
        raise InputError(reference_of(type(component)), code.line, raises_nothing) from code


def declares_kind(component: type[Any]) -> bool:
    """Return whether a user-defined class, or a user-defined base of it, gives itself a kind."""
    return any("kind" in inspect.get_annotations(base) for base in component.__mro__ if not is_ours(base))


def redefined(component: type[Any]) -> frozenset[str]:
    """Return what of this distribution's classes a user-defined class defines anew, beside settings."""
    settings = {field.name for field in dataclasses.fields(component)}
    ours = {name for base in component.__mro__ if is_ours(base) for name in vars(base)}
    defined = {name for base in outside(component) for name in vars(base)}
    return frozenset(name for name in defined & ours - settings if not name.startswith(("__", "_abc_")))


def outside(component: type[Any]) -> list[type[Any]]:
    """Return the classes that a class is derived from, itself included, which are not ours or Python's."""
    return [
        base
        for base in component.__mro__
        if not is_ours(base) and base.__module__.partition(".")[0] not in OF_PYTHON
    ]


def is_importable(component: type[Any]) -> bool:
    """Return whether another process can import a class by its name."""
    module = sys.modules.get(component.__module__)
    return component.__module__ != "__main__" and _attribute(module, component.__qualname__) is component


@contextmanager
def importing_only(references: Collection[str]) -> Iterator[None]:
    """Let what is read here name some user-defined classes, and no others; no other module is imported."""
    token = _NAMEABLE.set(references)
    try:
        yield
    finally:
        _NAMEABLE.reset(token)


def imported(reference: str, base: type[ClassT]) -> type[ClassT]:
    """Import a class ``module:Class`` from the current directory or the environment.

    Raises SettingError under "kind" when there is none derived from ``base``, or the module raises.
    """
    nameable = _NAMEABLE.get()
    if nameable is not None and reference not in nameable:
        found = f"{shown(reference)!r}, a class that was not named when this run was started"
        raise SettingError("kind", found, " or ".join(["a component of dprec", *sorted(nameable)]))
    if not _REFERENCE.fullmatch(reference):
        raise SettingError("kind", repr(shown(reference)), "module:Class, such as my_module:MyClass")
    module_name, _, name = reference.partition(":")
    if "<locals>" in name:
        raise SettingError("kind", f"{reference!r}, a class that was defined inside a function", _BY_INSTANCE)
    module = _module(module_name)
    component = _attribute(module, name)
    if component is None and module_name == "__main__":
        raise SettingError("kind", f"{reference!r}, a class of a notebook or script", _BY_INSTANCE)
    derived = f"a class derived from {base.__module__}.{base.__qualname__}"
    if component is None:
        classes = [
            key
            for key, value in vars(module).items()
            if isinstance(value, type) and issubclass(value, base) and value.__module__ == module.__name__
        ]
        accepted = listed(classes, name) if classes else f"{derived}, of which it has none"
        raise SettingError("kind", f"no {name} in {module_name}", accepted)
    if not (isinstance(component, type) and issubclass(component, base)):
        raise SettingError("kind", f"{reference!r}, which is no {base.__name__}", derived)
    check_class(component, base)
    return component


def check_class(component: type[Any], base: type[Any]) -> None:
    """Raise SettingError under "kind" for a class that is not complete."""
    reference = reference_of(component)
    values = {name: getattr(component, name, None) for name in dir(component)}
    missing = [
        name for name, member in values.items() if getattr(member, "__isabstractmethod__", False) is True
    ]
    if missing:
        accepted = f"a class that defines what {base.__name__} leaves open"
        raise SettingError("kind", f"{reference!r}, which does not define {', '.join(missing)}", accepted)
    hints = inspect.get_annotations(component)
    fields = [name for name, hint in hints.items() if "ClassVar" not in str(hint)]
    if fields and "__dataclass_fields__" not in component.__dict__:
        accepted = "@dataclass(frozen=True, kw_only=True) above the class"
        found = f"{reference!r}, whose settings are not read: {', '.join(fields)}"
        raise SettingError("kind", found, accepted)


def _module(name: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path and "" not in sys.path:
        sys.path.insert(0, here)
    importlib.invalidate_caches()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and f"{name}.".startswith(f"{error.name}."):
            nearest = get_close_matches(name, [path.stem for path in Path(here).glob("*.py")], n=1)
            meant = f"; did you mean {nearest[0]}?" if nearest else ""
            accepted = f"a module in {here}, in PYTHONPATH or installed here{meant}"
            raise SettingError("kind", f"no module {error.name!r}", accepted) from None
        raise _raised(name, error) from None
    except (KeyboardInterrupt, MemoryError):
        raise
    except BaseException as error:  # A module can exit, or raise anything.
        raise _raised(name, error) from None


def _raised(name: str, error: BaseException) -> SettingError:
    """Return the error for a module that cannot be imported, with its own reason and line."""
    place = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        if frame.f_globals.get("__name__") == name:
            place = f" ({Path(frame.f_code.co_filename).name}, line {line})"
    found = f"{name}, whose import raised {with_kind(error)}{place}"
    return SettingError("kind", found, "a module that can be imported")


def _attribute(module: ModuleType | None, name: str) -> Any:
    value: Any = module
    for part in name.split("."):
        try:
            value = getattr(value, part, None)
        except Exception:  # A module can define __getattr__.
            return None
    return value


def imported_function(reference: str) -> Callable[..., Any]:
    """Import a function ``module:function``; raises SettingError, without a key, when that fails."""
    if not _REFERENCE.fullmatch(reference) or "<locals>" in reference:
        raise SettingError("", repr(shown(reference)), "module:function, such as my_module:my_function")
    module_name, _, name = reference.partition(":")
    if module_name == "__main__":
        accepted = "module:function of a file, which other processes can import"
        raise SettingError("", f"{reference!r}, a function of a notebook or script", accepted)
    try:
        function = _attribute(_module(module_name), name)
    except SettingError as error:
        raise SettingError("", error.found, error.accepted) from None
    if not callable(function) or isinstance(function, type):
        found = f"no function {name} in {module_name}"
        raise SettingError("", found, "a function of the module")
    return cast("Callable[..., Any]", function)


_DIGITS = 16

_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def sources_of(components: Iterable[type[Any]]) -> dict[str, str]:
    """Return 16 digits of the code of each user-defined class and its bases, by ``module:Class``."""
    digests = {}
    for component in components:
        digest = hashlib.sha256()
        for base in outside(component):
            file = getattr(sys.modules.get(base.__module__), "__file__", None)
            if file is not None and file.endswith(".py") and is_importable(base):
                code = Path(file).read_bytes()
            else:
                code = "\n".join(_code(base, set())).encode()
            digest.update(base.__qualname__.encode() + b"\0" + hashlib.sha256(code).digest())
        digests[reference_of(component)] = digest.hexdigest()[:_DIGITS]
    return digests


def sources_of_functions(references: Iterable[str]) -> dict[str, str]:
    """Return a digest of the file of each function, by its ``module:function``."""
    files = {reference: inspect.getsourcefile(imported_function(reference)) for reference in references}
    return {
        reference: hashlib.sha256(b"" if file is None else Path(file).read_bytes()).hexdigest()[:_DIGITS]
        for reference, file in files.items()
    }


def _code(value: Any, visited: set[int]) -> Iterator[str]:
    """Write what a value consists of, the same in every process."""
    value = value.__func__ if isinstance(value, staticmethod | classmethod) else value
    if isinstance(value, _PLAIN):
        yield repr(value)
        return
    if not isinstance(value, tuple | frozenset):  # which processes share differently
        if id(value) in visited:
            return
        visited.add(id(value))
    parts: Any = ()
    match value:
        case tuple() | list():
            parts = value
        case set() | frozenset():
            parts = sorted(map(repr, value))
        case dict():
            parts = value.items()
        case property():
            parts = (value.fget, value.fset)
        case type() if not is_ours(value) and not is_importable(value):
            # What it defines, without what Python adds to it.
            for name in sorted(vars(value)):
                member = vars(value)[name]
                is_method = isinstance(member, FunctionType) and member.__module__ not in OF_PYTHON
                parts += (name, member) if is_method or not name.startswith("__") else ()
        case FunctionType():
            parts = _of_function(inspect.unwrap(value))
        case CodeType():
            yield f"{value.co_code.hex()} {value.co_names} {value.co_varnames} {value.co_freevars}"
            parts = value.co_consts
    for part in parts:
        yield from _code(part, visited)


def _of_function(function: Any) -> Iterator[Any]:
    """Yield the code of a function, its defaults and those names of its own program that it refers to."""
    yield from (function.__code__, function.__defaults__, function.__kwdefaults__)
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # an empty one
            yield cell.cell_contents
    global_names = function.__globals__
    named = [global_names[name] for name in function.__code__.co_names if name in global_names]
    yield from (value for value in named if getattr(value, "__module__", "__main__") == "__main__")


def import_folders() -> tuple[str, ...]:
    """Return the folders that this process imports from."""
    return tuple(os.path.abspath(folder) for folder in sys.path)


def import_from(folders: Iterable[str]) -> None:
    """Import from more folders, after those that this process imports from already."""
    already = set(import_folders())
    sys.path.extend(folder for folder in folders if folder not in already)


def packed(value: object, what: str) -> bytes:
    """Return an object as bytes; raises InputError for what cannot travel, such as an open file."""
    import cloudpickle

    try:
        code = cloudpickle.dumps(value)
    except Exception as error:  # what a class refuses with is its own choice
        found = f"cannot be sent to workers ({one_line(error)})"
        raise InputError(what, found, "values that can be pickled") from None
    return pickle.dumps((import_folders(), code))


def unpacked(data: bytes, what: str) -> Any:
    """Return what `packed` was given, by bytes that are trusted; raises InputError without its class."""
    folders, code = pickle.loads(data)
    import_from(folders)
    try:
        return pickle.loads(code)
    except (ImportError, AttributeError) as error:
        accepted = "a module that every node can import, or a class of the notebook itself"
        raise InputError(what, f"cannot be imported on {platform.node()}: {error}", accepted) from None
