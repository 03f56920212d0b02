"""Protocols that lists of items are held against: a random order, and sets that a trusted server receives."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse as sp

from dprec.accounting import Guarantee, MatchedBudget, PrivacyAccountant
from dprec.arrays import AnyInts, Bools, Floats
from dprec.attacks import Broadcast
from dprec.completion import ItemAverage
from dprec.components import option
from dprec.errors import SettingError
from dprec.exchange import Setup, SilentSetup
from dprec.lists import ease, ials
from dprec.lists.model import ItemTable, ListModel
from dprec.mechanisms import Mechanism, SetOnly
from dprec.observations import Observations
from dprec.predictions import cells_from_rows
from dprec.protocols.base import Facts, Predicted, Public, Sent
from dprec.protocols.one_shot import OneShotProtocol
from dprec.randomness import public_words, uniforms
from dprec.ratings import Ratings
from dprec.reports import ReportFamily, Wanted
from dprec.wire import TrafficLedger
from simulation.protocols.base import Protocol
from simulation.protocols.course import NOT_DELIVERED, notes_on_failures
from simulation.protocols.task import Grid, Outcome, Sizes, Task
from simulation.protocols.transcripts import told, transcript_of

if TYPE_CHECKING:
    from dprec.catalogue import Catalogue

Scores = Callable[[sp.csr_array], Floats]
"""From sets, shape (users, items), to scores of all items, of the same shape."""


@dataclass(frozen=True, kw_only=True)
class ListProtocol(Protocol):
    """Base of the protocols without a budget that order all items for users, from sets of items."""

    predicted: ClassVar[Predicted] = "lists"
    folds_in: ClassVar[bool] = True

    @property
    def facts(self) -> Facts:
        """Nothing protects users; the kind says what scores are."""
        return self.facts_of(protects="none", learns=self.kind, private=False)

    def at_budget(self, budget: MatchedBudget) -> Self:
        """Return the protocol as it is: it takes no budget."""
        return self

    def check(self, train: Sizes) -> None:
        """Refuse a budget."""
        if self.privacy is not None:
            found = f"epsilon {self.privacy.epsilon:g}"
            raise SettingError("privacy", found, f"none: {self.kind} keeps no budget")


@dataclass(frozen=True, kw_only=True)
class RandomListProtocol(ListProtocol):
    """Every user gets items in a random order, drawn from what is public; nothing is sent.

    With content, a device orders them by how like they are to its user's own; only equals are in that order.
    """

    kind: Literal["random-list"] = "random-list"
    content: bool = option("Whether devices order items by public data that their users' items share.", False)

    @property
    def facts(self) -> Facts:
        """Devices that know nothing but the catalogue."""
        return replace(super().facts, baseline="nothing-sent")

    def influence_of_one(self, train: Ratings) -> float:
        """Return 0: nothing is sent."""
        return 0.0

    def guarantee(self, shape: tuple[int, int]) -> Guarantee:
        """Promise that nothing is learned about anybody."""
        return Guarantee("proved", "local", True, "nothing is sent; every order is drawn from a public seed.")

    def sent(self, public: Public, ratings: int) -> None:
        """Return None: nothing is sent."""

    def setup(self) -> SilentSetup:
        """Return the setup with which devices refuse every request."""
        return SilentSetup()

    def run(self, grid: Grid, task: Task) -> Outcome:
        """Draw the orders; the grid is not used, and there is no round."""
        accountant = PrivacyAccountant(rated=task.train.counts > 0)
        accountant.step(0, task.train.counts >= 0, 0.0, 0.0)
        return Outcome(
            **self._orders(task),
            traffic=TrafficLedger(task.n_users),
            accountant=accountant,
            guarantee=self.guarantee((task.n_users, task.n_items)),
            rounds=(),
            transcript=transcript_of(task) if task.attacked else None,
        )

    def _orders(self, task: Task) -> dict[str, Any]:
        """Return the fields of an `Outcome` by which items are ordered."""
        seed = task.public_seed % (1 << 64)
        if not self.content or task.catalogue is None:
            return {"predict": lambda users, items: uniforms(public_words(seed, users, items))}
        model = ListModel.of(np.ones(task.n_items), task.catalogue, ItemTable.nothing())
        sets, items = task.judged.to_sets(), np.arange(task.n_items)

        def predict_rows(users: AnyInts, n_items: int) -> Floats:
            order = uniforms(public_words(seed, np.repeat(users, n_items), np.tile(items, len(users))))
            return np.round(model.scores(sets[users]), 9) + 1e-9 * order.reshape(-1, n_items)

        return {"predict": cells_from_rows(predict_rows, task.n_items), "predict_rows": predict_rows}


@dataclass(frozen=True, kw_only=True)
class ClearSetsProtocol(ListProtocol):
    """Base of the references without privacy: devices send their sets, and a trusted server orders items."""

    mechanism: ClassVar[Mechanism] = SetOnly()

    def setup(self) -> Setup:
        """Return the setup of devices that send their sets as they are."""
        return OneShotProtocol(mechanism=self.mechanism, completion=ItemAverage())

    def guarantee(self, shape: tuple[int, int]) -> Guarantee:
        """Promise nothing: the server receives the sets."""
        return Guarantee("none", "central", False, "the server receives every user's set of items.")

    def sent(self, public: Public, ratings: int) -> Sent:
        """Return the set."""
        size = self._family(public.n_items, public).size(ratings)
        return Sent(1, None, ratings, size.bits, None, "user", "item")

    def accountant(self, task: Task, sent: Bools) -> PrivacyAccountant:
        """Return the account of the users whose set arrived: nothing bounds what they lost."""
        accountant = PrivacyAccountant(rated=task.train.counts > 0)
        accountant.step(1, sent, math.inf, math.inf)
        return accountant

    def influence_of_one(self, train: Ratings) -> float | None:
        """Return that of a report, which shows an item or does not."""
        family = self._family(train.n_items, train)
        return family.influence_of_one(train.counts, of_values=False)

    def _family(self, n_items: int, of: Any) -> ReportFamily:
        return self.mechanism.family(self.privacy, of.scale, n_items)

    @abstractmethod
    def learn(
        self, sets: sp.csr_array, catalogue: Catalogue | None, task: Task
    ) -> tuple[Scores, Broadcast, dict[str, Any]]:
        """Return what orders items for any set, as devices would hold it, and what may be told of it."""

    def run(self, grid: Grid, task: Task) -> Outcome:
        """Collect the sets, and order items for each."""
        from strategies.report_collection import ReportCollection

        family = self._family(task.n_items, task)
        wanted = Wanted(symbols=task.attacked)
        collected = ReportCollection(family, task.group, wanted).collect(grid, task.roster)
        sets = _sets(collected.observations)
        scores, learned, diagnostics = self.learn(sets, task.catalogue, task)
        ranked = sets if task.judged is task.train else task.judged.to_sets()

        def predict_rows(users: AnyInts, n_items: int) -> Floats:
            return scores(ranked[users])

        record, guarantee = collected.record, self.guarantee((task.n_users, task.n_items))
        said, _ = family.against_truth(task.train, collected.observations, collected.accepted)
        return Outcome(
            predict=cells_from_rows(predict_rows, task.n_items),
            predict_rows=predict_rows,
            traffic=collected.traffic,
            accountant=self.accountant(task, collected.sent),
            guarantee=guarantee,
            rounds=(record,),
            notes=(*notes_on_failures([record]), *said, NOT_DELIVERED),
            diagnostics=diagnostics,
            transcript=told(task, collected.observations, trusted=guarantee.trusts_server, broadcast=learned),
        )


def _sets(observed: Observations) -> sp.csr_array:
    """Return the sets that were received, shape (users, items)."""
    ones = np.ones(observed.items.size)
    return sp.csr_array((ones, observed.items, observed.indptr), shape=observed.shape)


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

    def learn(
        self, sets: sp.csr_array, catalogue: Catalogue | None, task: Task
    ) -> tuple[Scores, Broadcast, dict[str, Any]]:
        """Solve for the weights."""
        ridge = self.ridge * (1 if self.ridge_users is None else sets.shape[0] / self.ridge_users)
        weights = ease.ease(ease.co_occurrences(sets), ridge)
        learned = Broadcast.of_weights(weights)
        return (lambda own: ease.scores(own, weights)), learned, {"ridge": ridge}


@dataclass(frozen=True, kw_only=True)
class IalsProtocol(ClearSetsProtocol):
    """iALS: factors of implicit data by alternating least squares."""

    kind: Literal["ials"] = "ials"
    papers: ClassVar[tuple[str, ...]] = ("hu2008", "rendle2022")
    rank: int = option("Number of factors.", ials.ImplicitOptions.rank, ge=1, le=4096)
    sweeps: int = option("Passes over users and items.", ials.ImplicitOptions.sweeps, ge=1, le=10_000)
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

    def learn(
        self, sets: sp.csr_array, catalogue: Catalogue | None, task: Task
    ) -> tuple[Scores, Broadcast, dict[str, Any]]:
        """Fit the factors of items; those of users follow from their sets."""
        options = ials.ImplicitOptions(
            rank=self.rank,
            sweeps=self.sweeps,
            unobserved=self.unobserved,
            ridge=self.ridge,
            frequency_scaling=self.frequency_scaling,
            seed=task.server_seed,
        )
        factors = ials.ials(sets, options, task.progress)
        learned = Broadcast.of_products(factors)
        return (lambda own: ials.fold_in(own, factors, options) @ factors.T), learned, {}
