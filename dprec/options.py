"""What is configured: frozen dataclasses whose fields carry their own bounds and descriptions.

A mechanism, a completion or a data set declares its settings once, here in plain Python. The bounds
hold when the object is built in a notebook, and the configuration files validate against the same
metadata (pydantic reads `ge`, `gt`, `le`, `lt` and `description` from it), so no default and no
bound is written twice.
"""

from __future__ import annotations

import dataclasses
import math
import operator
from typing import Any, ClassVar

from dprec.errors import SettingError

_BOUNDS = {
    "gt": (operator.gt, "greater than"),
    "ge": (operator.ge, "at least"),
    "lt": (operator.lt, "less than"),
    "le": (operator.le, "at most"),
}


def option(description: str, default: Any = dataclasses.MISSING, **bounds: float) -> Any:
    """Declare a field of an `Options` class.

    Parameters
    ----------
    description : str
        What the setting means, its unit and range; shown by editors through the JSON Schema.
    default : optional
        Its default. A field without one must be given.
    **bounds : float
        Any of ``gt``, ``ge``, ``lt``, ``le``.
    """
    unknown = set(bounds) - set(_BOUNDS)
    if unknown:
        raise TypeError(f"unknown bounds {sorted(unknown)}; accepted: {sorted(_BOUNDS)}")
    return dataclasses.field(default=default, metadata={"description": description, **bounds})


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
    """Base of everything that is configured; a subclass adds ``kind`` and its own fields."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {
        "extra": "forbid",
        "strict": True,
        "allow_inf_nan": False,
    }

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int | float):
                continue
            # Whole numbers are finite, and the largest of them do not fit into a float.
            if isinstance(value, float) and not math.isfinite(value):
                raise SettingError(field.name, repr(value), "a finite number")
            for name, (holds, words) in _BOUNDS.items():
                bound = field.metadata.get(name)
                if bound is not None and not holds(value, bound):
                    raise SettingError(field.name, repr(value), f"{words} {bound:g}")
