"""Reports on permanent answers: what several of them say together, and what devices repeat."""

import math

import numpy as np
import pytest

from dprec.accounting import PrivacyBudget
from dprec.arrays import offsets, rows_of
from dprec.mechanisms import BucketBits, LayeredMechanism, LocalHashing, TwoLayers
from dprec.observations import Observations
from dprec.randomness import DeviceDraws, Draws
from dprec.reports import LayeredFamily, ProfileLevels, Wanted
from dprec.testing.reports import FamilyContract
from tests import make
from tests.make import STARS

MECHANISMS = [
    TwoLayers(),
    TwoLayers(first=0.9, threshold=3.0),
    LocalHashing(),
    LocalHashing(answers=3),
    BucketBits(),
    BucketBits(buckets=5, bits=4),
]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
class TestContract(FamilyContract):
    """The mechanism is the parameter."""

    epsilon = 2.0


def family(mechanism: LayeredMechanism, epsilon: float = 1.0) -> LayeredFamily:
    made = mechanism.family(PrivacyBudget(epsilon=epsilon), STARS, 50)
    assert isinstance(made, LayeredFamily)
    return made


def people(users: int) -> ProfileLevels:
    random = np.random.default_rng(7)
    rated = random.random((users, 50)) < 0.3
    return make.reported_profiles(make.rated(rated, random.integers(1, 6, int(rated.sum()))))


def collected(made: LayeredFamily, of: ProfileLevels, number: int) -> Observations:
    """Return what is read of a collection; only the words of permanent answers repeat."""

    def draws(purpose: str) -> Draws:
        own = purpose if purpose == "report" else f"{purpose} {number}"
        return DeviceDraws.of(bytes(16), 0, offsets(of.counts), of.items, STARS.values[of.levels - 1], own)

    reader = made.reader(of.counts.size, Wanted(likelihood=True, symbols=True))
    assert reader.take(np.arange(of.counts.size), made.encode(of, draws)).all()
    return reader.observations()


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=str)
def test_reports_together_are_read_by_their_exact_likelihood(mechanism: LayeredMechanism) -> None:
    made, of = family(mechanism), people(30)
    parts = [collected(made, of, number) for number in range(4)]
    whole = made.together(Observations.joined(parts))
    assert whole.items.tolist() == of.items.tolist()
    assert whole.users.tolist() == rows_of(of.counts).tolist()
    reports, count = whole.symbols, made.instantaneous.symbols
    assert reports is not None
    assert whole.likelihood is not None
    sent = np.array([part.symbols.symbols for part in parts]).T  # type: ignore[union-attr]
    repeats = isinstance(mechanism, BucketBits)
    for cell in range(0, whole.items.size, 7):
        pair = made.layers[sent[cell, 0] // count]
        likelihood = np.array(
            [
                sum(
                    chance * math.prod(pair.instantaneous[answer, symbol % count] for symbol in sent[cell])
                    for answer, chance in enumerate(row)
                )
                for row in pair.permanent
            ]
        )
        said = whole.likelihood[cell]
        np.testing.assert_allclose(said / said.sum(), likelihood / likelihood.sum(), atol=1e-12)
        assert not repeats or len(set(sent[cell].tolist())) == 1


@pytest.mark.parametrize("mechanism", [LocalHashing(), BucketBits(buckets=5, bits=2)], ids=str)
def test_of_a_rating_that_changed_the_reports_on_its_last_answer_are_read(
    mechanism: LayeredMechanism,
) -> None:
    """With another value another pair of channels was drawn, but by chance, and another answer."""
    made, of = family(mechanism), people(60)
    changed = ProfileLevels(of.counts, of.items, (of.levels % 5 + 1).astype(np.uint8))
    parts = [collected(made, who, number) for number, who in enumerate((of, of, changed, changed))]
    whole, last = (made.together(Observations.joined(some)) for some in (parts, parts[2:]))
    sent = np.array([part.symbols.symbols for part in parts]).T  # type: ignore[union-attr]
    pairs = sent // made.instantaneous.symbols
    told = (pairs[:, 0] != pairs[:, 2]) | isinstance(mechanism, BucketBits)
    assert told.mean() > 0.8
    assert whole.likelihood is not None
    assert last.likelihood is not None
    np.testing.assert_allclose(whole.likelihood[told], last.likelihood[told])


def test_a_device_repeats_its_answer_and_not_its_reports() -> None:
    """Two reports would agree in 76 % of cases if the answer were drawn anew, and always without noise."""
    made, of = family(TwoLayers(first=0.9), epsilon=2.0), people(400)
    parts = [collected(made, of, number).symbols for number in range(2)]
    bits = [part.symbols for part in parts if part is not None]
    assert 0.9 < (bits[0] == bits[1]).mean() < 0.99
    assert 0.8 < (bits[0] == (of.levels > 3)).mean() < 0.9
