"""The catalogue of mutants: planted mistakes of a few lines, each with what is there to catch it."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.paths import ROOT

FOLDER = Path(__file__).parent
PILOT = tuple(ROOT.glob("pilot/tests/mutants.toml"))


@dataclass(frozen=True)
class Audited:
    """A configuration whose audit catches a mutant.

    Parameters
    ----------
    preset : str
    people : int
        Per profile.
    settings : tuple of str
        ``dotted.key=value`` replacements.
    """

    preset: str
    people: int
    settings: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join(["audit of", self.preset, *self.settings])


@dataclass(frozen=True)
class Mutant:
    """A planted mistake.

    Parameters
    ----------
    name : str
    mistake : str
        What is wrong, in one sentence.
    file : str
        Path of the module in the project.
    text, instead : str
        What stands in the module exactly once, inside a function, and what stands there instead.
    caught_by : tuple of str
        Ids of the tests that each must fail; without brackets, one of a test's parameters must.
    audit : Audited, optional
        What is audited and must be found to break its promise.
    """

    name: str
    mistake: str
    file: str
    text: str
    instead: str
    caught_by: tuple[str, ...] = ()
    audit: Audited | None = None

    @property
    def catchers(self) -> tuple[str, ...]:
        """The tests, and the audit in words."""
        return self.caught_by if self.audit is None else (*self.caught_by, str(self.audit))

    def source(self) -> str:
        """Return the module's source with the mistake in it.

        Raises
        ------
        ValueError
            When the text that is to be replaced is not there exactly once, or is replaced by itself: the
            mutant is out of date.
        """
        original = (ROOT / self.file).read_text(encoding="utf-8")
        times = original.count(self.text)
        if times != 1:
            raise ValueError(f"{self.name}: stands {times} times in {self.file}, not once: {self.text!r}")
        if self.text == self.instead:
            raise ValueError(f"{self.name}: changes nothing")
        return original.replace(self.text, self.instead)


def read_catalogue(file: str) -> list[Mutant]:
    """Return the mutants of a file beside this one."""
    return _read(FOLDER / file)


def _read(path: Path) -> list[Mutant]:
    entries = tomllib.loads(path.read_text(encoding="utf-8"))
    return [_mutant(name, entry) for name, entry in entries.items()]


def _mutant(name: str, entry: dict[str, Any]) -> Mutant:
    audited = entry.pop("audit", None)
    audit = audited and Audited(audited["preset"], audited["people"], tuple(audited.get("settings", ())))
    return Mutant(name=name, caught_by=tuple(entry.pop("caught_by")), audit=audit, **entry)


def every_mutant() -> list[Mutant]:
    """Return all mutants that must be caught."""
    ours = [FOLDER / name for name in ("leaks.toml", "guards.toml", "figures.toml")]
    return [mutant for path in (*ours, *PILOT) for mutant in _read(path)]
