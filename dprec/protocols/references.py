"""Lists by sets that a trusted server receives: what protocols of lists are held against."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from dprec.accounting import Guarantee, PrivacyAccountant
from dprec.arrays import Bools, Floats, Ints
from dprec.attacks import Broadcast
from dprec.components import option
from dprec.lists import ease, ials
from dprec.mechanisms import SetOnly
from dprec.progress import Progress
from dprec.protocols.base import Facts, Predicted, Protocol, Public, Sent
from dprec.protocols.collection import CollectionProtocol
from dprec.protocols.components import FixedMechanism
from dprec.reports import ReportFamily

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

    def sent(self, public: Public, ratings: int) -> Sent:
        """Return the set."""
        size = self.family(public.scale, public.n_items).size(ratings)
        return Sent(1, None, ratings, size.bits, None, "user", "item")

    def accountant(
        self, family: ReportFamily, counts: Ints, sent: Bools, told: Ints | None = None
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
    ridge: float = option(
        "Ridge of the weights, lambda in the paper; the default is the best of six on validation items of "
        "MovieLens 100K and MSWeb (benchmarks/choosing/list_references.py).",
        300.0,
        gt=0,
    )
    ridge_users: int | None = option(
        "Users for whom the ridge is meant: of a larger or smaller population it is as much larger or "
        "smaller, so that copies change nothing; by default it is that for any number.",
        None,
        ge=1,
    )

    def learn(self, sets: sp.csr_array, seed: int, progress: Progress) -> Order:
        """Solve for the weights."""
        ridge = self.ridge * (1 if self.ridge_users is None else sets.shape[0] / self.ridge_users)
        weights = ease.ease(ease.co_occurrences(sets), ridge)
        return Order(lambda own: ease.scores(own, weights), Broadcast.of_weights(weights), {"ridge": ridge})


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
    unobserved: float = option(
        "Weight of cells about which nothing is known, beside 1 of a pair.",
        ials.ImplicitOptions.unobserved,
        gt=0,
    )
    ridge: float = option("Ridge of the factors.", ials.ImplicitOptions.ridge, gt=0)
    frequency_scaling: float = option(
        "Exponent of the pairs by which the ridge grows; 0 is one ridge, and of 1 copies of a population "
        "have the same factors.",
        ials.ImplicitOptions.frequency_scaling,
        ge=0,
    )

    def learn(self, sets: sp.csr_array, seed: int, progress: Progress) -> Order:
        """Fit the factors of items; those of users follow from their sets."""
        options = ials.ImplicitOptions(
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
        return Order(lambda own: ials.fold_in(own, factors, options, gramian) @ factors.T, learned)
