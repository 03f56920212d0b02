"""What every kind of gradient report must do."""

import math
from collections.abc import Sequence

import numpy as np
import pytest

from dprec.arrays import Floats
from dprec.completion import Profiles, solve_user_factors
from dprec.datasets import Synthetic
from dprec.gradients import Aggregate, GradientReport, RoundDraws
from dprec.randomness import DeviceDraws, generator


class GradientContract:
    """Tests of a kind of gradient report, given by the fixture `gradient`.

    The other attributes and methods make partitions and reports, and are available to further tests.

    Attributes
    ----------
    items, rank, users : int
        Size of the catalogue, number of factors, and users of the partition in most tests.
    """

    items, rank, users = 24, 2, 40

    @pytest.fixture
    def gradient(self) -> GradientReport:
        """Return the kind of report that is tested."""
        raise NotImplementedError("a subclass gives the kind of report")

    @property
    def shape(self) -> tuple[int, int]:
        """Items and rank."""
        return self.items, self.rank

    def profiles(self, users: int) -> Profiles:
        """Return the ratings of a number of users, of whom every eleventh has none."""
        ratings = Synthetic(users=users, items=self.items, ratings=users * 8, seed=3).load()
        ratings = ratings.select(ratings.users % 11 != 5)
        return Profiles(ratings.indptr, ratings.items, ratings.values, self.items)

    def item_factors(self) -> Floats:
        """Return factors as a server might broadcast them, shape (items, rank)."""
        factors = generator(1, "test").normal(0.0, 0.3, self.shape)
        factors[:, 0] += 1.0
        return factors

    def encoded(
        self,
        gradient: GradientReport,
        profiles: Profiles,
        *,
        epsilon: float = 2.0,
        first: int = 0,
        round_index: int = 1,
    ) -> list[bytes]:
        """Return the reports of a partition; ``first`` is the global index of its first user."""
        factors = self.item_factors()
        own = solve_user_factors(profiles, factors, 1.0)
        return gradient.encode(profiles, own, factors, epsilon, self.draws(profiles, first, round_index))

    def draws(self, profiles: Profiles, first: int = 0, round_index: int = 1) -> RoundDraws:
        """Return the draws of a partition in a round."""
        devices = DeviceDraws.of(bytes(16), first, profiles.indptr, profiles.items, profiles.values, "test")
        return RoundDraws(devices, round_index, public_seed=9)

    def hostile(self, gradient: GradientReport, good: bytes) -> list[bytes]:
        """Return reports that no device would send; subclasses may add others that must be refused."""
        reports = [good + b"\0", good[:-1], good * 300, b"\xff" * len(good), bytes(100_000)]
        # If reports reveal what was rated, an empty one is valid and means "nothing".
        return [*reports, b""] if gradient.hides_rated_items else reports

    @pytest.mark.parametrize("size", [1, 7, 39])
    def test_reports_and_their_sum_do_not_depend_on_the_partition(
        self, gradient: GradientReport, size: int
    ) -> None:
        """Whoever computes a report, and in whatever batches the server adds them up."""
        profiles = self.profiles(self.users)
        together = self.encoded(gradient, profiles)
        assert len(together) == self.users
        alone: list[bytes] = []
        sums = []
        for start in range(0, self.users, size):
            partition = _part(profiles, start, min(start + size, self.users))
            reports = self.encoded(gradient, partition, first=start)
            sums.append(gradient.decode(reports, self.shape)[1])
            alone += reports
        assert alone == together
        valid, aggregate = gradient.decode(together, self.shape)
        assert valid.all()
        assert aggregate.users == self.users
        total = sums[0]
        for more in sums[1:]:
            total = total + more
        assert _same(total, aggregate)

    def test_other_rounds_have_other_noise(self, gradient: GradientReport) -> None:
        """And the same round has the same."""
        profiles = self.profiles(self.users)
        first = self.encoded(gradient, profiles)
        assert (first != self.encoded(gradient, profiles, round_index=2)) == gradient.private
        assert first == self.encoded(gradient, profiles)

    def test_private_reports_are_alike_whatever_is_rated(self, gradient: GradientReport) -> None:
        """Their length reveals nothing."""
        assert gradient.hides_rated_items == gradient.private
        if gradient.private:
            assert len({len(report) for report in self.encoded(gradient, self.profiles(self.users))}) == 1

    def test_the_size_of_a_report_is_known_beforehand(self, gradient: GradientReport) -> None:
        """From the catalogue, the rank and the number of ratings, up to the padding to bytes."""
        items = np.linspace(0, self.items - 1, 6).astype(np.int32)
        profile = Profiles(np.array([0, 6]), items, np.full(6, 3.0), self.items)
        (report,) = self.encoded(gradient, profile)
        assert len(report) == -(-gradient.report_bits(self.shape, 6) // 8)

    def test_the_loss_of_a_report_is_the_budget(self, gradient: GradientReport) -> None:
        """Never more, and infinite if nothing is protected."""
        if gradient.private:
            assert 0.5 - 1e-9 <= gradient.exact_epsilon(0.5) <= 0.5
        else:
            assert gradient.exact_epsilon(math.inf) == math.inf

    @pytest.mark.parametrize("magnitude", [1e4, 1e20, 3.4e38])
    def test_every_finite_broadcast_is_answered_whatever_is_rated(
        self, gradient: GradientReport, magnitude: float
    ) -> None:
        """A server may broadcast anything; whether a device fails must not depend on its ratings."""
        profiles, usual = self.profiles(self.users), self.item_factors()
        for factors in (
            np.full(self.shape, magnitude),
            magnitude * np.sign(usual),
            np.where(np.arange(self.items)[:, None] == 3, magnitude, usual),
        ):
            own = solve_user_factors(profiles, factors, 1.0)
            reports = gradient.encode(profiles, own, factors, 2.0, self.draws(profiles))
            assert len(reports) == self.users
            if gradient.private:
                assert gradient.decode(reports, self.shape)[0].all()

    def test_hostile_reports_enter_nothing(self, gradient: GradientReport) -> None:
        """One at a time or together, among honest ones."""
        good = next(report for report in self.encoded(gradient, self.profiles(self.users)) if report)
        for report in self.hostile(gradient, good):
            self._check_rejected(gradient, [report])
        self._check_rejected(gradient, self.hostile(gradient, good))

    def _check_rejected(self, gradient: GradientReport, reports: Sequence[bytes]) -> None:
        honest = self.encoded(gradient, self.profiles(self.users))
        valid, aggregate = gradient.decode([*honest[:20], *reports, *honest[20:]], self.shape)
        accepted = [True] * 20 + [False] * len(reports) + [True] * (self.users - 20)
        assert valid.tolist() == accepted
        assert _same(aggregate, gradient.decode(honest, self.shape)[1])

    def test_random_bytes_never_raise_and_move_nothing_far(self, gradient: GradientReport) -> None:
        """And it is not an error if nobody reports."""
        draws = generator(5, "bytes")
        reports = [draws.bytes(int(length)) for length in draws.integers(0, 120, 3000)]
        valid, aggregate = gradient.decode(reports, self.shape)
        assert aggregate.users == int(valid.sum())
        if aggregate.users:
            mean = gradient.gradient(aggregate, self.shape, 1.0, 9)
            assert mean.shape == self.shape
            assert np.isfinite(mean).all()
        valid, aggregate = gradient.decode([], self.shape)
        assert valid.size == aggregate.users == 0


def _part(profiles: Profiles, start: int, stop: int) -> Profiles:
    """Return the profiles of the users from start to before stop."""
    first, last = profiles.indptr[start], profiles.indptr[stop]
    indptr = profiles.indptr[start : stop + 1] - first
    return Profiles(indptr, profiles.items[first:last], profiles.values[first:last], profiles.n_items)


def _same(one: Aggregate, other: Aggregate) -> bool:
    raters = (one.raters is None) == (other.raters is None) and (
        one.raters is None or other.raters is None or one.raters.tolist() == other.raters.tolist()
    )
    return raters and one.users == other.users and one.total.tolist() == other.total.tolist()
