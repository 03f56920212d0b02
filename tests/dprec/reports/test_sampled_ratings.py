"""Reports on samples of ratings: who takes part, at which epsilon, and what is lost of it."""

from dataclasses import replace

import numpy as np
import pytest

from dprec.accounting import OwnBudgets
from dprec.mechanisms import FisherOptimal, Mechanism
from dprec.reports import ProfileLevels, SampledRatingsFamily, Wanted
from dprec.testing import FamilyContract

SHARES = {0: 0.2, 0.5: 0.3, 1: 0.4, 3: 0.1}
SAMPLED_AT = 3.0
LIKELY = np.expm1([0, 0.5, 1, 3]) / np.expm1(3)


class TestSampledRatingsFamily(FamilyContract):
    """The contract of every family, and what is specific to this one."""

    @pytest.fixture
    def mechanism(self) -> Mechanism:
        return FisherOptimal()

    @pytest.fixture
    def family(self, mechanism: Mechanism) -> SampledRatingsFamily:
        budget = OwnBudgets.of(SHARES, sampled_at=SAMPLED_AT)
        family = mechanism.family(budget, self.scale, self.n_items)
        assert isinstance(family, SampledRatingsFamily)
        family.check()
        return family

    def people(self, users: int, seed: int = 1) -> ProfileLevels:
        """Return users whose ratings all take part."""
        return replace(super().people(users, seed), numbers=np.full(users, 3, dtype=np.uint8))

    def part(self, people: ProfileLevels, start: int, stop: int) -> ProfileLevels:
        assert people.numbers is not None
        return replace(super().part(people, start, stop), numbers=people.numbers[start:stop])

    def test_ratings_take_part_by_their_users_epsilon(self, family: SampledRatingsFamily) -> None:
        users = 8000
        rated, numbers = np.full(users, self.n_items), (np.arange(users) % 4).astype(np.uint8)
        items = np.tile(np.arange(self.n_items, dtype=np.int32), users)
        people = ProfileLevels(rated, items, np.full(items.size, 3, dtype=np.uint8), numbers)
        reader = family.reader(users, Wanted(symbols=True))
        accepted = reader.take(np.arange(users), family.encode(people, self.draws(people)))
        assert accepted.tolist() == (numbers > 0).tolist()
        seen = reader.observations()
        counts = np.bincount(seen.users, minlength=users)
        cells = users / 4 * self.n_items
        for number, likely in enumerate(LIKELY):
            taken = counts[numbers == number].sum() / cells
            # A share is beyond five standard deviations with a chance below 1e-6.
            assert abs(taken - likely) <= 5 * np.sqrt(likely * (1 - likely) / cells)
        symbols = seen.symbols
        assert symbols is not None
        for channel in symbols.channels:
            np.testing.assert_array_equal(channel, family.largest.channel(1).probabilities)

    def test_a_seen_sample_loses_the_epsilon_of_the_reports(self, family: SampledRatingsFamily) -> None:
        counts, numbers = np.full(4, 5), np.arange(4)
        account = family.accountant(counts, numbers > 0, numbers)
        np.testing.assert_allclose(account.get_epsilon(per="rating")[1:], SAMPLED_AT, rtol=1e-9)
        np.testing.assert_allclose(account.get_epsilon()[1:], 5 * SAMPLED_AT, rtol=1e-9)
        assert account.claimed is not None
        np.testing.assert_allclose(account.claimed.get_epsilon(per="rating")[1:], [0.5, 1, 3], rtol=1e-9)
