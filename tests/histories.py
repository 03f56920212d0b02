"""Ratings whose periods, and what becomes of them, are written down, for runs in the course of time."""

from dataclasses import dataclass, replace

import numpy as np

from dprec.components import option
from dprec.datasets import Dataset
from dprec.ratings import Ratings
from tests.make import STARS

DAY = 86_400.0


@dataclass(frozen=True, kw_only=True)
class Histories(Dataset):
    """Users who have the same ratings, beside one who rates an item of its own every day, or on some days."""

    cells: tuple[tuple[int, int, int], ...] = option("Item, day and level of each rating.")
    again: tuple[tuple[int, int, int], ...] = option("Those that are changed: item, day and level.", ())
    users: int = option("How many have them.", 1)
    days: int = option("Days, a period each.", 4)
    idle: tuple[int, ...] = option("Days on which that one does not rate.", ())

    def load(self) -> Ratings:
        return self.load_timed()

    def load_timed(self) -> Ratings:
        items = max([item for item, _, _ in self.cells], default=0) + 1
        own = [
            (self.users, items + day, day, 1 + day % 5) for day in range(self.days) if day not in self.idle
        ]
        return self._of([*self._everybody(self.cells), *own])

    def load_changes(self) -> Ratings | None:
        return self._of(self._everybody(self.again)) if self.again else None

    def _everybody(self, cells: tuple[tuple[int, int, int], ...]) -> list[tuple[int, int, int, int]]:
        return [(user, *cell) for user in range(self.users) for cell in cells]

    def _of(self, rows: list[tuple[int, int, int, int]]) -> Ratings:
        users, items, days, levels = (np.array(column) for column in zip(*rows, strict=True))
        catalogue = max([item for item, _, _ in self.cells], default=0) + 1 + self.days
        made = Ratings.from_triples(
            users,
            items,
            levels.astype(float),
            STARS,
            user_ids=np.arange(self.users + 1),
            item_ids=np.arange(catalogue),
        )
        order = np.lexsort((items, users))
        return replace(made, times=DAY * days[order].astype(float))
