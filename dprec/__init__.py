"""Private recommendation: mechanisms, completion, the protocols' arithmetic and their ledgers.

Plain NumPy and SciPy, usable from a notebook: nothing in this package depends on Flower or Ray.
"""

from typing import TYPE_CHECKING, Any

from dprec.errors import InputError, RunError, SettingError

__all__ = ["InputError", "RunError", "SettingError", "__version__"]

__version__ = "0.1.0"

if not TYPE_CHECKING:  # for a type checker, every name would exist

    def __getattr__(name: str) -> Any:
        """Say where the verbs are: this package does not know the simulation."""
        if name in ("RunConfig", "attack", "audit", "compare", "diff", "load", "ls", "plot", "run", "tune"):
            # No AttributeError: of that, "from dprec import run" would not show the text.
            raise ImportError(f"dprec holds the mathematics alone; use: from simulation import {name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
