"""Reports at several budgets: numbers, refusals, losses, and what hostile bytes can say."""

from dataclasses import replace

import numpy as np
import pytest

from dprec.accounting import OwnBudgets
from dprec.mechanisms import FisherOptimal, Mechanism
from dprec.ratings import RatingScale
from dprec.reports import MixedFamily, ProfileLevels, Wanted
from dprec.testing import FamilyContract

SHARES = {0: 0.2, 0.5: 0.3, 1: 0.4, 2: 0.1}
REFUSAL, LARGEST = 0, 3


def mixed(mechanism: Mechanism, scale: RatingScale, n_items: int) -> MixedFamily:
    family = mechanism.family(OwnBudgets.of(SHARES), scale, n_items)
    assert isinstance(family, MixedFamily)
    family.check()
    return family


class TestMixedFamily(FamilyContract):
    """The contract of every family, and what is specific to this one."""

    @pytest.fixture
    def mechanism(self) -> Mechanism:
        return FisherOptimal()

    @pytest.fixture
    def family(self, mechanism: Mechanism) -> MixedFamily:
        return mixed(mechanism, self.scale, self.n_items)

    def people(self, users: int, seed: int = 1) -> ProfileLevels:
        """Return users with all budgets in turn, none of whom refuses."""
        people = super().people(users, seed)
        return replace(people, numbers=(1 + np.arange(users) % LARGEST).astype(np.uint8))

    def part(self, people: ProfileLevels, start: int, stop: int) -> ProfileLevels:
        assert people.numbers is not None
        return replace(super().part(people, start, stop), numbers=people.numbers[start:stop])

    def test_a_report_is_that_of_its_budget_behind_its_number(self, family: MixedFamily) -> None:
        people = self.people(30)
        reports = family.encode(people, self.draws(people))
        assert people.numbers is not None
        assert [report[0] for report in reports] == people.numbers.tolist()
        for number, each in family.families.items():
            alone = replace(people, numbers=None)
            words = self.draws(people)
            expected = each.encode(alone, lambda purpose, words=words, n=number: words(f"{purpose} {n}"))
            own = np.flatnonzero(people.numbers == number).tolist()
            assert [reports[user][1:] for user in own] == [expected[user] for user in own]

    def test_channels_of_all_budgets_are_evidence(self, family: MixedFamily) -> None:
        people = self.people(30)
        reader = family.reader(30, Wanted(symbols=True))
        reader.take(np.arange(30), family.encode(people, self.draws(people)))
        seen = reader.observations()
        symbols = seen.symbols
        assert symbols is not None
        assert people.numbers is not None
        for cell, user in enumerate(seen.users.tolist()):
            channel = family.families[int(people.numbers[user])].channel(1)
            sent_through = symbols.channels[symbols.channel_of[cell]]
            np.testing.assert_array_equal(sent_through, channel.probabilities)

    def test_who_refuses_sends_and_loses_nothing(self, family: MixedFamily) -> None:
        people = replace(self.people(8), numbers=np.array([REFUSAL, 1, 2, 3] * 2, dtype=np.uint8))
        reports = family.encode(people, self.draws(people))
        assert [len(report) == 0 for report in reports] == [True, False, False, False] * 2
        counts, numbers = np.full(4, 5), np.arange(4)
        per_rating, per_user = family.losses(counts, numbers)
        np.testing.assert_allclose(per_rating, [0, 0.5, 1, 2], rtol=1e-9)
        np.testing.assert_allclose(per_user, [0, 2.5, 5, 10], rtol=1e-9)
        drawn = family.draws_about(counts, numbers)
        assert drawn.draws.tolist() == [0, 5, 5, 5]
        losses = [channel.epsilon for channel in drawn.channels]
        np.testing.assert_allclose(np.array(losses)[drawn.channel][1:], [0.5, 1, 2], rtol=1e-9)
        on_devices = family.report_losses(replace(people, counts=np.full(8, 5)), self.draws(people))
        np.testing.assert_allclose(on_devices[1], [0, 2.5, 5, 10] * 2, rtol=1e-9)

    def test_numbers_that_nobody_has_are_rejected(self, family: MixedFamily) -> None:
        people = self.people(4)
        honest = family.encode(people, self.draws(people))
        hostile = [b"", bytes([REFUSAL]) + honest[1][1:], b"\x04" + honest[2][1:], b"\xff", honest[3]]
        reader = family.reader(5, Wanted(symbols=True))
        assert reader.take(np.arange(5), hostile).tolist() == [False] * 4 + [True]
        seen = reader.observations()
        assert set(seen.users.tolist()) <= {4}
        # The server charges the most where it was told nothing that holds.
        assert reader.told is not None
        assert reader.told.tolist() == [LARGEST] * 4 + [honest[3][0]]

    def test_a_user_who_chooses_again_draws_anew(self, family: MixedFamily) -> None:
        rated = np.full(200, self.n_items)
        items = np.tile(np.arange(self.n_items, dtype=np.int32), 200)
        people = ProfileLevels(rated, items, np.full(items.size, 3, dtype=np.uint8))
        drawn = [
            self.draws(people)(f"report {number}").per_cell(rated, items, 1) for number in family.families
        ]
        assert not np.intersect1d(drawn[0], drawn[1]).size
