"""Private recommendation: mechanisms, completion, protocols' arithmetic and their ledgers.

Plain NumPy and SciPy, usable from a notebook: nothing in this package knows Flower or Ray.
"""

__version__ = "0.1.0"
