"""Plant a mutant in this process: its functions run the mistake, whoever has imported them."""

import gc
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType

from tests.mutants.catalogue import Mutant
from tests.paths import ROOT


def loaded_functions() -> list[FunctionType]:
    """Return the functions of the project that are loaded, methods and properties included."""
    gc.unfreeze()  # `get_objects` leaves out what is frozen.
    root = f"{ROOT}/"
    functions = (found for found in gc.get_objects() if isinstance(found, FunctionType))
    return [function for function in functions if function.__code__.co_filename.startswith(root)]


def plant(mutant: Mutant, loaded: Iterable[FunctionType]) -> None:
    """Replace the code of the functions that the mutant changes; the file stays as it is.

    A function keeps its identity, so what others have imported, methods, properties and caches run the
    mistake without another import.

    Parameters
    ----------
    mutant : Mutant
    loaded : iterable of function
        See `loaded_functions`.

    Raises
    ------
    ValueError
        When no function that is loaded changes: the module is not imported, or the mistake stands
        outside of functions.
    """
    path = ROOT / mutant.file
    sources = (path.read_text(encoding="utf-8"), mutant.source())
    original, mutated = (_codes(compile(source, str(path), "exec")) for source in sources)
    changed = {old: new for old, new in zip(original, mutated, strict=True) if old != new}
    own = [function for function in loaded if function.__code__.co_filename == str(path)]
    planted = [function for function in own if function.__code__ in changed]
    if not planted:
        raise ValueError(f"{mutant.name}: changes no function that is loaded from {mutant.file}")
    for function in planted:
        function.__code__ = changed[function.__code__]


def _codes(code: CodeType) -> Iterator[CodeType]:
    """Yield the code objects inside of one, in the order of the source."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)
