"""What users sent in a round about numbers that their devices computed, such as coordinates of a gradient.

The server knows what it sent down, and the code that devices run. What it is not told is the profile, so it
computes what made-up profiles would have sent (Yuan et al. [yuan2023]).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from dprec.arrays import Floats, Ints
from dprec.completion import Profiles

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

    def to_matrix(self) -> sp.csr_array:
        """Return all answers, those of a user about one number added up; shape (users, numbers)."""
        parts = list(self.read())
        users, numbers, answers = (
            np.concatenate([np.zeros(0, dtype), *(getattr(part, name) for part in parts)])
            for name, dtype in (("users", np.int64), ("numbers", np.int64), ("answers", np.float64))
        )
        shape = self.n_users, self.n_numbers
        return sp.coo_array((answers, (users, numbers)), shape=shape).tocsr()


def added_up(uploads: Sequence[Upload]) -> sp.csr_array | None:
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
        whole = variances + deviation**2
        return -0.5 * (np.log(whole) + (answers - means) ** 2 / whole)

    return likelihood
