"""What a setting accepts, in words for whoever configures it.

Pydantic checks the settings, both those read from a file and those of objects built in Python. This
module rephrases its errors, by their type and the limits that they carry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

MAPPING = "a mapping of keys to values"

ACCEPTED = {
    "bool_type": "true or false",
    "dataclass_exact_type": "an instance of {class_name}",
    "dataclass_type": MAPPING,
    "dict_type": MAPPING,
    "finite_number": "a finite number",
    "float_type": "a number",
    "greater_than": "greater than {gt}",
    "greater_than_equal": "at least {ge}",
    "int_type": "an integer",
    "is_instance_of": "an instance of {class}",
    "json_invalid": "JSON",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "list_type": "a list",
    "literal_error": "{expected}",
    "model_attributes_type": MAPPING,
    "model_type": MAPPING,
    "string_pattern_mismatch": "text that matches '{pattern}'",
    "string_too_long": "at most {max_length} character{plural}",
    "string_too_short": "at least {min_length} character{plural}",
    "string_type": "text",
    "too_long": "at most {max_length} item{plural}",
    "too_short": "at least {min_length} item{plural}",
    "tuple_type": "a list",
}
"""What is accepted, by the type of pydantic's error; names in braces come from the error's context."""

_LONGEST_SHOWN = 80


def accepted_by(error: ErrorDetails) -> str:
    """Return what would have been accepted instead of the input of a pydantic error."""
    if error["type"] not in ACCEPTED:
        # None of this project's fields cause such an error, but a field of somebody else's class may.
        return error["msg"]
    context: Mapping[str, Any] = error.get("ctx", {})
    length = context.get("min_length", context.get("max_length"))
    words = {name: _number(value) for name, value in context.items()}
    return ACCEPTED[error["type"]].format(**words, plural="" if length == 1 else "s")


def shown(text: str) -> str:
    """Return a value for a message, cut off if it is long."""
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."


def listed(names: Sequence[str], given: object) -> str:
    """Return the accepted names, with the one that is most similar to the given name, if any."""
    nearest = get_close_matches(str(given), names, n=1)
    meant = f"; did you mean {nearest[0]}?" if nearest else ""
    return ", ".join(names) + meant


def _number(value: Any) -> Any:
    """Return an integer without decimal places; anything else as it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value
