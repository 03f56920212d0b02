"""What is known of sums whose parts devices mask, for the messages that they then exchange."""

from typing import Protocol

from dprec.arrays import Bools, Ints
from dprec.secure_aggregation import GraphSize, MaskGraph, SumContext
from dprec.sums.contributions import Layout


class MaskedSums(Protocol):
    """An aggregation whose devices mask what they send; see `dprec.sums.SecureAggregation`."""

    @property
    def graph_size(self) -> GraphSize:
        """How many neighbours a device has, and how many of them put a secret together."""

    def graph(self, round_index: int, public_seed: int) -> MaskGraph:
        """Return who shares masks with whom in a release, which everybody knows."""

    def neighbours(self, user: int, round_index: int, public_seed: int) -> Ints:
        """Return with whom one device shares masks in a release, shape (degree,)."""

    def sum_of(self, identity: bytes, layout: Layout, multiplier: float) -> SumContext:
        """Return what all devices know about the sum of a release; see `SumContext` for its identity."""

    def can_release(self, present: Bools, added_up: int, round_index: int, public_seed: int) -> bool:
        """Return whether a release can succeed; see `dprec.sums.Aggregation`."""
