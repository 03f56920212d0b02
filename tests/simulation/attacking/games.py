"""An attack that looks at all that it is given, for tests of how attacks are run."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dprec.attacks import Attack, Attacked, Figure, Game
from dprec.components import option


@dataclass(frozen=True, kw_only=True)
class Spying(Attack):
    """Counts what was said."""

    said: ClassVar[list[Game]] = []
    """The games that were played in this process."""
    least: int = option("Reports from which on there is something to look at.", 1, ge=0)

    def figures(self) -> tuple[str, ...]:
        """Return one that is declared and two that are its own."""
        return "recovered_level", "reported", "endless"

    def perform(self, game: Game) -> Attacked:
        """Count the cells of all reports."""
        self.said.append(game)
        cells = sum(each.items.size for each in game.transcript.reports)
        seen = float(cells) if cells >= self.least else None
        figures = {"recovered_level": Figure(0.5, 0.25, 0.75), "reported": Figure(seen)}
        return Attacked(figures | {"endless": Figure(np.inf)}, ("Cells are counted.",))


SPYING = f"{__name__}:Spying"
