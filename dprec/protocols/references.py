"""Lists by sets that a trusted server receives: what protocols of lists are held against."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from dprec.accounting import Guarantee, PrivacyAccountant
from dprec.arrays import Bools, Floats, Ints
from dprec.attacks import Broadcast
from dprec.components import option
from dprec.lists import ials
from dprec.lists.ease import LARGEST, PopularWeights, ridge_of
from dprec.mechanisms import SetOnly
from dprec.progress import Progress
from dprec.protocols.base import Facts, Predicted, Protocol, Public
from dprec.protocols.collection import CollectionProtocol
from dprec.protocols.components import FixedMechanism
from dprec.reports import ReportFamily, ReportSize

if TYPE_CHECKING:
    import scipy.sparse as sp


_SETS = SetOnly()
"""Of devices that send which items they hold."""


@dataclass(frozen=True, eq=False)
class Order:
    """What orders items for any set of them."""

    scores: Callable[[sp.csr_array], Floats]
    """From sets, shape (users, items), to scores of all items, of the same shape."""
    learned: Broadcast
    """The same as devices would hold it."""
    diagnostics: dict[str, Any] = field(default_factory=dict)
    """JSON values about what was learned."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ClearSetsProtocol(CollectionProtocol):
    """Base of the references without privacy: devices send their sets, and a trusted server orders items."""

    predicted: ClassVar[Predicted] = "lists"
    folds_in: ClassVar[bool] = True
    mechanism: FixedMechanism = _SETS

    @abstractmethod
    def learn(self, sets: sp.csr_array, seed: int, progress: Progress) -> Order:
        """Return what orders items, from the sets that arrived, shape (users, items)."""

    @property
    def facts(self) -> Facts:
        """Nothing protects users."""
        return self.facts_of(private=False, protects="none")

    def audited(self) -> Protocol:
        """Refuse: nothing is protected; see `Protocol.audited`."""
        return Protocol.audited(self)

    def guarantee(self, shape: tuple[int, int]) -> Guarantee:
        """Promise nothing: the server receives the sets."""
        return Guarantee("none", "central", False, "the server receives every user's set of items.")

    def sent(self, public: Public, ratings: int) -> ReportSize:
        """Return the set."""
        size = self.family(public.scale, public.n_items).size(ratings)
        return replace(size, symbols=None, answers=ratings, of="item")

    def accountant(
        self, family: ReportFamily, counts: Ints, sent: Bools, loss_inputs: Ints | None = None
    ) -> PrivacyAccountant:
        """Return the account of the users whose set arrived: nothing bounds what they lost."""
        accountant = PrivacyAccountant(rated=counts > 0)
        accountant.step(1, sent, math.inf, math.inf)
        return accountant


@dataclass(frozen=True, kw_only=True)
class EaseProtocol(ClearSetsProtocol):
    """EASE: weights between all pairs of items, in closed form."""

    kind: Literal["ease"] = "ease"
    papers: ClassVar[tuple[str, ...]] = ("steck2019",)
    ridge: float | None = option(
        "Ridge of the weights, lambda in the paper; by default six times the mean size of a set.", None, gt=0
    )
    ridge_users: int | None = option(
        "Users for whom the ridge is meant: of a larger or smaller population it is as much larger or "
        "smaller, so that copies change nothing; by default it is that for any number.",
        None,
        ge=1,
    )

    most_items: int = option(
        "Items between which there are weights, at most: the most popular ones; all others stand below "
        "these, by popularity. So many take 1.8 GB, twice as many four times that and eight times as long.",
        15_000,
        ge=1,
        le=LARGEST,
    )

    def learn(self, sets: sp.csr_array, seed: int, progress: Progress) -> Order:
        """Solve for the weights."""
        base_ridge = ridge_of(sets) if self.ridge is None else self.ridge
        ridge = base_ridge * (1 if self.ridge_users is None else sets.shape[0] / self.ridge_users)
        popular = PopularWeights.of(sets, ridge, self.most_items)
        learned = Broadcast.of_weights(popular.weights, popular.items)
        return Order(popular.scores, learned, {"ridge": ridge}, self._left_out(popular))

    def model_bytes(self, public: Public) -> float:
        """Return the size of the weights."""
        return 8.0 * min(public.n_items, self.most_items) ** 2

    def _left_out(self, popular: PopularWeights) -> tuple[str, ...]:
        """Say which items have no weights, and what they would need."""
        n_weighted, n_items = popular.items.size, popular.counts.size
        if n_weighted == n_items:
            return ()
        share = popular.counts[popular.items].sum() / popular.counts.sum()
        return (
            f"Weights are between the {n_weighted:,} most popular of {n_items:,} items, which have "
            f"{share:.1%} of all pairs; the others stand below these by popularity. Weights between all "
            f"would take {8 * n_items**2 / 2**30:.1f} GiB (protocol.most_items).",
        )


@dataclass(frozen=True, kw_only=True)
class IalsProtocol(ClearSetsProtocol):
    """iALS: factors of implicit data by alternating least squares."""

    kind: Literal["ials"] = "ials"
    papers: ClassVar[tuple[str, ...]] = ("hu2008", "rendle2022", "takacs2011")
    rank: int = option("Number of factors.", ials.ImplicitOptions.rank, ge=1, le=4096)
    sweeps: int = option("Passes over users and items.", ials.ImplicitOptions.sweeps, ge=1, le=10_000)
    steps: int = option(
        "Steps of conjugate gradients that each pass takes, from the factors of the pass before; as many as "
        "the rank solve for them.",
        ials.ImplicitOptions.steps,
        ge=1,
        le=4096,
    )
    unobserved: float | None = option(
        "Weight of cells about which nothing is known, beside 1 of a pair; by default all such cells have "
        "eight times the weight of all pairs.",
        None,
        gt=0,
    )
    ridge: float | None = option(
        "Ridge of the factors; by default .2 (n^2 d)^(-1/6) for n items a set and d in all.", None, gt=0
    )
    frequency_scaling: float = option(
        "Exponent of the pairs by which the ridge grows; 0 is one ridge, and of 1 copies of a population "
        "have the same factors.",
        ials.ImplicitOptions.frequency_scaling,
        ge=0,
    )

    def learn(self, sets: sp.csr_array, seed: int, progress: Progress) -> Order:
        """Fit the factors of items; those of users follow from their sets."""
        options = ials.ImplicitOptions.of(
            sets,
            rank=self.rank,
            sweeps=self.sweeps,
            steps=self.steps,
            unobserved=self.unobserved,
            ridge=self.ridge,
            frequency_scaling=self.frequency_scaling,
            seed=seed,
        )
        factors = ials.ials(sets, options, progress)
        learned, gramian = Broadcast.of_products(factors), factors.T @ factors
        return Order(
            lambda new_sets: ials.fold_in(new_sets, factors, options, gramian) @ factors.T,
            learned,
            {"unobserved": options.unobserved, "ridge": options.ridge},
        )

    def model_bytes(self, public: Public) -> float:
        """Return the size of the factors of a half sweep: of both sides twice, and once more of one."""
        sides = public.n_users, public.n_items
        return 8.0 * self.rank * (2 * sum(sides) + max(sides))
