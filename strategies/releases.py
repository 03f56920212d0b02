"""What is said around the reports of a release whose devices mask them: in a simulation nothing.

Masks cancel in the total, so a simulation leaves them out, and what devices and server would say is charged.
Devices that stand by themselves say it; their server has a `ReleaseExchange` of its own.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from flwr.app import RecordDict
from flwr.serverapp import Grid

from dprec.arrays import Bools, Ints
from dprec.exchange import KEYS, SHARES, UNMASK, GradientRequest, SecureSumRequest
from dprec.gradients import Aggregate
from dprec.sums import Aggregation, Layout
from strategies.roster import Roster
from strategies.rounds import RoundAccount, request_content


@dataclass(frozen=True, eq=False)
class OpenRelease:
    """One release under way."""

    round_index: int
    account: RoundAccount
    grid: Grid
    roster: Roster
    group: str
    """Run key."""


class ReleaseExchange(ABC):
    """What is said around the reports of the releases of a run."""

    @abstractmethod
    def asking(self, release: OpenRelease, model: bytes) -> dict[int, RecordDict]:
        """Return the requests to report, by partition, and charge them, after all that comes before them."""

    @abstractmethod
    def unmasked(
        self, release: OpenRelease, total: Aggregate, present: Bools, layout: Layout, multiplier: float
    ) -> Aggregate | None:
        """Return the total of those whose whole report arrived, shape (users,); None if that fails."""


ExchangeOf: TypeAlias = Callable[[Aggregation, int], ReleaseExchange]
"""Makes what is said around the releases of an aggregation, from that and the public seed."""


@dataclass(frozen=True, eq=False)
class ChargedExchange(ReleaseExchange):
    """Nothing is said; what devices of a deployment would send and receive is charged."""

    aggregation: Aggregation

    def asking(self, release: OpenRelease, model: bytes) -> dict[int, RecordDict]:
        """Return the same request for everybody; see `ReleaseExchange`."""
        further, everybody = self.aggregation.further_messages(), np.arange(release.roster.n_users)
        _charge(release, everybody, (KEYS, SHARES), further.before)
        shares = bytes(further.with_request) if further.with_request else None
        charged = request_content(GradientRequest(release.round_index, model, shares=shares))
        release.account.charge_request(slice(None), charged, len(model) + further.with_request)
        content = request_content(GradientRequest(release.round_index, model))
        return dict.fromkeys(range(len(release.roster.node_ids)), content)

    def unmasked(
        self, release: OpenRelease, total: Aggregate, present: Bools, layout: Layout, multiplier: float
    ) -> Aggregate:
        """Return the total, in which there are no masks."""
        _charge(release, np.flatnonzero(present), (UNMASK,), self.aggregation.further_messages().after)
        return total


def _charge(
    release: OpenRelease, users: Ints, types: tuple[str, ...], sizes: tuple[tuple[int, int], ...]
) -> None:
    # An aggregation without further messages has no sizes.
    for message_type, (downlink, uplink) in zip(types, sizes, strict=False):
        content = request_content(SecureSumRequest(release.round_index, bytes(downlink)))
        release.account.of_further(message_type).charge_exchange(users, content, downlink, uplink)
