"""Reports in which answers may be missing: codec, losses, evidence, and what hostile bytes can say."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dprec.accounting import PrivacyBudget
from dprec.mechanisms import FisherOptimal, Mechanism, RandomizedResponse, ThresholdBit
from dprec.reports import PartlyAnsweredFamily, ProfileLevels, Wanted
from dprec.schedules import RepeatedAnswers
from dprec.testing import FamilyContract
from tests import make
from tests.make import STARS
from tests.refusals import refused_at

BUDGET = PrivacyBudget(epsilon=1.0)


def capped(mechanism: Mechanism, n_items: int) -> PartlyAnsweredFamily:
    protocol = make.one_shot(mechanism, BUDGET, answers=RepeatedAnswers(answers_per_user=3))
    family = protocol.family(STARS, n_items)
    assert isinstance(family, PartlyAnsweredFamily)
    return family


def partly(people: ProfileLevels, answers: int) -> ProfileLevels:
    """Return the same people, of whom each answers about so many ratings, the last ones, at most."""
    ends = np.repeat(np.cumsum(people.counts), people.counts)
    silent = ends - np.arange(people.levels.size) > answers
    return replace(people, levels=np.where(silent, 0, people.levels).astype(np.uint8))


class TestPartlyAnsweredFamily(FamilyContract):
    """The contract of every family, and what is specific to this one."""

    @pytest.fixture(params=[FisherOptimal(), ThresholdBit()], ids=lambda mechanism: mechanism.kind)
    def mechanism(self, request: pytest.FixtureRequest) -> Mechanism:
        return request.param

    @pytest.fixture
    def family(self, mechanism: Mechanism) -> PartlyAnsweredFamily:
        return capped(mechanism, self.n_items)

    def test_a_rating_without_an_answer_is_shown_and_costs_nothing(
        self, family: PartlyAnsweredFamily
    ) -> None:
        people = self.people(40)
        some = partly(people, 2)
        reader = family.reader(40, Wanted(likelihood=True, symbols=True))
        assert reader.take(np.arange(40), family.encode(some, self.draws(people))).all()
        seen, answered = reader.observations(), some.levels > 0
        assert seen.items.tolist() == people.items.tolist()
        assert seen.likelihood is not None
        assert seen.symbols is not None
        assert (np.ptp(seen.likelihood, axis=1) == 0).tolist() == (~answered).tolist()
        told = np.array([np.ptp(channel) > 0 for channel in seen.symbols.channels])
        assert told[seen.symbols.channel_of].tolist() == answered.tolist()
        # The device and the server charge for answers alone.
        answers = np.minimum(people.counts, 2)
        assert reader.told is not None
        assert reader.told.tolist() == answers.tolist()
        epsilon = family.channel(1).epsilon
        for _, per_user in (
            family.report_losses(some, self.draws(people)),
            family.losses(people.counts, reader.told),
        ):
            np.testing.assert_allclose(per_user, epsilon * answers)
        assert (family.draws_about(people.counts, reader.told).draws == answers).all()

    def test_a_rating_without_an_answer_is_reported_alike_whatever_it_is(
        self, family: PartlyAnsweredFamily
    ) -> None:
        people = self.people(40)
        other = replace(people, levels=(1 + people.levels % self.scale.levels).astype(np.uint8))
        reports = [family.encode(partly(each, 0), self.draws(each)) for each in (people, other)]
        assert reports[0] == reports[1]


@given(
    levels=st.lists(st.one_of(st.none(), st.integers(0, STARS.levels)), max_size=60),
    mechanism=st.sampled_from([RandomizedResponse(), ThresholdBit(), FisherOptimal()]),
    seed=st.integers(0, 2**32),
)
def test_any_profile_is_read_as_it_was_said(
    levels: list[int | None], mechanism: Mechanism, seed: int
) -> None:
    """``levels``: of each item of the catalogue; None if it is not rated, 0 without an answer."""
    family = capped(mechanism, len(levels) + 1)
    items = np.flatnonzero([level is not None for level in levels])
    said = np.array([level for level in levels if level is not None], dtype=np.uint8)
    words = np.random.default_rng(seed).integers(0, 2**64, items.size, dtype=np.uint64)
    symbols = family.perturb(np.array([items.size]), said, words)
    (report,) = family.codec.encode(np.array([0, items.size]), items, symbols)
    decoded = family.codec.decode([bytes(report)])
    assert decoded.valid.all()
    assert decoded.items.tolist() == items.tolist()
    assert decoded.symbols.tolist() == symbols.tolist()
    assert family.answered(decoded.symbols).tolist() == (said > 0).tolist()


def test_a_cap_needs_reports_of_one_symbol_each() -> None:
    class Own(ThresholdBit):
        class Family(ThresholdBit.report_family):  # type: ignore[name-defined, misc]
            pass

        report_family = Family

    with refused_at("mechanism"):
        make.one_shot(Own(), BUDGET, answers=RepeatedAnswers(answers_per_user=3))
