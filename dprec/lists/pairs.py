"""Item sets as anonymous messages: what a device sends of its set, and what a server makes of the counts.

A message names an item, or a pair of items, an item with itself among the pairs; or nothing: a null message.
Of its set, every device sends r messages, no two of them alike, null messages where it has fewer. With them
go fakes: of every message that there can be a Poisson number, so that those of all honest devices hide what
one of them sends (`dprec.accounting.HiddenMessages`); of the null message r times as many, as several may be
one user's. How many messages a device sends says nothing about its set.

The server counts messages that come in random order and from nobody in particular. Less the mean number of
fakes, a count is unbiased for the sum over users of their probabilities to send the message. For pairs, that
is a Gram matrix of their sets, in which every set has a weight of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dprec.arrays import AnyInts, Floats, Ints, Uint64s, offsets, places_of, rows_of
from dprec.randomness import Draws, uniforms
from dprec.secure_aggregation import honest_shares, poisson_table
from dprec.wire import Batches

_HALF, _LOW = np.uint64(32), np.uint64(2**32 - 1)


@dataclass(frozen=True)
class SetMessages:
    """One exchange: the messages that there can be, and how many of them a device sends."""

    n_items: int
    """Items that take part, numbered from 0."""
    of_pairs: bool
    """Whether messages name pairs and not items."""
    messages: int
    """r, what every device sends of its set, null messages included; at least 1."""
    share: float
    """Mean number of a device's fakes of each message; above 0."""
    full_set: float = 1.0
    """Items of a set from which on it is worth r pairs. Smaller sets send fewer, in proportion to the root of
    their pairs, so that all have the weights of unit contributions up to here. At 1, all send r.
    """

    @classmethod
    def hidden_among(
        cls,
        fakes: float,
        users: int,
        dropouts: float,
        colluders: int,
        *,
        n_items: int,
        of_pairs: bool,
        messages: int,
        full_set: float = 1.0,
    ) -> SetMessages:
        """Return the exchange in which honest devices that stay send ``fakes`` of each message, at least.

        Parameters
        ----------
        fakes : float
            Mean number that has to hide a message; see `dprec.accounting.least_fakes`.
        users : int
            Devices that are asked.
        dropouts : float
            Share of them that may drop out, from 0 to below 1.
        colluders : int
            Devices whose fakes the server may know, or that send none.

        Raises
        ------
        ValueError
            When nobody honest is left.
        """
        honest = honest_shares(users, dropouts, colluders)
        if honest < 1:
            raise ValueError(f"{colluders} colluding devices and dropouts leave none of {users}")
        return cls(n_items, of_pairs, messages, fakes / honest, full_set)

    @property
    def null(self) -> int:
        """The null message, and how many others there are, numbered from 0."""
        return self.n_items * (self.n_items + 1) // 2 if self.of_pairs else self.n_items

    @property
    def codec(self) -> Batches:
        """Encoder and decoder of what a device sends."""
        return Batches(self.null)

    @property
    def mean(self) -> float:
        """Mean number of messages of a device, fakes included."""
        return self.messages + self._fakes

    @property
    def most(self) -> int:
        """Messages of a device at most, fakes included."""
        return self.messages + int(poisson_table(self._fakes).own.max())

    @property
    def _fakes(self) -> float:
        return self.share * (self.null + self.messages)

    def pair(self, one: Ints, other: Ints) -> Ints:
        """Return the messages of pairs of items, in any order: the upper triangle, row by row."""
        low, high = np.minimum(one, other), np.maximum(one, other)
        messages: Ints = low * self.n_items - low * (low - 1) // 2 + high - low
        return messages

    def of_sets(
        self,
        indptr: Ints,
        items: AnyInts,
        draws: Draws,
        round_index: int,
        weights: Floats | None = None,
    ) -> Ints:
        """Return what users say of their sets, shape (users, messages).

        All items of a set of n are sent with the same probability, min(1, r / n). A pair of weight w of a set
        whose pairs have weights of W in all, on average 1, is sent with probability w min(r / W, r / sqrt(W
        F)), but 1 at most, F being the number of pairs of a full set. The pairs of a set, its items in random
        order, make a line, on which those at equal distances are chosen (Madow and Madow [madow1944]).

        Parameters
        ----------
        indptr, items : ndarray of int, shapes (users + 1,), (cells,)
            The sets, as rows of a CSR matrix over the items that take part.
        draws : Draws
            The users' words for this exchange.
        round_index : int
            The round that they are drawn for.
        weights : ndarray of float64, shape (n_items,), optional
            Public weights of items, above 0; that of a pair is their product. By default all are 1.
        """
        from dprec.kernels import pairs

        users, counts = indptr.size - 1, np.diff(indptr)
        shuffled = np.array(items, dtype=np.int32)
        pairs.shuffle(indptr, draws.asked(b"order").per_cell(counts, items, round_index), shuffled)
        said = np.full((users, self.messages), self.null, dtype=np.int64)
        if not self.of_pairs:
            places = places_of(counts)
            sent = places < self.messages
            said[rows_of(counts)[sent], places[sent]] = shuffled[sent]
            return said
        firsts, seconds = np.full((2, users, self.messages), -1, dtype=np.int64)
        starts = uniforms(draws.asked(b"start").per_user(0, round_index))
        lengths = np.ones(self.n_items) if weights is None else weights
        least = math.sqrt(_pairs(self.full_set)) / self.messages
        room = np.empty(int(counts.max(initial=0)) + 1)
        pairs.sample_pairs(indptr, shuffled, lengths, starts, least, firsts, seconds, room)
        found = firsts >= 0
        said[found] = self.pair(firsts[found], seconds[found])
        return said

    def fakes(self, users: int, draws: Draws, round_index: int) -> tuple[Ints, Ints]:
        """Return how many fakes users send, shape (users,), and these by user, shape (sum of them,).

        How many is drawn by comparing integers of 128 bits, and which by chance, from 64 bits: of each
        message the number is a Poisson number by itself, its mean off by less than a part in 10^9.
        """
        words = draws.asked(b"number of fakes")

        def second_words(places: Ints) -> Uint64s:
            return words.per_user(1, round_index)[places]

        table = poisson_table(self._fakes)
        counts = table.draw(words.per_user(0, round_index), second_words).astype(np.int64)
        chosen = draws.asked(b"fakes").per_cell(counts, places_of(counts), round_index)
        return counts, np.minimum(_below(self.null + self.messages, chosen), self.null)

    def sent(
        self,
        indptr: Ints,
        items: AnyInts,
        draws: Draws,
        round_index: int,
        weights: Floats | None = None,
    ) -> tuple[Ints, Ints]:
        """Return how many messages users send, shape (users,), and these by user, shape (sum of them,).

        The order says which are fakes, but `codec` sorts them. See `of_sets` for the parameters.
        """
        said = self.of_sets(indptr, items, draws, round_index, weights)
        counts, fakes = self.fakes(len(said), draws, round_index)
        counts = counts + self.messages
        sent = np.empty(offsets(counts)[-1], dtype=np.int64)
        own = places_of(counts) < self.messages
        sent[own], sent[~own] = said.ravel(), fakes
        return counts, sent

    def hiding(self, arrived: int, colluders: int) -> float:
        """Return the mean number of fakes that hid each message, once so many devices' had arrived."""
        return self.share * max(0, arrived - colluders)

    def count(self, messages: Ints) -> Ints:
        """Return how often each message occurs, shape (null + 1,); counts of several parts add up."""
        return np.bincount(messages, minlength=self.null + 1)

    def estimate(self, counts: Ints, arrived: int) -> Estimate:
        """Return what counts of the messages of so many devices say."""
        fakes = arrived * self.share
        unbiased = counts[:-1].astype(np.float64) - fakes
        named = arrived * self.messages - (float(counts[-1]) - self.messages * fakes)
        return Estimate(self, unbiased, named, float(counts[:-1].mean()), arrived)

    def expected_noise(self, users: int, items: float) -> float:
        """Return the noise that `Estimate.noise` is to be expected to be, from public numbers alone.

        ``users``: whose messages arrive; ``items``: a guess at how many of a user's items take part.
        """
        pairs = _pairs(items)
        each = min(pairs, self.messages * min(1.0, math.sqrt(pairs / _pairs(self.full_set))))
        return math.sqrt((self.share + each / self.null) / users * pairs) / each


@dataclass(frozen=True, eq=False)
class Estimate:
    """What the counts of an exchange say, and how sure that is."""

    exchange: SetMessages
    counts: Floats
    """Unbiased counts of what users say of their sets, shape (null,)."""
    named: float
    """How many of these messages were not null messages, without bias."""
    variance: float
    """Of a count, on average: that of fakes and of sampling, or little more."""
    users: int

    @cached_property
    def scale(self) -> float:
        """By which counts of pairs become the sum of as many unit contributions.

        A unit contribution has 1 / sqrt(n (n + 1) / 2) at every pair of a set of n items: its norm over the
        upper triangle is 1, and its trace is sqrt(2 n / (n + 1)). The scale is the one by which the trace is
        that of all users; 2 / (n + 1) of the pairs that are sent are of an item with itself.
        """
        named, n_items = max(self.named, 1.0), self.exchange.n_items
        diagonal = self.exchange.pair(np.arange(n_items), np.arange(n_items))
        share = float(self.counts[diagonal].sum()) / named
        share = min(max(share, 2 / (n_items + 1)), 1.0)
        return self.users * math.sqrt(2 - share) / (share * named)

    @property
    def noise(self) -> float:
        """Standard deviation of the noise in `gram`, per entry and user."""
        return self.scale * math.sqrt(self.variance) / self.users

    def gram(self) -> Floats:
        """Return the sum of unit contributions as a symmetric matrix, shape (n_items, n_items).

        Of weighted pairs, entries are by so much larger as their pairs were more probable to be sent: divided
        by the pairs' weights, they are without bias. As it is, the noise is the same everywhere.
        """
        upper = np.zeros((self.exchange.n_items,) * 2)
        upper[np.triu_indices(self.exchange.n_items)] = self.scale * self.counts
        matrix: Floats = upper + np.triu(upper, 1).T
        return matrix


def _pairs(items: float) -> float:
    """Return how many pairs a set has, each item with itself included."""
    return items * (items + 1) / 2


def _below(limit: int, words: Uint64s) -> Ints:
    """Return integers uniform on 0 to ``limit`` - 1, up to 2**31, from all bits of their words."""
    size = np.uint64(limit)
    low = (words & _LOW) * size >> _HALF
    return ((words >> _HALF) * size + low >> _HALF).astype(np.int64)
