"""The number of the formats of files that outlive a process, so that no dprec misreads another one's.

It is raised by one, in the same commit, when a key is removed or changes its meaning in any file, or when
what is written now would be misread before. A file that says no number, such as one that its owner has
written, is of the present format.
"""

import json
from collections.abc import Mapping
from typing import Any

from dprec import __version__
from dprec.errors import InputError, shown

NUMBER = 4

SCHEMA, WRITTEN_BY = "schema", "dprec"
"""Keys of the number, and of the version of dprec that wrote a file."""

STAMP: dict[str, Any] = {SCHEMA: NUMBER, WRITTEN_BY: __version__}
"""What a file says of itself."""


def check(values: Mapping[str, Any], where: str) -> None:
    """Refuse the contents of a file of another format.

    ``where``: the file. Raises InputError.
    """
    found = values.get(SCHEMA, NUMBER)
    if found != NUMBER or isinstance(found, bool):
        number = shown(json.dumps(found, default=str))
        raise InputError(f"{where}: {SCHEMA}", number, f"{NUMBER}, of dprec {__version__}")


def body(text: str, where: str) -> str:
    """Return the text of a JSON object without what it says of itself.

    What is no JSON object is returned as it is: its reader says what is wrong with it. Raises InputError for
    another format.
    """
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not isinstance(values, dict) or not values.keys() & STAMP.keys():
        return text
    check(values, where)
    return json.dumps({key: value for key, value in values.items() if key not in STAMP})


def stamped(text: str) -> str:
    """Return the text of a JSON object with what it says of itself."""
    return json.dumps({**STAMP, **json.loads(text)})
