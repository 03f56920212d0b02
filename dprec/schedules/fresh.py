"""Fresh noise in every collection."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

from dprec.accounting import SMALLEST_DELTA, PrivacyBudget
from dprec.components import option
from dprec.randomness import even_share
from dprec.schedules.base import Schedule


@dataclass(frozen=True, kw_only=True)
class Fresh(Schedule):
    """Every collection asks about all ratings that devices hold, with fresh noise.

    The server reads all reports about a rating together; so can whoever wants to know the rating.
    """

    kind: Literal["fresh"] = "fresh"
    reads_ratings_alone: ClassVar[bool] = False
    every: int = option("Periods from one collection to the next.", 1, ge=1)
    budget: Literal["lifetime", "each"] = option(
        "Whether all collections share the epsilon of the protocol, or each of them costs it again.",
        "lifetime",
    )

    @property
    def periods_each(self) -> int:
        """Periods from one collection to the next."""
        return self.every

    def share(self, privacy: PrivacyBudget | None, collections: int) -> PrivacyBudget | None:
        """Return an even share, or the whole budget each time; delta is divided with the epsilon."""
        if privacy is None or self.budget == "each":
            return privacy
        composed = privacy.composition == "pld"
        delta = max(privacy.delta / collections, SMALLEST_DELTA) if composed else privacy.delta
        return replace(privacy, epsilon=even_share(privacy.epsilon, collections), delta=delta)

    def notes(self, collections: int) -> tuple[str, ...]:
        """Say what becomes of the epsilon."""
        if self.budget == "lifetime":
            return (
                f"Devices draw fresh noise in each of {collections} collections, which share the protocol's "
                "epsilon evenly.",
            )
        return (
            f"Devices draw fresh noise in each of {collections} collections at the protocol's whole epsilon: "
            "losses add up, and whoever averages the reports about a rating comes to know it.",
        )
