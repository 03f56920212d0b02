"""What was said in a run, as somebody has it who keeps to the protocol and remembers everything.

A server remembers what reached it from each user, and what it made of all of it together; everybody has what
everybody was sent. Nothing in a transcript follows from a rating in any other way.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from dprec.arrays import AnyInts, Floats, Ints
from dprec.attacks.broadcasts import Broadcast
from dprec.attacks.uploads import Upload
from dprec.completion import Profiles
from dprec.observations import Observations
from dprec.ratings import RatingScale


@dataclass(frozen=True, eq=False)
class ReleasedSum:
    """A sum with noise that everybody may see, and what users added to it, which nobody has."""

    released: Floats
    """Shape (entries,)."""
    deviation: float
    """Standard deviation of the noise in every entry."""
    added: Callable[[Profiles], sp.csr_array] | None = None
    """From profiles to what their devices add, as anybody can compute it from what devices were sent;
    shape (users, entries).
    """


def _each_by_itself(joined: Observations) -> Observations:
    """Return reports that are independent given the ratings."""
    return joined


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
    read_together: Callable[[Observations], Observations] = _each_by_itself
    """From reports of several rounds, joined, to what they say together: cells whose reports depend on each
    other, such as on one permanent answer, are one.
    """
    uploads: tuple[Upload, ...] = ()
    """What users whom the server can tell apart sent in each round about numbers that follow from a model."""
    vectors: sp.csr_array | Floats | None = None
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
    def of_all(cls, parts: "Sequence[Transcript]") -> "Transcript":
        """Return what is said in several runs, of which there is one at least; lists are the last ones."""
        last = parts[-1]
        return replace(
            last,
            reports=tuple(each for part in parts for each in part.reports),
            uploads=tuple(each for part in parts for each in part.uploads),
            sums=tuple(each for part in parts for each in part.sums),
        )

    @property
    def parted_sums(self) -> tuple[ReleasedSum, ...]:
        """The sums of which it is known what a profile adds to them."""
        return tuple(each for each in self.sums if each.added is not None)

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
