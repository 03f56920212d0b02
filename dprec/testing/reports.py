"""What every family of reports must do, on a tiny catalogue."""

import math
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pytest

from dprec.accounting import PrivacyBudget, PrivacyUnit
from dprec.arrays import Uint64s, offsets, rows_of
from dprec.mechanisms import Mechanism
from dprec.randomness import DeviceDraws, Draws, generator
from dprec.ratings import RatingScale
from dprec.reports import Profiles, ReportFamily, Wanted

_STRONGEST_FIRST: tuple[PrivacyUnit, ...] = ("cell", "rating", "user")
_MASTER = bytes(range(16))
_PADDING = 8
"""Bits to which a report is padded at most."""


class FamilyContract:
    """Tests of the family of a mechanism, given by the fixture `mechanism`.

    Attributes
    ----------
    scale : RatingScale
    epsilon : float
        In the strongest unit that is not per user, if the family has one; else per user.
    n_items : int
    """

    scale: ClassVar[RatingScale] = RatingScale.evenly(1, 5, 1)
    epsilon: ClassVar[float] = 2.0
    n_items: ClassVar[int] = 6

    @pytest.fixture
    def mechanism(self) -> Mechanism:
        """Return the mechanism whose reports are tested."""
        raise NotImplementedError("a subclass gives the mechanism")

    @pytest.fixture
    def family(self, mechanism: Mechanism) -> ReportFamily:
        """Return its family."""
        unit = next(unit for unit in _STRONGEST_FIRST if unit in mechanism.report_family.units)
        budget = PrivacyBudget(epsilon=self.epsilon, per=unit) if mechanism.private else None
        family = mechanism.family(budget, self.scale, self.n_items)
        family.check()
        return family

    def people(self, users: int, seed: int = 1) -> Profiles:
        """Return some users, of whom the first has no rating and the second has rated everything."""
        random = generator(seed, "people of a contract")
        rated = random.random((users, self.n_items)) < 0.4
        rated[0], rated[1:2] = False, True
        levels = random.integers(1, self.scale.levels + 1, int(rated.sum())).astype(np.uint8)
        return Profiles(rated.sum(axis=1), np.nonzero(rated)[1].astype(np.int32), levels)

    def draws(self, people: Profiles, first: int = 0) -> Callable[[str], Draws]:
        """Return the random words of users whose first has some number."""
        values, indptr = self.scale.values[people.levels - 1], offsets(people.counts)
        return partial(DeviceDraws.of, _MASTER, first, indptr, people.items, values)

    def part(self, people: Profiles, start: int, stop: int) -> Profiles:
        """Return consecutive users."""
        indptr = offsets(people.counts)
        cells = slice(int(indptr[start]), int(indptr[stop]))
        return Profiles(people.counts[start:stop], people.items[cells], people.levels[cells])

    def test_what_is_encoded_is_read(self, family: ReportFamily) -> None:
        """All reports are valid, and show the rated items if they reveal them and nothing else if not."""
        people = self.people(40)
        reader = family.reader(40, Wanted(likelihood=True, symbols=True))
        assert reader.take(np.arange(40), family.encode(people, self.draws(people))).all()
        seen = reader.observations()
        assert seen.shape == (40, self.n_items)
        assert isinstance(seen.evidence, family.evidence)
        if not family.hides_items:
            assert seen.users.tolist() == rows_of(people.counts).tolist()
            assert seen.items.tolist() == people.items.tolist()
        assert seen.likelihood is None or seen.likelihood.shape == (seen.items.size, self.scale.levels)

    def test_hostile_reports_are_refused(self, family: ReportFamily) -> None:
        """Whatever the bytes are, nothing is raised; what is refused says nothing."""
        people = self.people(30)
        honest = family.encode(people, self.draws(people))
        random = generator(3, "hostile reports")
        longer = [report + bytes(1 << 12) for report in honest]
        assert not family.reader(30, Wanted()).take(np.arange(30), longer).any()
        garbage = [random.bytes(int(size)) for size in random.integers(0, 40, 300)]
        reader = family.reader(330, Wanted(likelihood=True, symbols=True))
        accepted = reader.take(np.arange(330), [*garbage, *(report[:-1] for report in honest)])
        seen = reader.observations()
        assert accepted[seen.users].all()
        assert ((seen.items >= 0) & (seen.items < self.n_items)).all()

    def test_a_cohort_makes_no_difference(self, family: ReportFamily) -> None:
        """A report depends on its user alone: the same bytes whoever is computed beside it, and again."""
        people = self.people(25)
        together = family.encode(people, self.draws(people))
        cuts = [0, 1, 2, 11, 25]
        apart = [
            report
            for start, stop in pairwise(cuts)
            for own in [self.part(people, start, stop)]
            for report in family.encode(own, self.draws(own, start))
        ]
        assert together == apart == family.encode(people, self.draws(people))

    def test_losses_are_those_of_the_dominating_pair(self, family: ReportFamily) -> None:
        """The loss of a draw is the largest ratio of any two rows, and a user's draws add up."""
        if family.budget is None:
            return
        counts = np.arange(self.n_items + 1)
        released = family.draws_about(counts)
        per_rating, per_user = family.losses(counts)
        of_draw = [_brute_force(channel.weights) for channel in released.channels]
        summed = np.array(of_draw)[released.channel] * released.draws
        np.testing.assert_allclose(per_user, np.where(released.draws > 0, summed, 0.0), rtol=1e-9)
        protected = family.protects(counts)
        unit = np.array(of_draw)[released.channel] if family.by_cell else per_user
        np.testing.assert_allclose(per_rating[protected], unit[protected], rtol=1e-9)
        assert np.isnan(per_rating[~protected]).all()
        most_per_rating, most_per_user = family.most_losses()
        assert np.nanmax(per_rating) <= most_per_rating
        assert per_user.max() <= most_per_user
        promised = per_user if family.budget.per == "user" else per_rating[protected]
        assert promised.max() <= family.budget.epsilon

    def test_reports_have_the_size_that_is_said(self, family: ReportFamily) -> None:
        """The mean over users with the same number of ratings is that before padding, to a byte."""
        users, ratings = 400, 3
        random = generator(5, "items of a contract")
        items = np.sort(random.random((users, self.n_items)).argsort(axis=1)[:, :ratings], axis=1)
        levels = random.integers(1, self.scale.levels + 1, users * ratings).astype(np.uint8)
        people = Profiles(np.full(users, ratings), items.ravel().astype(np.int32), levels)
        sizes = 8 * np.array([len(report) for report in family.encode(people, self.draws(people))])
        assert abs(sizes.mean() - family.size(ratings).bits) <= _PADDING + 0.1 * family.size(ratings).bits

    def test_the_parts_of_a_report_are_all_of_it(self, family: ReportFamily) -> None:
        """What a page names as the parts of a report fills it, but for padding."""
        people = self.people(40)
        for report in family.encode(people, self.draws(people)):
            assert 0 <= 8 * len(report) - sum(family.parts(report).values()) < 8

    def test_users_without_ratings_report_and_lose_nothing_more(self, family: ReportFamily) -> None:
        """An empty profile is a profile: its report is valid, and costs no more than any other."""
        nobody = Profiles(
            np.zeros(3, dtype=np.int64), np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.uint8)
        )
        reader = family.reader(3, Wanted())
        assert reader.take(np.arange(3), family.encode(nobody, self.draws(nobody))).all()
        per_rating, per_user = family.report_losses(nobody, self.draws(nobody))
        assert (per_user <= family.most_losses()[1]).all()
        assert family.hides_items or (not per_user.any() and np.isnan(per_rating).all())

    def test_what_follows_is_answered_and_read(self, family: ReportFamily) -> None:
        """A further exchange has a question that devices accept; other bytes are none; answers are read."""
        follow_up = family.follow_up
        assert (follow_up is not None) is family.asks_further
        if follow_up is None:
            return
        people = self.people(40)
        draws = self.draws(people)
        reader = family.reader(40, Wanted())
        reader.take(np.arange(40), family.encode(people, draws))
        asking = follow_up.asking(reader.observations())
        assert follow_up.accepts(asking.question)
        assert not follow_up.accepts(asking.question + b"\0")
        answers = follow_up.encode(people, asking.question, draws)
        assert asking.take(np.arange(40), answers).all()
        assert not asking.take(np.arange(40), [answer + b"\1" for answer in answers]).any()
        on_devices = family.report_losses(people, draws)[1]
        on_devices = on_devices + follow_up.losses(people, asking.question, draws)
        np.testing.assert_allclose(on_devices, family.losses(people.counts, asking.asked)[1], rtol=1e-9)
        assert on_devices.max() <= family.most_losses()[1] * (1 + 1e-9)


def _brute_force(weights: Uint64s) -> float:
    """Return the largest log ratio of two rows, in integers."""
    pairs = [(int(one), int(other)) for column in weights.T for one in column for other in column]
    return max(math.log(one / other) if other else math.inf for one, other in pairs if one)
