"""Data frames of pandas, which nothing here needs but who asks for one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


def data_frame(table: Any, instead: str) -> pd.DataFrame:
    """Return a table as a data frame; raises ModuleNotFoundError without pandas, naming what does instead."""
    try:
        import pandas as pd
    except ImportError:
        reason = f"to_pandas needs pandas, which is not installed: pip install pandas, or use {instead}"
        raise ModuleNotFoundError(reason, name="pandas") from None
    return pd.DataFrame(table)
