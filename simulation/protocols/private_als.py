"""Private alternating least squares: items are learned from sums over users with noise, round by round."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from dprec.accounting import Adjacency, PrivacyBudget
from dprec.completion import Guard, check_rank
from dprec.components import option
from dprec.errors import within
from dprec.private_als import (
    FactorizationOptions,
    ImplicitAls,
    ImplicitAlsOptions,
    ItemDevice,
    ItemLearner,
    PrivateAls,
)
from dprec.protocols.base import Facts, Predicted
from dprec.protocols.components import AnyAggregation
from dprec.protocols.predicting import OwnFactors
from dprec.protocols.sharing import COMPARED, GUARD
from dprec.ratings import Ratings
from dprec.sums import DeviceHalf, Learner, Releases, TrustedAggregation
from simulation.protocols.sums import SummedProtocol
from simulation.protocols.task import ServerTask, Sizes, Task


@dataclass(frozen=True, kw_only=True)
class AlsOfSums(SummedProtocol):
    """Base of the protocols of private alternating least squares."""

    papers: ClassVar[tuple[str, ...]] = ("chien2021", "krichene2023")
    privacy: PrivacyBudget | None = option(
        "What is promised for all rounds together, per user and by composition.", None
    )
    adjacency: Adjacency = option(
        COMPARED.format("twice the"),
        "add-or-remove-one",
        published="add-or-remove-one",
        source="chien2021, section 2",
    )


@dataclass(frozen=True, kw_only=True)
class PrivateAlsProtocol(AlsOfSums):
    """Users contribute to sums with Gaussian noise, from which the server solves for the items."""

    kind: Literal["dp-als"] = "dp-als"
    factorization: FactorizationOptions = option("What is learned, and from what.", FactorizationOptions())
    aggregation: AnyAggregation = option("Who adds up and adds the noise.", TrustedAggregation())
    guard: Guard | None = option(GUARD, None)

    @property
    def facts(self) -> Facts:
        """Factors, or biases alone."""
        return self.facts_of(learns="private-als" if self.factorization.rank else "private-item-effects")

    @property
    def method(self) -> PrivateAls:
        """The factorization's."""
        return PrivateAls(options=self.factorization)

    def learner(self, releases: Releases, task: ServerTask) -> ItemLearner:
        """Return the server's half, which guards lists if it is told to."""
        liars = 0 if self.guard is None else self.guard.most(releases.n_users)
        return ItemLearner(self.factorization, task.scale, task.n_items, task.server_seed, liars)

    def check(self, train: Sizes) -> None:
        """Refuse a budget and a rank that cannot be kept to."""
        super().check(train)
        with within("factorization"):
            if self.factorization.rank:
                check_rank(self.factorization.rank, (train.n_users, train.n_items))

    def notes_on(self, task: Task) -> tuple[str, ...]:
        """Say how many contribute everything."""
        train = task.train
        limit = self.factorization.ratings_per_user
        whole = int((train.counts <= limit).sum())
        return (
            f"{whole} of {train.n_users} users have at most {limit} ratings and contribute all in a round.",
        )

    def predictions_of(self, held: Ratings, learned: DeviceHalf) -> dict[str, Any]:
        """Predict cell by cell, with factors that fit each user once."""
        assert isinstance(learned, ItemDevice)
        predict, cautions = (
            OwnFactors(held, learned.item_factors, learned.ridge, learned.base),
            learned.model.cautions,
        )
        if cautions is None:
            return {"predict": predict}
        return {"predict": predict, "scores": lambda users, items: predict(users, items) - cautions[items]}

    def diagnostics_of(self, learner: Learner) -> dict[str, Any]:
        """Return how many items have factors."""
        assert isinstance(learner, ItemLearner)
        return {"items_with_factors": int(learner.learned.popular.sum())}


@dataclass(frozen=True, kw_only=True)
class ImplicitAlsProtocol(AlsOfSums):
    """Users contribute their sets to sums with Gaussian noise, from which the server solves for the items."""

    kind: Literal["dp-ials"] = "dp-ials"
    predicted: ClassVar[Predicted] = "lists"
    factorization: ImplicitAlsOptions = option("What is learned, and from what.", ImplicitAlsOptions())
    aggregation: AnyAggregation = option("Who adds up and adds the noise.", TrustedAggregation())

    @property
    def facts(self) -> Facts:
        """Factors of implicit data."""
        return self.facts_of(learns="private-implicit-als")

    @property
    def method(self) -> ImplicitAls:
        """The factorization's."""
        return ImplicitAls(options=self.factorization)
