"""The formats of files that outlive a process: counted, so that no dprec misreads what another one wrote.

A file says the number of its format (`schema`) and the version of dprec that wrote it (`dprec`). One of
another format is refused in one line, which names the version that reads it: the one that wrote it. A file
that says no number, such as one that its owner has written, is of the present format.

A number is raised by one, in the same commit, when a key is removed or changes its meaning, or when what is
written now would be misread before. A new key that may be absent raises nothing. Files that another one
covers have its format.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dprec import __version__
from dprec.errors import InputError, shown

SCHEMA, WRITTEN_BY = "schema", "dprec"
"""Keys of the number of a format, and of the version of dprec that wrote a file."""


@dataclass(frozen=True)
class Format:
    """The format of a file."""

    file: str
    number: int
    """The present one."""
    of: str = ""
    """Where it is, and further files that have this format, in words."""

    @property
    def stamp(self) -> dict[str, Any]:
        """What a file in the present format says of itself."""
        return {SCHEMA: self.number, WRITTEN_BY: __version__}

    def check(self, values: Mapping[str, Any], where: str) -> None:
        """Refuse the contents of a file of another format.

        ``where``: the file. Raises InputError naming the version of dprec that reads it.
        """
        found = values.get(SCHEMA, self.number)
        if found == self.number and not isinstance(found, bool):
            return
        if not isinstance(found, int) or isinstance(found, bool):
            raise InputError(f"{where}: {SCHEMA}", shown(json.dumps(found, default=str)), f"{self.number}")
        writer = _writer(values)
        wrote = f"format {found}" + (f", written by dprec {writer}" if writer else "")
        other = "a later version" if found > self.number else "an earlier version"
        reader = other if writer in (None, __version__) else f"dprec {writer}"
        accepted = f"format {self.number}, of dprec {__version__}; what reads format {found} is {reader}"
        raise InputError(where, wrote, accepted)

    def checked(self, text: str, where: str) -> str:
        """Return the text of a JSON object, unless it is of another format.

        What is no JSON object is returned as well: its reader says what is wrong with it. Raises InputError.
        """
        self._values(text, where)
        return text

    def body(self, text: str, where: str) -> str:
        """Return the text of a JSON object without what it says of itself; otherwise like `checked`."""
        values = self._values(text, where)
        if not values.keys() & self.stamp.keys():
            return text
        return json.dumps({key: value for key, value in values.items() if key not in self.stamp})

    def stamped(self, text: str) -> str:
        """Return the text of a JSON object with what it says of itself."""
        return json.dumps({**self.stamp, **json.loads(text)})

    def _values(self, text: str, where: str) -> dict[str, Any]:
        try:
            values = json.loads(text)
        except (ValueError, RecursionError):
            return {}
        if not isinstance(values, dict):
            return {}
        self.check(values, where)
        return values


def _writer(values: Mapping[str, Any]) -> str | None:
    """Return the version of dprec that wrote a file, where it says so."""
    surroundings = values.get("environment")
    known = values.get(WRITTEN_BY) or (surroundings.get("dprec") if isinstance(surroundings, dict) else None)
    return shown(known) if isinstance(known, str) else None


SUMMARY = Format("summary.json", 2, "a run directory, and the files whose SHA-256 it lists")
ATTACKS = Format("attack.json", 1, "a run directory")
CHECKPOINT = Format("checkpoint.npz", 1, "an unfinished run directory")
AUDIT = Format("audit.json", 2, "the directory of an audit")
TABLES = Format("tables.json", 1, "a comparison directory, and the tables whose SHA-256 it lists")
TRIALS = Format("trials.json", 1, "the directory of a tuning")
SHARDS = Format("ratings.json", 1, "the directory of a population, with its shards")

FORMATS = (SUMMARY, ATTACKS, CHECKPOINT, AUDIT, TABLES, TRIALS, SHARDS)
"""All that there are."""
