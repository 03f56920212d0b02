"""Private recommendation: mechanisms, completion, the protocols' arithmetic and their ledgers.

Plain NumPy and SciPy, usable from a notebook: nothing in this package depends on Flower or Ray.
"""

from dprec.errors import InputError, RunError, SettingError

__all__ = ["InputError", "RunError", "SettingError", "__version__"]

__version__ = "0.1.0"
