"""Text files, and JSON that must fit a model, read with one-line errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from dprec.errors import InputError

FROM_RUN = "a file that `dprec run` wrote"

_LONGEST_SHOWN = 80


class Document(BaseModel):
    """A JSON object, or part of one, with known keys and types."""

    model_config = ConfigDict(
        frozen=True, strict=True, extra="forbid", allow_inf_nan=False, populate_by_name=True
    )


DocumentT = TypeVar("DocumentT", bound=Document)


def read_text(path: Path, accepted: str = FROM_RUN) -> str:
    """Read a text file.

    Raises
    ------
    InputError
    """
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(str(path), str(error.strerror), accepted) from None
    except UnicodeDecodeError:
        raise InputError(str(path), "not UTF-8 text", accepted) from None


def parse_document(model: type[DocumentT], text: str, where: str) -> DocumentT:
    """Parse a JSON object.

    Parameters
    ----------
    where : str
        The file, and the line if the file holds several objects.

    Raises
    ------
    InputError
        Naming the first key that is missing, unknown or of another type.
    """
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
    kind, context = first["type"], first.get("ctx", {})
    if kind == "json_invalid":
        raise InputError(where, str(context["error"]), "a JSON object")
    key = f"{where}: {'.'.join(map(str, first['loc']))}" if first["loc"] else where
    if kind == "missing":
        raise InputError(key, "missing", "the key, as `dprec run` writes it")
    if kind == "extra_forbidden":
        raise InputError(key, "an unknown key", "the keys that `dprec run` writes")
    accepted = _ACCEPTED[kind].format(**context) if kind in _ACCEPTED else first["msg"]
    raise InputError(key, _shown(first["input"]), accepted)


_ACCEPTED = {
    "bool_type": "true or false",
    "dict_type": "a mapping",
    "float_type": "a number",
    "finite_number": "a finite number",
    "greater_than_equal": "at least {ge}",
    "int_type": "an integer",
    "literal_error": "{expected}",
    "model_type": "a JSON object",
    "string_type": "text",
    "tuple_type": "a list",
    "too_short": "a list of at least {min_length}",
}
"""What is accepted, by pydantic's type of error."""


def _shown(value: Any) -> str:
    """Return a value as JSON, shortened if it is long."""
    text = json.dumps(value)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}..."
