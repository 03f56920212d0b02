"""The settings of private alternating least squares that devices and server share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from dprec.components import Options, option


@dataclass(frozen=True, kw_only=True)
class FactorizationOptions(Options):
    """How item biases and factors are learned from sums over the users.

    The rounds of Chien et al. [chien2021] with the weights of Krichene et al. [krichene2023]. Item biases
    come first, from all items; factors follow, of items that are popular enough for the noise. Lengths are in
    shares of the rating scale's span, so that the same settings serve every scale.
    """

    papers: ClassVar[tuple[str, ...]] = ("chien2021", "krichene2023")
    rank: int = option("Number of factors; 0 for item biases alone.", 3, ge=0)
    bias_rounds: int = option("Rounds in which item biases are learned.", 2, ge=1, le=1000)
    factor_rounds: int = option("Rounds in which factors are learned, if there are any.", 8, ge=1, le=1000)
    bias_share: float = option(
        "Share of the squared distance of means that the rounds of item biases spend, if there are factors.",
        0.4,
        ge=1e-3,
        le=0.999,
    )
    ratings_per_user: int = option("Most ratings of a user in a round, chosen on the device.", 200, ge=1)
    sampling: Literal["uniform", "tail"] = option(
        "How a device chooses: with equal chances, or in proportion to the items' weights.", "uniform"
    )
    weights: Literal["uniform", "adaptive"] = option(
        "What a rating counts: the same for all, or its weight, with squares that sum to 1 for every user.",
        "adaptive",
    )
    exponent: float = option(
        "Power of an item's noisy count to which its weight is inversely proportional.", 0.5, ge=0, le=2
    )
    rating_clip: float = option("Largest target of the first round.", 0.5, ge=1e-3, le=1)
    residual_clip: float = option("Largest target of later rounds.", 0.3, ge=1e-3, le=1)
    matrix_share: float = option(
        "Share of a contribution's squared norm that belongs to the Gram matrices.", 0.2, ge=1e-3, le=0.999
    )
    noise: float = option("Standard deviation of a rating about its prediction.", 0.22, ge=1e-6, le=1e3)
    bias_deviation: float = option("Prior standard deviation of an item bias.", 0.1, ge=1e-6, le=1e3)
    factor_deviation: float = option(
        "Prior standard deviation of what the factors add to a prediction.", 0.25, ge=1e-6, le=1e3
    )
    level_ridge: float = option("Ratings that a user's own level is shrunk by.", 3.0, ge=1e-6, le=1e6)
    search_ridge: float = option(
        "Ratings that a user's factors are shrunk by while the items' are learned.", 30.0, ge=1e-6, le=1e6
    )
    predict_ridge: float = option(
        "Squared deviations that a user's factors are shrunk by in predictions.", 0.1, ge=1e-6, le=1e6
    )
    length: float = option(
        "Root mean square of the factors that are aimed at, before they are clipped to a norm of 1.",
        1.2,
        ge=1e-6,
        le=1e3,
    )
    popular_from: float = option(
        "Deviations of the noise that an item's count has to exceed for the item to have factors.", 6.0, ge=0
    )

    @property
    def rounds(self) -> int:
        """Number of rounds, each of them one release."""
        return self.bias_rounds + (self.factor_rounds if self.rank else 0)

    @property
    def shares(self) -> tuple[float, ...]:
        """Share of the squared distance of means that each round spends; their sum is 1."""
        if not self.rank:
            return (1 / self.bias_rounds,) * self.bias_rounds
        biases = (self.bias_share / self.bias_rounds,) * self.bias_rounds
        return biases + ((1 - self.bias_share) / self.factor_rounds,) * self.factor_rounds
