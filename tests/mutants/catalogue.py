"""The catalogue of mutants: planted mistakes of a few lines, each with what is there to catch it."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.paths import ROOT

FOLDER = Path(__file__).parent


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
    """

    name: str
    mistake: str
    file: str
    text: str
    instead: str
    caught_by: tuple[str, ...] = ()

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
    entries = tomllib.loads((FOLDER / file).read_text(encoding="utf-8"))
    return [_mutant(name, entry) for name, entry in entries.items()]


def _mutant(name: str, entry: Mapping[str, object]) -> Mutant:
    values = {key: tuple(value) if isinstance(value, list) else value for key, value in entry.items()}
    return Mutant(name=name, **values)  # type: ignore[arg-type]


def every_mutant() -> list[Mutant]:
    """Return all mutants that must be caught: those that leak, and those that falsify figures."""
    return read_catalogue("leaks.toml") + read_catalogue("figures.toml")
