"""What is installed on devices before a run starts: one frozen class per protocol.

A device takes its budget, its mechanism and the number of rounds from here and never from a request,
so its guarantee holds against any server. A setup is stored as JSON and checked when it is read.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self, TypeVar

from dprec.components import Options, as_values, parse_json
from dprec.errors import InputError, SettingError
from dprec.randomness.first_draws import first_names
from dprec.ratings import Ratings, RatingScale
from dprec.reports import ReportFamily
from dprec.sent_symbols import SentSymbols


@dataclass(frozen=True, kw_only=True)
class Setup(Options):
    """Base of the setups, identified by kind."""

    kind: str = ""

    @property
    def drawn_by(self) -> str:
        """What random words are keyed by, as text."""
        return json.dumps(first_names(as_values(self)))

    @property
    def hides_rated_items(self) -> bool:
        """Whether what devices send hides which items are rated."""
        return False

    @property
    def masks(self) -> bool:
        """Whether devices mask what they send, so that those of a deployment have to know each other."""
        return False

    @property
    def sends_values(self) -> bool:
        """Whether anything that devices send depends on how an item was rated."""
        return True

    @property
    def composed(self) -> tuple[float, float] | None:
        """What devices count for a whole run, as epsilon and delta, where rounds compose; else None."""
        return None

    def represented(self) -> Self:
        """Return the setup of devices that represent others besides."""
        return self

    def family(self, scale: RatingScale, n_items: int) -> ReportFamily | None:
        """Return the family of the reports that devices send once; None if they send others."""
        return None

    def sent_symbols(self, people: Ratings) -> SentSymbols | None:
        """Return what can be read in reports about some people's ratings; None if no symbols of items."""
        return None

    def exact_losses(self, people: Ratings) -> Iterator[tuple[str, int, float]]:
        """Yield what was compared, in how many entries, and the loss, computed without samples."""
        symbols = self.sent_symbols(people)
        if symbols is None:
            return
        for entries in (1, 3):
            for test, loss in symbols.exact_losses(entries):
                yield test, entries, loss


InstalledT = TypeVar("InstalledT", bound=Options)


def to_json(installed: Options) -> str:
    """Return what is installed as JSON."""
    return json.dumps(as_values(installed))


def from_json(kind: type[InstalledT], text: str, where: str) -> InstalledT:
    """Read what `to_json` returned, and check every value of it.

    Raises InputError when it is damaged; the error names the file and the first invalid key.
    """
    try:
        return parse_json(kind, text)
    except SettingError as error:
        raise InputError(f"{where}, {error.key or 'JSON'}", error.found, error.accepted) from None


def is_told_by_its_settings(installed: Options) -> bool:
    """Return whether what is installed is the same after it was written and read as JSON."""
    try:
        return from_json(type(installed), to_json(installed), "setup") == installed
    except (InputError, TypeError):  # a setting that JSON has no form for
        return False
