"""What a search for popular items (`dprec.lists.popular`) asks of devices, and what these are sent of it."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from dprec.arrays import AnyInts, Bools, Floats, Ints, offsets
from dprec.completion import Profiles
from dprec.components import Options, option
from dprec.errors import SettingError, plural, within
from dprec.lists.model import LARGEST, ListModel
from dprec.lists.popular import (
    MOST_STAGES,
    PopularityPlan,
    PopularitySearch,
    least_numbers,
    shares_of,
    stages_of,
)
from dprec.protocols.sums import SummedDevice, SumsProtocol
from dprec.sums import Aggregation, Layout, Release
from dprec.wire import Reader, encode_items, encode_numbers

FEWEST = "Items that every set counts as having at least, which bounds what one user adds to a number."

NOTHING_PUBLIC = "Nothing is public about the items, so they are ordered by popularity alone (dataset.items)."

MAX_BYTES_UP = "Bytes of payload that a device sends at most, in all rounds; tables are no larger than that."

LEAST_DEVIATION = 1e-6
"""Where there is no noise: contributions are integer multiples of less."""


@dataclass(frozen=True, kw_only=True)
class SearchOptions(Options):
    """How popular items are found: by a number for each, or by a search in fewer, in several rounds."""

    numbers: int | None = option(
        "Numbers that a device sends, of all rounds together; by default as many as suit the noise, and its "
        "bytes allow.",
        None,
        ge=1,
    )
    rounds: int | None = option(
        "1 has a number for each item; 2 or 3 look into the buckets that stood out before. By default 1 "
        "where there are numbers enough, else a public rule.",
        None,
        ge=1,
        le=MOST_STAGES,
    )

    @property
    def shares(self) -> tuple[float, ...]:
        """What each round spends of what all of them may; before they are `suited`, of one round."""
        return shares_of(self.rounds or 1)

    def plan(self, n_items: int) -> PopularityPlan:
        """Return the plan: before the options are `suited`, of one round and of all numbers by default."""
        rounds = self.rounds or 1
        numbers = self.numbers or max(n_items, least_numbers(n_items, rounds))
        return PopularityPlan.of(n_items, numbers, rounds)

    def suited(self, n_items: int, fits: Callable[[PopularityPlan], bool]) -> Self:
        """Return the options with what follows from public numbers: as many numbers as fit.

        ``fits``: whether a device can send the numbers of a plan. The fewest, if none are few enough.
        """
        numbers, rounds = self.numbers, self.rounds
        if numbers is None:
            numbers = least_numbers(n_items, rounds or 2)
            largest = max(numbers, n_items)
            # One round has less around its numbers than several.
            if fits(PopularityPlan.of(n_items, largest, rounds)):
                numbers = largest
            numbers = largest - bisect_left(
                range(largest, numbers, -1),
                True,
                key=lambda fewer: fits(PopularityPlan.of(n_items, fewer, rounds)),
            )
        return replace(self, numbers=numbers, rounds=rounds or stages_of(n_items, numbers))

    def check(self, n_items: int) -> None:
        """Raise SettingError for fewer numbers than so many rounds take."""
        rounds = self.rounds or stages_of(n_items, self.numbers or n_items)
        least = least_numbers(n_items, rounds)
        if self.numbers is not None and self.numbers < least:
            accepted = f"at least {least:,}, for {n_items:,} items in {plural(rounds, 'round')}"
            raise SettingError("numbers", f"{self.numbers:,}", accepted)


def bytes_up(aggregation: Aggregation, rounds: Iterable[tuple[Collection[Layout], float]]) -> int:
    """Return the bytes that a device sends at most, given each round's possible layouts and multiplier."""
    messages = aggregation.further_messages()
    further_bytes = sum(answer for _, answer in (*messages.before, *messages.after))
    with within("aggregation"):
        return sum(
            further_bytes + max(-(-aggregation.report_bits(layout, 0, multiplier) // 8) for layout in layouts)
            for layouts, multiplier in rounds
        )


def bytes_of_search(protocol: SumsProtocol, device: SummedDevice, plan: PopularityPlan) -> int:
    """Return the bytes of a device that begins a search, if a protocol spends its whole budget on it."""
    rounds = [
        ((device.release(number),), protocol.whole_multiplier / math.sqrt(stage.share))
        for number, stage in enumerate(plan.stages, start=1)
    ]
    return bytes_up(protocol.adding_up, rounds)


@dataclass(frozen=True, eq=False)
class SearchSum:
    """A number for each item that a stage of a search has left, or for each bucket of such items.

    A user with several items in a bucket adds to it what one with a single item there does.
    """

    search: PopularitySearch
    stage: int
    """From 0."""
    fewest: int = 1
    """Items that every set counts as having at least."""
    normalised: bool = True
    """Whether a user adds 1 / sqrt(n) to each of n numbers, or 1."""

    @property
    def rows(self) -> int:
        """Numbers of the sum."""
        return self.search.plan.stages[self.stage].rows

    def release(self, device: SummedDevice, round_index: int) -> Release:
        """Return the sum of a round."""
        rows, n_items = self.rows, self.search.plan.n_items
        if not self.normalised:
            return Release(device, round_index, rows, n_items, bounded=False, honestly=np.ones_like)
        most = 1 / math.sqrt(self.fewest)
        return Release(device, round_index, rows, n_items, most=most, fewest=self.fewest)

    def taking_part(self, profiles: Profiles) -> Profiles:
        """Return the sets."""
        return profiles

    def cells(self, profiles: Profiles) -> tuple[Ints, AnyInts, Floats]:
        """Return an equal part for each number that an item of a user shares in."""
        size, (rows, present) = self.rows, self.search.rows(profiles.items, self.stage)
        # Items ascend, and so does nearly every number of theirs.
        shared = np.sort(profiles.users[present] * size + rows[present], kind="stable")
        owners, rows = np.divmod(shared[np.diff(shared, prepend=-1) > 0], size)
        counts = np.bincount(owners, minlength=profiles.n_users)
        weights = 1 / np.sqrt(np.maximum(counts, self.fewest)) if self.normalised else np.ones(counts.size)
        return offsets(counts), rows, np.repeat(weights, counts)

    def work(self, counts: Ints) -> Ints:
        """Return the numbers of sets of so many items."""
        return counts

    def about(self, items: AnyInts) -> Bools:
        """Return the numbers that some items share in."""
        about = np.zeros(self.rows, dtype=np.bool_)
        rows, present = self.search.rows(items, self.stage)
        about[rows[present]] = True
        return about


def encode_search(search: PopularitySearch) -> bytes:
    """Return which buckets stood out, of the stages so far; nothing before the first."""
    start, n_stages = PopularitySearch.begun(search.plan), len(search.chosen)
    while n_stages and np.array_equal(search.chosen[n_stages - 1], start.chosen[n_stages - 1]):
        n_stages -= 1
    return _encode_chosen(search, n_stages)


def _encode_chosen(search: PopularitySearch, n_stages: int) -> bytes:
    stages = zip(search.plan.stages, search.chosen[:n_stages], strict=False)
    return b"".join(encode_items(buckets, stage.rows) for stage, buckets in stages)


def decode_search(data: bytes, plan: PopularityPlan) -> PopularitySearch:
    """Read what `encode_search` returned; raises ValueError, as devices do not trust the server."""
    reader, search, n_stages = Reader(data), PopularitySearch.begun(plan), 0
    while reader.rest() and n_stages < len(plan.kept):
        buckets = reader.item_set(plan.stages[n_stages].rows, plan.kept[n_stages])
        search = replace(search, chosen=(*search.chosen[:n_stages], buckets, *search.chosen[n_stages + 1 :]))
        n_stages += 1
    reader.end()
    return search


def encode_found(search: PopularitySearch, model: ListModel) -> bytes:
    """Return what devices rank by, of which popularity follows from a search: one number for each bucket."""
    if not search.chosen:
        return model.encode()
    of_buckets = np.full(search.plan.rows, model.popularity.min())
    of_buckets[search.leaves()] = model.popularity
    without_popularity = replace(model, popularity=np.zeros(model.popularity.size))
    popularity = encode_numbers(of_buckets, model.sent_steps[0])
    return _encode_chosen(search, len(search.chosen)) + popularity + without_popularity.encode()


def decode_found(data: bytes, plan: PopularityPlan) -> tuple[PopularitySearch, ListModel]:
    """Read what `encode_found` returned; raises ValueError, as devices do not trust the server."""
    reader, search = Reader(data), PopularitySearch.begun(plan)
    if not search.chosen:
        return search, ListModel.decode(data, plan.n_items)
    stages = zip(plan.stages, plan.kept, strict=False)
    search = replace(search, chosen=tuple(reader.item_set(stage.rows, count) for stage, count in stages))
    of_buckets, _ = reader.rounded((plan.rows,))
    if not (np.abs(of_buckets) <= LARGEST).all():
        raise ValueError("a list model with popularity out of range")
    model = ListModel.decode(reader.rest(), plan.n_items)
    return search, replace(model, popularity=of_buckets[search.leaves()])
