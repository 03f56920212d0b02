from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pytest

from dprec.accounting import PrivacyBudget
from dprec.binarization import binary_scale
from dprec.channel import Channel
from dprec.errors import InputError
from dprec.mechanisms import (
    MECHANISMS,
    BitsAndCounts,
    BoundedLaplace,
    HiddenThreshold,
    Mechanism,
    RandomizedResponse,
    RandomizedSet,
    Raw,
    ResidualBits,
    UserLevelBit,
    ZhengRandomizedResponse,
)
from dprec.mechanisms.randomized_response import BinaryFlip
from dprec.randomness import even_share
from dprec.ratings import RatingScale
from dprec.reports import CellFamily, DeviceChannel
from dprec.testing import FamilyContract
from tests.make import STARS
from tests.own_family import OwnBits
from tests.refusals import refused_at

N_ITEMS = 20
# The probabilities of a binary flip are given; a budget only bounds them, and is not spent to the end.
# Mechanisms that compare a user's ratings are calibrated otherwise: see test_residual_bits.py.
PRIVATE = [
    mechanism
    for mechanism in MECHANISMS
    if mechanism.private and mechanism is not BinaryFlip and mechanism.report_family.by_cell
]
COUNTS = np.array([0, 1, 3, N_ITEMS, 3])

Per = Literal["rating", "cell", "user"]


def calibrated(mechanism: Mechanism, epsilon: float | None, per: Per = "rating") -> CellFamily:
    budget = None if epsilon is None else PrivacyBudget(epsilon=epsilon, per=per)
    return mechanism.family(budget, STARS, N_ITEMS)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 5.0])
@pytest.mark.parametrize("mechanism", PRIVATE, ids=lambda mechanism: mechanism.kind)
def test_a_budget_per_rating_is_spent_on_every_cell(mechanism: type[Mechanism], epsilon: float) -> None:
    if mechanism.report_family.hides_items:
        per_rating, per_user = calibrated(mechanism(), epsilon, "cell").losses(COUNTS)  # type: ignore[call-arg]
        assert per_rating == pytest.approx(np.full(5, epsilon), rel=1e-9)
        assert per_user == pytest.approx(np.full(5, N_ITEMS * epsilon), rel=1e-9)
        return
    per_rating, per_user = calibrated(mechanism(), epsilon).losses(COUNTS)  # type: ignore[call-arg]
    assert np.isnan(per_rating[0])
    assert per_rating[1:] == pytest.approx(np.full(4, epsilon), rel=1e-9)
    assert per_user == pytest.approx(epsilon * COUNTS, rel=1e-9)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize("mechanism", PRIVATE, ids=lambda mechanism: mechanism.kind)
def test_a_budget_per_user_is_what_the_cells_spend_together(
    mechanism: type[Mechanism], epsilon: float
) -> None:
    divided = calibrated(mechanism(), epsilon, "user")  # type: ignore[call-arg]
    per_rating, per_user = divided.losses(COUNTS)
    cells = divided.cells(COUNTS)
    spent = cells > 0
    assert per_user[spent] == pytest.approx(np.full(int(spent.sum()), epsilon), rel=1e-6)
    assert per_rating[spent] == pytest.approx(epsilon / cells[spent], rel=1e-6)
    assert per_user[~spent].tolist() == [0.0] * int((~spent).sum())
    assert np.isnan(per_rating[~spent]).all()


def test_the_noise_variance_is_that_of_the_channels_over_all_reported_ratings() -> None:
    cells, variances = np.array([1, 0, 3]), []
    for reported in cells.tolist():
        rows = RandomizedResponse().channel(STARS, 3.0 / max(reported, 1)).probabilities
        spread = (rows * (STARS.values - rows @ STARS.values[:, None]) ** 2).sum(axis=1)
        variances += [spread.mean()] * reported
    divided = calibrated(RandomizedResponse(), 3.0, "user")
    assert divided.noise_variance(cells) == pytest.approx(np.mean(variances))
    assert calibrated(RandomizedResponse(), 3.0).noise_variance(cells) == pytest.approx(variances[0])
    assert divided.noise_variance(np.zeros(2, dtype=np.int64)) is None


def test_the_likelihood_is_that_of_the_channel_of_each_user() -> None:
    divided = calibrated(RandomizedResponse(), 3.0, "user")
    given = divided.likelihood(np.array([1, 0, 2]), np.array([4, 0, 4], dtype=np.uint16))
    shares = even_share(3.0, 1), even_share(3.0, 2)
    one, two = (RandomizedResponse().channel(STARS, share).probabilities for share in shares)
    np.testing.assert_array_equal(given, [one[:, 4], two[:, 0], two[:, 4]])


@pytest.mark.parametrize("epsilon", [5e-324, 1e-300, 1e-12])
@pytest.mark.parametrize("mechanism", PRIVATE, ids=lambda mechanism: mechanism.kind)
def test_a_budget_too_small_for_whole_draws_is_refused(mechanism: type[Mechanism], epsilon: float) -> None:
    with refused_at("privacy.epsilon"):
        calibrated(mechanism(), epsilon, "user").check()  # type: ignore[call-arg]


@dataclass(frozen=True, kw_only=True)
class Careless(Mechanism):
    """Takes twice the budget that it is given."""

    kind: Literal["careless"] = "careless"

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        return RandomizedResponse().channel(scale, 2 * epsilon)


def test_a_mechanism_that_does_not_keep_its_budget_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"careless cannot keep; .* or a mechanism whose channels cost no more"
    ):
        calibrated(Careless(), 1.0).check()


@pytest.mark.parametrize(
    ("mechanism", "per", "sent", "cells"),
    [
        (BoundedLaplace(), "rating", [True, True, True], [0, 1, 4]),
        (ZhengRandomizedResponse(), "cell", [True, False, True], [5, 0, 5]),
    ],
)
def test_who_sent_is_charged_for_what_it_rated_or_for_every_item_where_these_are_hidden(
    mechanism: Mechanism, per: Any, sent: list[bool], cells: list[int]
) -> None:
    calibrated = mechanism.family(PrivacyBudget(epsilon=1.0, per=per), STARS, 5)
    accountant = calibrated.accountant(np.array([0, 1, 4]), np.array(sent))
    per_rating = accountant.get_epsilon(per="rating")
    assert np.isnan(per_rating).tolist() == [not each for each in cells]
    assert 0 < per_rating[2] <= 1.0
    assert accountant.get_epsilon().tolist() == [count * per_rating[2] for count in cells]
    assert [event.round_index for event in accountant.history] == [1]


EXAMPLES = [
    RandomizedResponse(),
    Raw(),
    HiddenThreshold(),
    RandomizedSet(),
    ResidualBits(bits=2),
    UserLevelBit(answers=2),
    BitsAndCounts(),
    OwnBits(bits=2),
]


class TestEveryFamily(FamilyContract):
    @pytest.fixture(params=EXAMPLES, ids=lambda mechanism: mechanism.kind)
    def mechanism(self, request: pytest.FixtureRequest) -> Mechanism:
        return request.param


def test_the_loss_of_a_family_from_outside_is_its_word() -> None:
    class Matrix(RandomizedResponse):
        """A mechanism from outside with a family of ours."""

    class Word(Matrix):
        """One with a family of its own."""

        report_family = OwnBits.report_family

    class Code(UserLevelBit):
        """One whose loss is that of its code for profiles, and of no channel."""

    declared = [each.declares_loss() for each in (RandomizedResponse, Matrix, Word, Code, OwnBits)]
    assert declared == [False, False, True, True, True]


def channel_of(kind: str, budget: PrivacyBudget | None, counts: list[int]) -> DeviceChannel | None:
    calibrated = MECHANISMS[kind](kind=kind).family(budget, STARS, 200)
    return calibrated.device_channel(np.array(counts))


def test_the_slope_is_that_of_the_mechanism() -> None:
    device = channel_of("bounded-laplace", PrivacyBudget(epsilon=1.0), [30])
    assert device is not None
    # Bounded Laplace at epsilon 1 on 1..5 pulls ratings to the middle: a slope of 0.18.
    assert device.slope == pytest.approx(0.18, abs=0.01)
    assert device.expected[2] == pytest.approx(3.0)
    assert device.ratings.tolist() == [1, 2, 3, 4, 5]


def test_a_budget_per_user_is_that_of_the_median_user() -> None:
    device = channel_of("bounded-laplace", PrivacyBudget(epsilon=20.0, per="user"), [2, 20, 150])
    assert device is not None
    assert (device.cells, device.per_user) == (20, True)
    assert device.channel.epsilon == pytest.approx(1.0)


def test_what_a_mechanism_leaves_of_its_budget_is_noted() -> None:
    budget = PrivacyBudget(epsilon=2.0, per="rating")
    (flipped,), exhausted = (
        mechanism.family(budget, binary_scale(), N_ITEMS).note_on_unspent()
        for mechanism in (BinaryFlip(p1=0.3, p2=0.2), RandomizedResponse())
    )
    assert f"{np.log(0.7 / 0.2):.4g} of the epsilon of 2 " in flipped
    assert exhausted == ()
