"""How contributions become sums with noise: who adds up, who adds the noise, and what travels.

A device encodes its contribution as its report; the reports of a partition are added up as integers, so that
the sums of partitions can be added; a release is the sum of everybody with Gaussian noise. A multiplier is
what of the noise counts for a loss: its standard deviation where contributions have a norm of 1 at most. What
a release has in all, `Aggregation.deviation` says.

The noise is a normal deviate rounded to an integer of units. As sums are integers, that is the Gaussian
mechanism, rounded afterwards: rounding costs nothing, and hides the deviate's last bits, by which sums
in floating point can be distinguished. Nor are there integers that no deviate stands for, which would tell
sums apart as well (`dprec.randomness.normal_steps`).
"""

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, Self

import numpy as np

from dprec import accounting
from dprec.arrays import Bools, Floats, Ints, Pieces, Uint64s, all_between
from dprec.components import Options
from dprec.errors import SettingError
from dprec.gradients import Aggregate, RoundDraws
from dprec.randomness import ReleaseDraws, normal_steps
from dprec.sums.contributions import UNIT, Contributions, Layout, LayoutT


@dataclass(frozen=True)
class FurtherMessages:
    """Payload bytes of the messages of a release besides its request and its report, for each device."""

    before: tuple[tuple[int, int], ...] = ()
    """Of each question that everybody is asked before reporting, and of its answer."""
    with_request: int = 0
    """What the request itself carries beside the model."""
    after: tuple[tuple[int, int], ...] = ()
    """Of each question to a device whose report arrived, and of its answer."""


@dataclass(frozen=True)
class Cost:
    """What a release costs a user who takes part in it."""

    epsilon: float = math.inf
    """By itself and without a delta, for any two profiles."""
    mechanism: accounting.EventMechanism | None = None
    """By which the losses of several releases compose."""


@dataclass(frozen=True, kw_only=True)
class Aggregation(Options):
    """Base of the ways to add up contributions."""

    kind: str = ""
    trust: ClassVar[accounting.Trust] = "central"
    reason: ClassVar[str] = ""
    """Why the loss is proved, for the guarantee: what follows a colon, to its full stop."""
    devices_add_noise: ClassVar[bool] = False
    """Whether the noise of a release is what devices add; else who adds up adds it."""
    masks: ClassVar[bool] = False
    """Whether devices mask what they send, for which real ones exchange keys."""
    adds_reports: ClassVar[bool] = True
    """Whether `summed` makes the reports of which it returns the sum."""
    by_itself: ClassVar[bool] = False
    """Whether each report is protected by itself, between any two profiles and without a delta."""

    def among(self, users: int, joined: int = 0) -> Self:
        """Return the aggregation as installed on so many devices; raises SettingError for too few.

        ``joined``: so many of them came after it was suited to the others.
        """
        return self

    def check_deployed(self) -> None:
        """Raise SettingError where devices and server of a deployment cannot do it."""

    def check(self, layout: Layout, multiplier: float) -> None:
        """Raise SettingError for settings that do not suit a release, once they are `among` so many."""

    def check_numbers(self, numbers: int) -> None:
        """Raise SettingError for more numbers, in all rounds together, than it can add up."""

    def divided(self, budget: accounting.PrivacyBudget | None, shares: Sequence[float]) -> Self:
        """Return the aggregation as installed, for a budget of which each round has a share.

        Raises SettingError for a budget that it cannot keep to.
        """
        return self

    def reporting(self, lasting: Uint64s, round_index: int) -> Bools:
        """Return which users have something to say in a round; see `RoundDraws.lasting`."""
        return np.ones(lasting.size, dtype=np.bool_)

    def costing(self, sizes: Ints) -> Bools:
        """Return which reports, of so many bytes each, say something."""
        return np.ones(sizes.size, dtype=np.bool_)

    def told(self, reports: Sequence[bytes], layout: Layout, multiplier: float) -> tuple[Ints, Floats]:
        """Return what reports say that are protected by themselves, of those that say anything.

        Their places, and unbiased estimates of what each user contributes, shape (places, rows * width).
        """
        raise NotImplementedError

    def symbols(self, reports: Sequence[bytes], cells: int) -> Ints:
        """Return what anybody can read in reports about some cells, as classes, shape (reports, cells).

        Nothing in reports that are not protected by themselves.
        """
        return np.zeros((len(reports), cells), dtype=np.int64)

    def notes(self) -> tuple[str, ...]:
        """Return what else a reader of the figures must know."""
        return ()

    @property
    def assumes(self) -> accounting.Assumptions:
        """What the loss takes for granted of devices and shufflers."""
        return accounting.Assumptions()

    def further_messages(self) -> FurtherMessages:
        """Return the bytes of what is exchanged around a report."""
        return FurtherMessages()

    def whole(self, sizes: Ints, layout: Layout, multiplier: float) -> Bools:
        """Return which reports, of so many bytes each, are whole as far as their size tells."""
        return np.ones(sizes.size, dtype=np.bool_)

    def sealed(self, sizes: Ints) -> Ints:
        """Return the bytes of reports of so many bytes as they leave the devices."""
        return sizes

    def sizes(self, sent: Ints, layout: Layout, multiplier: float, round_index: int) -> Ints:
        """Return the bytes that are charged for reports that arrived with so many bytes."""
        return sent

    def counted(self, users: int) -> int:
        """Return how many users a release is about, given how many reports are in its sum."""
        return users

    @property
    def tolerated(self) -> float:
        """Largest share of the devices without which a release succeeds."""
        return 1.0

    def can_release(self, present: Bools, added_up: int, round_index: int, public_seed: int) -> bool:
        """Return whether a release succeeds; if it fails, its budget is spent all the same.

        ``present``, shape (users,): whose whole report arrived; ``added_up``: how many reports are in the
        sum.
        """
        return True

    @property
    def largest_multiplier(self) -> float:
        """Largest noise that can be drawn, once `among` so many."""
        return math.inf

    def affordable(self, multiplier: float) -> int | None:
        """Return how many numbers a release should have, where a rule picks them; None for any number."""
        return None

    @abstractmethod
    def multipliers(
        self, budget: accounting.PrivacyBudget, shares: Sequence[float], farthest: float
    ) -> tuple[float, ...]:
        """Return the noise multipliers of some releases that keep a budget together, once `among` so many.

        Parameters
        ----------
        budget : PrivacyBudget
            What everything that is released may cost a user.
        shares : sequence of float
            Of the squared distance of means that each release spends; their sum is 1.
        farthest : float
            How far apart the contributions that are compared can be: 1 for those of a profile and none, which
            is zero, more for those of two profiles.
        """

    def farthest(self, distance: float) -> float:
        """Return how far apart contributions are as they are added up, given the most they were before."""
        return distance

    @abstractmethod
    def cost(self, multiplier: float, farthest: float) -> Cost:
        """Return what one release costs a user, for an accountant.

        ``farthest``: how far apart the contributions of two profiles can be; one and none are 1 apart.
        """

    @abstractmethod
    def encode(
        self, contributions: Contributions[LayoutT], layout: LayoutT, multiplier: float, draws: RoundDraws
    ) -> Sequence[bytes]:
        """Return every user's report, with the devices' share of the release's noise, if they have one."""

    def crafted(
        self,
        contributions: Contributions[LayoutT],
        layout: LayoutT,
        multiplier: float,
        draws: RoundDraws,
        malicious: int,
    ) -> Sequence[bytes]:
        """Return reports that say most for contributions, of devices that choose what they send.

        Every report is of a form that is accepted. ``malicious``: how many there are among all devices. By
        default the reports of honest devices, where who adds up computes contributions.
        """
        return self.encode(contributions, layout, multiplier, draws)

    @abstractmethod
    def decode(self, reports: Sequence[bytes], layout: Layout, multiplier: float) -> tuple[Bools, Aggregate]:
        """Return which reports of a partition are valid, shape (reports,), and the sum of these."""

    def summed(
        self,
        contributions: Contributions[LayoutT],
        layout: LayoutT,
        multiplier: float,
        draws: RoundDraws,
        present: Bools,
    ) -> tuple[Ints, Aggregate]:
        """Return the bytes of every user's report, and the sum of some, none of which anybody looks at.

        ``present``: whose report is in the sum, shape (users,). The sum has the distribution that it has in
        `decode`, once it is released: shares of the noise may be left for that (`Aggregate.undrawn`).
        """
        reports = Pieces.of(self.encode(contributions, layout, multiplier, draws))
        _, aggregate = self.decode(reports.chosen(np.flatnonzero(present)), layout, multiplier)
        return reports.sizes, aggregate

    def sum_shape(self, layout: Layout) -> tuple[int, ...]:
        """Return the shape of a sum of reports."""
        return layout.n_rows, layout.width

    @abstractmethod
    def possible(self, aggregate: Aggregate, layout: Layout, multiplier: float) -> bool:
        """Return whether valid reports can have a sum, of the right shape, that was added up elsewhere."""

    @abstractmethod
    def length(self, aggregate: Aggregate, layout: Layout, multiplier: float) -> float:
        """Return the norm of one report without noise, or of the difference of two.

        In units of the largest contribution of a user.
        """

    @abstractmethod
    def release(self, aggregate: Aggregate, layout: Layout, multiplier: float, draws: ReleaseDraws) -> Floats:
        """Return the sums with noise in the units of the statistics, shape (items, width).

        The noise of each number has the standard deviation ``noise_in(...) * layout.scales``.
        """

    def most_of_one(self, layout: Layout, multiplier: float) -> float:
        """Return the most that one report which is accepted adds to a number of a release.

        In units of contributions of a norm of 1; infinite where nothing bounds it. By default what a profile
        can add, where reports are what contributions are computed from.
        """
        return layout.largest

    def deviation(self, layout: Layout, multiplier: float, users: int) -> float:
        """Return the standard deviation of what a number of a release is off, with so many users in it.

        In units of contributions of a norm of 1, and from public numbers alone: noise as it is drawn, and
        what rounding or sampling contributions adds, on average over the numbers at most. The multiplier is
        the least of it that counts for a loss.
        """
        return multiplier

    def noise_in(self, aggregate: Aggregate, layout: Layout, multiplier: float) -> float:
        """Return the `deviation` of the release of a sum, as far as the sum tells."""
        return self.deviation(layout, multiplier, aggregate.users)

    @abstractmethod
    def report_bits(self, layout: Layout, ratings: int, multiplier: float) -> int:
        """Return the size in bits of the report of a user with that many chosen ratings, evenly spread."""


class OfAllUsers:
    """Mixin of the aggregations whose devices have to know how many they are."""

    users: int | None
    dropouts: float

    @property
    def tolerated(self) -> float:
        """Largest share of the devices that may drop out, as the settings say."""
        return self.dropouts

    def check_users(self, users: int) -> None:
        """Refuse another number of users than the settings say, if they say one."""
        if self.users is not None and self.users != users:
            raise SettingError("users", str(self.users), f"the {users} users of the run, or none")

    @property
    def _n_users(self) -> int:
        if self.users is None:
            raise ValueError("an aggregation for no number of users; see `among`")
        return self.users


NoiseLoss = Callable[[float, float], float]
"""From a distance in standard deviations of the noise, above 0, and delta to epsilon."""


@dataclass(frozen=True, kw_only=True)
class NoisyAggregation(Aggregation):
    """Base of the ways whose releases have noise of their own, and compose as those of normal noise do."""

    @abstractmethod
    def multiplier(self, epsilon: float, delta: float) -> float:
        """Return the smallest noise multiplier with which one release is (epsilon, delta)-private per user.

        Releases with multipliers m_t cost as much as one with the multiplier (sum of m_t^-2)^-1/2.
        """

    @property
    @abstractmethod
    def loss(self) -> NoiseLoss:
        """What releases cost together: equal for aggregations whose releases compose with each other."""

    def epsilon(self, multiplier: float, delta: float) -> float:
        """Return what one release costs a user; infinite without noise. The inverse of `multiplier`."""
        return self.loss(1 / multiplier, delta) if multiplier > 0 else np.inf

    def multipliers(
        self, budget: accounting.PrivacyBudget, shares: Sequence[float], farthest: float
    ) -> tuple[float, ...]:
        """Divide the noise of one release that has the whole budget by the roots of the shares."""
        undivided = farthest * self.multiplier(budget.epsilon, budget.delta)
        return tuple(undivided / float(np.sqrt(share)) for share in shares)

    def cost(self, multiplier: float, farthest: float) -> Cost:
        """Return a sum with noise, whose cost needs a delta."""
        if not multiplier:
            return Cost()
        return Cost(mechanism=accounting.NoisySum(1 / multiplier, self.loss, farthest))


_NUMBERS_AT_ONCE = 1 << 17
"""As many as a processor keeps at hand."""

_MARGIN = 1 + 1e-9
"""Contributions are scaled in floating point, so their norm may exceed 1 by a few units of its last place."""


def _gaussian_loss(distance: float, delta: float) -> float:
    return accounting.gaussian_epsilon(_MARGIN * distance, delta)


@dataclass(frozen=True, kw_only=True)
class CentralAggregation(NoisyAggregation):
    """The server receives what every user's contribution is computed from, adds up, and adds the noise."""

    kind: Literal["central"] = "central"
    papers: ClassVar[tuple[str, ...]] = ("chien2021",)
    trust: ClassVar[accounting.Trust] = "central"
    reason: ClassVar[str] = (
        "every release is a sum of contributions of bounded norm, with Gaussian noise, and releases compose "
        "exactly. The noise is drawn in double precision and rounded to the integers of the sums"
    )

    def multiplier(self, epsilon: float, delta: float) -> float:
        """Return the noise of the analytic Gaussian mechanism."""
        return _MARGIN / accounting.largest_mu(epsilon, delta)

    @property
    def loss(self) -> NoiseLoss:
        """The cost by the analytic Gaussian mechanism."""
        return _gaussian_loss

    def encode(
        self, contributions: Contributions[LayoutT], layout: LayoutT, multiplier: float, draws: RoundDraws
    ) -> Sequence[bytes]:
        """Send what the contributions are computed from."""
        return contributions.encode(layout)

    def decode(self, reports: Sequence[bytes], layout: Layout, multiplier: float) -> tuple[Bools, Aggregate]:
        """Reject what is malformed or out of bounds, and add up the rest."""
        valid, numbers, places = layout.sparsely_added_up(reports)
        return valid, Aggregate(numbers, None, int(valid.sum()), places=places)

    def possible(self, aggregate: Aggregate, layout: Layout, multiplier: float) -> bool:
        """Return whether no number exceeds what so many users can contribute."""
        largest = aggregate.users / UNIT
        return all_between(aggregate.numbers, -largest, largest)

    def length(self, aggregate: Aggregate, layout: Layout, multiplier: float) -> float:
        """Return the norm of the integers of a sum."""
        return float(np.linalg.norm(aggregate.total.astype(np.float64))) * UNIT

    def release(self, aggregate: Aggregate, layout: Layout, multiplier: float, draws: ReleaseDraws) -> Floats:
        """Add rounded Gaussian noise, which changes with the round and with the sums."""
        random = draws.generator("noise of sums", aggregate.total)
        noise = normal_steps(random, multiplier / UNIT, aggregate.total.shape)
        noise += aggregate.total
        # In the same memory: there may be little more.
        released: Floats = noise.view(np.float64)
        at_once = max(1, _NUMBERS_AT_ONCE // max(1, layout.width))
        for start in range(0, len(noise), at_once):
            rows = slice(start, start + at_once)
            released[rows] = noise[rows] * (UNIT * layout.scales)
        return released

    def report_bits(self, layout: Layout, ratings: int, multiplier: float) -> int:
        """Return the bits of what the contribution is computed from."""
        return layout.report_bits(ratings)
