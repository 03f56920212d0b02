"""What was said in a run, as somebody has it who keeps to the protocol and remembers everything.

A server remembers what reached it from each user, and what it made of all of it together; everybody has what
everybody was sent. Nothing in a transcript follows from a rating in any other way.

Of numbers that devices computed, such as coordinates of a gradient, the server knows what it sent down, and
the code that devices run. What it is not told is the profile, so it computes what made-up profiles would have
sent (Yuan et al. [yuan2023]).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import scipy

from dprec.arrays import AnyInts, Floats, Ints
from dprec.completion import Profiles
from dprec.observations import Observations
from dprec.ratings import RatingScale
from dprec.wire import ItemTable

_CERTAIN = 1e-9 - 1
"""Least product of a sign and its mean: what is excluded in the mean of made-up profiles is never certain."""

Likelihood = Callable[[Floats, Floats, Floats], Floats]
"""From answers, and the mean and variance of the numbers that they are about, to log likelihoods."""


@dataclass(frozen=True, eq=False)
class Answered:
    """Answers of some users."""

    users: Ints
    """Ascending; shape (answers,)."""
    numbers: Ints
    """Which number each is about."""
    answers: Floats


@dataclass(frozen=True, eq=False, kw_only=True)
class Upload:
    """What users whom the server can tell apart sent in a round."""

    n_users: int
    n_numbers: int
    """How many numbers a device computes."""
    per_item: int | None
    """How many of them in a row are about the same item, from the first item on; None if all of them are
    about all items.
    """
    read: Callable[[], Iterator[Answered]]
    """Yields what was sent, by user: reports take the least memory as they came."""
    compute: Callable[[Profiles], Floats]
    """From profiles to what their devices compute, before any noise; shape (users, numbers)."""
    likelihood: Likelihood
    """What the noise leaves to be told."""
    shows_items: bool = False
    """Whether a device answers about the items that its user rated, and about no others."""

    def to_matrix(self) -> scipy.sparse.csr_array:
        """Return all answers, those of a user about one number added up; shape (users, numbers)."""
        parts = list(self.read())
        users, numbers, answers = (
            np.concatenate([np.zeros(0, dtype), *(getattr(part, name) for part in parts)])
            for name, dtype in (("users", np.int64), ("numbers", np.int64), ("answers", np.float64))
        )
        shape = self.n_users, self.n_numbers
        return scipy.sparse.coo_array((answers, (users, numbers)), shape=shape).tocsr()


def added_up(uploads: Sequence[Upload]) -> scipy.sparse.csr_array | None:
    """Return the answers of several rounds about the same numbers; None without any."""
    if not uploads:
        return None
    total = uploads[0].to_matrix()
    for upload in uploads[1:]:
        total = total + upload.to_matrix()
    return total


def of_signs(scale: float) -> Likelihood:
    """Return how likely signs are, of which each has the mean ``number * scale`` for numbers from -1 to 1."""

    def likelihood(answers: Floats, means: Floats, variances: Floats) -> Floats:
        return np.log1p(np.maximum(np.sign(answers) * scale * means, _CERTAIN))

    return likelihood


def of_normal_noise(deviation: float) -> Likelihood:
    """Return how likely numbers are that have noise of some deviation, to which their own variance adds."""

    def likelihood(answers: Floats, means: Floats, variances: Floats) -> Floats:
        total = variances + deviation**2
        return -0.5 * (np.log(total) + (answers - means) ** 2 / total)

    return likelihood


@dataclass(frozen=True, eq=False, kw_only=True)
class Broadcast:
    """Numbers about items that everybody was sent at the end."""

    columns: Floats
    """Those that mean the same in every run, such as biases; shape (items, columns)."""
    embeddings: tuple[Floats, ...] = ()
    """Those that say something by the inner products of items alone; shapes (items, dimensions)."""
    weights: tuple[tuple[Floats, Ints], ...] = ()
    """What one of some items says of another, shapes (some, some), and these items."""

    @classmethod
    def of_products(cls, *embeddings: Floats) -> Self:
        """Return item factors of which inner products alone are the same in every run."""
        return cls(columns=np.zeros((len(embeddings[0]), 0)), embeddings=embeddings)

    @classmethod
    def of_weights(cls, weights: Floats, items: Ints) -> Self:
        """Return weights between some items."""
        return cls(columns=np.zeros((len(weights), 0)), weights=((weights, items),))

    @classmethod
    def of_table(cls, table: ItemTable) -> Self:
        """Return what a table of items says, but for what is public of them before."""
        columns = np.column_stack([table.means, table.deviations, table.numbers])
        return cls(columns=columns, embeddings=(table.embeddings, table.item_factors))


@dataclass(frozen=True, eq=False)
class ReleasedSum:
    """A sum with noise that everybody may see, and what users added to it, which nobody has."""

    released: Floats
    """Shape (entries,)."""
    deviation: float
    """Standard deviation of the noise in every entry."""
    added: Callable[[Profiles], scipy.sparse.csr_array] | None = None
    """From profiles to what their devices add, as anybody can compute it from what devices were sent;
    shape (users, entries).
    """


@dataclass(frozen=True, eq=False, kw_only=True)
class Transcript:
    """What the server of a run has seen, and what all users were sent.

    What is None was not said: of sums that nobody sees the parts of, a server has `sums` alone.
    """

    n_users: int
    n_items: int
    scale: RatingScale
    trusted: bool = False
    """Whether the server is given the ratings as they are, so that there is nothing to infer."""
    reports: tuple[Observations, ...] = ()
    """What the server reads in the reports of each round, of users it can tell apart, with symbols and their
    channels (`dprec.observations.SymbolReports`, `RowReports`) where reports have them.
    """
    read_together: Callable[[Observations], Observations] = lambda joined: joined
    """From reports of several rounds, joined, to what they say together: cells whose reports depend on each
    other, such as on one permanent answer, are one. By default, they are independent given the ratings.
    """
    uploads: tuple[Upload, ...] = ()
    """What users whom the server can tell apart sent in each round about numbers that follow from a model."""
    vectors: scipy.sparse.csr_array | Floats | None = None
    """What each user sent, as numbers by which users can be told apart; shape (users, features)."""
    sums: tuple[ReleasedSum, ...] = ()
    """What the server has of all users together."""
    broadcast: Broadcast | None = None
    """What everybody was sent about the items at the end."""
    newcomer: Callable[[AnyInts], Floats] | None = None
    """From items to what a device without ratings predicts of them, from what everybody was sent."""
    lists: Ints | None = None
    """What each user was sent as a list; negative after the end of a short one; shape (users, length)."""

    @classmethod
    def of_all(cls, parts: Sequence[Transcript]) -> Transcript:
        """Return what is said in several runs, of which there is one at least; lists are the last ones."""
        last = parts[-1]
        return replace(
            last,
            reports=tuple(report for part in parts for report in part.reports),
            uploads=tuple(upload for part in parts for upload in part.uploads),
            sums=tuple(summed for part in parts for summed in part.sums),
        )

    @property
    def parted_sums(self) -> tuple[ReleasedSum, ...]:
        """The sums of which it is known what a profile adds to them."""
        return tuple(summed for summed in self.sums if summed.added is not None)

    @property
    def of_items(self) -> Broadcast | None:
        """What everybody can tell of the items: what was sent of them, or what newcomers are predicted.

        None where all of it follows from sums, or there is nothing.
        """
        if self.parted_sums:
            return None
        if self.broadcast is not None or self.newcomer is None:
            return self.broadcast
        return Broadcast(columns=self.newcomer(np.arange(self.n_items))[:, None])
