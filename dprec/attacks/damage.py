"""Damage: liars make what honest users are shown worse, whatever it is that they are shown.

They claim to have rated as many items as the most active users, drawn by popularity, and each of them as its
raters do not: lowest where its mean is above that of all ratings, and highest where it is below.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from dprec.attacks.base import Attack, Attacked, Figure, Game
from dprec.attacks.liars import FakeProfiles, Liars, number_of_liars
from dprec.components import option
from dprec.randomness import generator

_METRICS = {"damage_rmse": ("rmse", 1.0), "damage_ndcg": ("ndcg_at_10", -1.0)}
"""Of each figure, the metric that is damaged, and the way in which it gets worse."""


@dataclass(frozen=True, kw_only=True)
class Damage(Attack):
    """Liars rate many items as their raters do not."""

    kind: Literal["damage"] = "damage"
    papers: ClassVar[tuple[str, ...]] = ("cao2021",)
    named: ClassVar[tuple[str, ...]] = tuple(_METRICS)
    share: float = option("Share of all users who lie.", 0.05, gt=0, lt=0.5)
    reports: Literal["honest", "crafted"] = option(
        "Whether devices draw what they report of these profiles, or liars choose it.", "crafted"
    )

    def perform(self, game: Game) -> Attacked:
        """Run the protocol once more, with the liars, and compare how good it is for honest users."""
        honest, draws = game.truth, generator(game.seed, "damaging profiles")
        number = number_of_liars(honest.n_users, self.share)
        lies = FakeProfiles(honest, np.zeros(0, dtype=np.int64), 1, "reversed")
        profiles = lies.made(number, draws)
        lied = game.with_liars(Liars(profiles, crafted=self.reports == "crafted"))
        figures = {}
        for name, (metric, side) in _METRICS.items():
            was, became = game.shown.accuracy.get(metric), lied.accuracy.get(metric)
            worse = None if was is None or became is None else side * (became - was)
            figures[name] = Figure(worse, 0.0)
        return Attacked(figures, (f"{number} liars beside {honest.n_users} honest users.",))
