"""Ratings predicted on the device, from sums over whole profiles that nobody sees."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal, Self

from dprec.accounting import Adjacency, PrivacyBudget
from dprec.components import option
from dprec.errors import within
from dprec.protocols.base import Facts, Public
from dprec.protocols.components import AnyAggregation
from dprec.protocols.sharing import COMPARED
from dprec.ratings import Ratings
from dprec.secret_sets import ProfileDevice, SecretSetOptions, SecretSets
from dprec.sums import DeviceHalf, SecureAggregation
from simulation.protocols.sums import SummedProtocol
from simulation.protocols.task import Sizes


@dataclass(frozen=True, kw_only=True)
class SecretSetProtocol(SummedProtocol):
    """Devices contribute to sums of which items are rated and how, and predict from the table they teach."""

    kind: Literal["best-secret-set"] = "best-secret-set"
    privacy: PrivacyBudget | None = option("What is promised for all rounds together, per user.", None)
    adjacency: Adjacency = option(COMPARED.format("twice the"), "add-or-remove-one")
    sums: SecretSetOptions = option("What is summed, and what is assumed of ratings.", SecretSetOptions())
    aggregation: AnyAggregation = option("Who adds up and adds the noise.", SecureAggregation())

    @property
    def facts(self) -> Facts:
        """The table from which devices predict."""
        return self.facts_of(learns="item-biases-and-embeddings")

    @property
    def method(self) -> SecretSets:
        """The sums'."""
        return SecretSets(options=self.sums)

    def suited(self, public: Public) -> Self:
        """Return the protocol with the sums that a public rule of users and budget picks."""
        among = super().suited(public)
        if self.sums.split is not None:
            return among
        sampled = among.aggregation.affordable(among.whole_multiplier) is not None
        tau = among.tau(self.sums.largest_layout(public.n_items), public.n_users)
        return replace(among, sums=self.sums.suited(tau, sampled=sampled))

    def check(self, train: Sizes) -> None:
        """Refuse a budget that cannot be kept to, and shares that leave nothing to learn from."""
        with within("sums"):
            self.sums.check(train.scale)
        super().check(train)

    def predictions_of(self, held: Ratings, learned: DeviceHalf) -> dict[str, Any]:
        """Predict cell by cell, each on its user's device."""
        assert isinstance(learned, ProfileDevice)
        return {"predict": learned.devices(held).predict, "predict_rows": None}
