"""Private recommendation: mechanisms, completion, the protocols' arithmetic and their ledgers.

Plain NumPy and SciPy, usable from a notebook: no module of this package depends on Flower or Ray. The verbs,
such as `run`, and `RunConfig` are those of the simulation, which is imported when the first of them is used.
"""

import sys
from importlib import import_module
from typing import Any

from dprec.errors import InputError, RunError, SettingError
from dprec.start import check_packages

_OF_THE_SIMULATION = (
    *("RunConfig", "attack", "audit", "compare", "diff", "export", "load", "ls", "plot", "run", "tune"),
)
"""What `simulation` exports; their types are in `__init__.pyi`."""

__all__ = ["InputError", "RunError", "SettingError", "__version__", *_OF_THE_SIMULATION]  # noqa: PLE0604

__version__ = "0.1.0"


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    if name not in _OF_THE_SIMULATION:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if "simulation" not in sys.modules:
        # A file beside a notebook may have the name of a package.
        check_packages()
    try:
        # A string, as in the metadata of an installed script: nothing in this package imports the simulation.
        return getattr(import_module("simulation"), name)
    except ModuleNotFoundError as error:
        if error.name != "simulation":
            raise
        # No AttributeError: of that, "from dprec import run" would not show the text.
        raise ImportError(
            f"dprec.{name} needs the simulation, which is not installed; it is part of dprec"
        ) from None
