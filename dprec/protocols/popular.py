"""Lists by popularity, from sums of item sets: a number for each item, or a search in fewer numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Literal, Self

from dprec.accounting import Adjacency, PrivacyBudget
from dprec.catalogue import Catalogue
from dprec.components import option
from dprec.errors import SettingError, within
from dprec.lists.gram import MOST_ITEMS
from dprec.lists.model import check_least_bytes
from dprec.lists.popular import PopularityPlan, numbers_at
from dprec.protocols.base import Facts, Predicted, Public
from dprec.protocols.components import AnyAggregation
from dprec.protocols.gram import PairTableOptions, SetDevice, SetServer
from dprec.protocols.searches import FEWEST, MAX_BYTES_UP, NOTHING_PUBLIC, SearchOptions, bytes_of_search
from dprec.protocols.sharing import COMPARED, MAX_BYTES_DOWN
from dprec.protocols.sums import SummedDevice, SummedServer, SumsProtocol
from dprec.ratings import Ratings, RatingScale
from dprec.sums import CentralAggregation


@dataclass(frozen=True, kw_only=True)
class PopularityProtocol(SumsProtocol):
    """Devices contribute their item sets to the popularity of items, and rank by it."""

    kind: Literal["popularity"] = "popularity"
    predicted: ClassVar[Predicted] = "lists"
    signed: ClassVar[bool] = False
    privacy: PrivacyBudget | None = option("What is promised, per user; left out, nothing.", None)
    adjacency: Adjacency = option(COMPARED.format("more"), "add-or-remove-one")
    content: bool = option(
        "Whether a device weighs what is popular by public data that its user's items share.", False
    )
    fewest: int = option(FEWEST, 1, ge=1, le=MOST_ITEMS)
    max_bytes_up: int = option(MAX_BYTES_UP, 300_000, ge=1)
    max_bytes_down: int | None = option(MAX_BYTES_DOWN, None, reader="server", ge=1)
    search: SearchOptions = option("How popular items are found.", SearchOptions())
    aggregation: AnyAggregation = option("Who adds up and adds the noise.", CentralAggregation())

    @property
    def facts(self) -> Facts:
        """Popularity, which is a baseline in the clear."""
        learned = "popularity-by-content" if self.content else "popularity"
        return self.facts_of(learns=learned, baseline=None if self.privacy else "popularity")

    @property
    def shares(self) -> tuple[float, ...]:
        """What the rounds of the search spend."""
        return self.search.shares

    def suited_to_noise(self, public: Public) -> Self:
        """Return the protocol with as many numbers as suit the noise, and as devices have bytes for."""
        self.check_settings(public)
        n_items = public.n_items

        def bytes_of(plan: PopularityPlan) -> int:
            return bytes_of_search(self, SetDevice.begun(self._table, n_items, plan), plan)

        def fits(plan: PopularityPlan, max_rows: int) -> bool:
            return plan.rows <= max_rows and bytes_of(plan) <= self.max_bytes_up

        fewer = numbers_at(self.tau(self.begin(public).release(1), public.n_users), n_items)
        # One round has less around its numbers than several, and may fit where they do not.
        for max_rows in (fewer, n_items):
            search = self.search.suited(n_items, partial(fits, max_rows=max_rows))
            if (bytes_needed := bytes_of(search.plan(n_items))) <= self.max_bytes_up:
                return replace(self, search=search)
        accepted = f"at least {bytes_needed:,}, for {search.numbers:,} numbers"
        raise SettingError("max_bytes_up", f"{self.max_bytes_up:,}", accepted)

    def check_settings(self, train: Public | Ratings) -> None:
        """Refuse numbers or bytes that are too few for a search."""
        with within("search"):
            self.search.check(train.n_items)

    def begin(self, public: Public, catalogue: Catalogue | None = None) -> SummedDevice:
        """Return a search that has not begun."""
        return SetDevice.begun(self._table, public.n_items)

    def device(self, received: bytes, n_items: int, scale: RatingScale) -> SummedDevice:
        """Read which buckets stood out, or all that was learned."""
        return SetDevice.decode(received, self._table, n_items)

    def server(self, public: Public, catalogue: Catalogue | None, seed: int) -> SummedServer:
        """Return the server before the first round."""
        public_catalogue = catalogue if self.content else None
        check_least_bytes(self.max_bytes_down, public.n_items, public_catalogue)
        device = SetDevice.begun(self._table, public.n_items)
        return SetServer(device, public_catalogue, seed, most_bytes=self.max_bytes_down)

    def notes_on(self, train: Ratings, catalogue: Catalogue | None) -> tuple[str, ...]:
        """Say where content counts for nothing."""
        return () if not self.content or catalogue is not None else (NOTHING_PUBLIC,)

    @property
    def _table(self) -> PairTableOptions:
        """The options of a table of no items."""
        return PairTableOptions(items=0, search=self.search, fewest=self.fewest, normalised=self.bounded)
