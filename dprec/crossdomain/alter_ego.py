"""AlterEgos: what a user's source profile would look like in the target domain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dprec.arrays import find, offsets
from dprec.components import Options, option
from dprec.crossdomain.replacement import ReplacementDraws
from dprec.crossdomain.similarity import SimilarityKind, global_sensitivity
from dprec.errors import SettingError
from dprec.privacy.calibration import LARGEST_CELL_EPSILON


@dataclass(frozen=True, kw_only=True)
class ReplacementOptions(Options):
    """How a source item is replaced by a target item."""

    selection: Literal["private", "random", "best", "none"] = option(
        "'private': PRS over all candidates; 'random': one of the best few; 'best': the best; 'none': no "
        "AlterEgo, only the target domain.",
        "best",
    )
    epsilon: float | None = option(
        "Privacy loss of one replacement, for 'private'.", None, gt=0, le=LARGEST_CELL_EPSILON
    )
    among: int = option("How many of the best candidates 'random' draws from.", 4, ge=1)
    candidates: Literal["valued", "catalogue"] = option(
        "What PRS draws from: target items with an X-Sim value, a set that depends on the ratings, or all.",
        "valued",
        published="valued",
        source="guerraoui2017, Theorem 1",
    )
    global_sensitivity: float | None = option(
        "How far one user can move X-Sim; by default the width of the similarity's range.", None, gt=0
    )
    transfer: Literal["rating", "deviation"] = option(
        "What the replacement inherits: the rating, or its deviation from the source item's mean.",
        "rating",
        published="rating",
        source="guerraoui2017, section 4.3",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.private and self.epsilon is None:
            raise SettingError("epsilon", "none, with private selection", "a number above 0")
        if not self.private and self.epsilon is not None:
            raise SettingError(
                "epsilon", f"a budget, with selection {self.selection!r}", "selection: private"
            )

    @property
    def private(self) -> bool:
        """Whether replacements are drawn by PRS, within a budget."""
        return self.selection == "private"

    @property
    def whole_catalogue(self) -> bool:
        """Whether target items without an X-Sim value can be drawn too."""
        return self.private and self.candidates == "catalogue"

    @property
    def deviations(self) -> bool:
        """Whether replacements inherit deviations from the source items' means instead of ratings."""
        return self.transfer == "deviation"

    def sensitivity(self, kind: SimilarityKind) -> float:
        """Return GS for a similarity.

        Raises
        ------
        SettingError
            When another sensitivity is configured.
        """
        width = global_sensitivity(kind)
        if self.global_sensitivity not in (None, width):
            raise SettingError(
                "global_sensitivity",
                f"{self.global_sensitivity:g}, with {kind} similarity",
                f"{width:g}, the width of its range",
            )
        return width


@dataclass(frozen=True, eq=False)
class AlterEgos:
    """The AlterEgos of some users."""

    indptr: NDArray[np.int64]
    """Shape (users + 1,)."""
    targets: NDArray[np.int64]
    """Positions in the target domain, ascending within a user; shape (cells,)."""
    values: NDArray[np.float64]
    """Ratings, or deviations from an item's mean; shape (cells,)."""

    @classmethod
    def none(cls, n_users: int) -> AlterEgos:
        """Return empty AlterEgos."""
        return cls(np.zeros(n_users + 1, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))


def alter_egos(
    users: NDArray[np.integer],
    items: NDArray[np.integer],
    values: NDArray[np.float64],
    n_users: int,
    draws: ReplacementDraws,
    random_words: NDArray[np.uint64],
    target_start: int,
) -> AlterEgos:
    """Replace the source items of profiles by target items.

    The values of items replaced by the same target item are averaged, and a user's own ratings of target
    items take precedence over replacements (Guerraoui et al. [guerraoui2017], section 4.3).

    Parameters
    ----------
    users, items : ndarray of int, shape (ratings,)
        Of both domains, by user; users from 0.
    values : ndarray of float64, shape (ratings,)
        What a replacement inherits.
    draws : ReplacementDraws
        Items without candidates are not replaced.
    random_words : ndarray of uint64, shape (ratings,)
    target_start : int
        First item of the target domain.
    """
    places, listed = find(draws.candidates.items, items)
    replaced = np.flatnonzero(listed)
    targets = draws.draw(places[replaced], random_words[replaced])
    cells = users[replaced].astype(np.int64) * draws.n_targets + targets
    own = items.astype(np.int64) - target_start
    in_target = (own >= 0) & (own < draws.n_targets)
    rated = users[in_target].astype(np.int64) * draws.n_targets + own[in_target]
    free = ~np.isin(cells, rated)
    distinct, of_cell = np.unique(cells[free], return_inverse=True)
    sums = np.bincount(of_cell, weights=values[replaced[free]], minlength=distinct.size)
    counts = np.bincount(distinct // draws.n_targets, minlength=n_users)
    return AlterEgos(
        offsets(counts),
        distinct % draws.n_targets,
        sums / np.maximum(np.bincount(of_cell, minlength=distinct.size), 1),
    )
