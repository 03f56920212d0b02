"""Evidence of every kind, learned from a part of the people alone."""

import numpy as np
import pytest

from dprec.auditing import LogisticRegression, Sent, bounding, choosing, learning, measured

PEOPLE = 4_000


def test_the_parts_share_nobody() -> None:
    everybody = np.arange(103)
    parts = [part(everybody) for part in (learning, choosing, bounding)]
    assert sorted(np.concatenate(parts).tolist()) == everybody.tolist()


def sent(bits: np.ndarray, **kinds: bool) -> Sent:
    """Return people whose bits can be read only in one of the ways."""
    nothing = np.zeros(len(bits), dtype=np.int64)
    rounds = tuple(bits.T) if kinds.get("rounds") else (nothing,)
    symbols = tuple(bits.T) if kinds.get("symbols") else ()
    features = (
        bits.astype(np.float32) if kinds.get("features") else np.zeros((len(bits), 0), dtype=np.float32)
    )
    return Sent(rounds, symbols, features)


@pytest.mark.parametrize("kind", ["rounds", "symbols", "features"])
def test_every_kind_shows_a_loss(kind: str) -> None:
    """Three bits of loss log 3 each; what is measured is near their sum for these seeds."""
    random = np.random.default_rng(1)
    sides = [random.random((PEOPLE, 3)) < chance for chance in (0.75, 0.25)]
    one, other = (sent(bits.astype(np.int64), **{kind: True}) for bits in sides)
    assert 2 < measured([(one, other)], 0.01).at_least < 3 * np.log(3)


def test_agreement_of_rounds_shows_although_each_round_is_alike() -> None:
    random = np.random.default_rng(2)
    first, second = random.integers(0, 2, (2, PEOPLE))
    same, apart = Sent.of_rounds([first, first]), Sent.of_rounds([first, second])
    assert measured([(same, apart)], 0.01).at_least > 0.6


def test_the_leaking_pair_is_chosen() -> None:
    random = np.random.default_rng(3)
    fair, skewed = random.random((2, PEOPLE)) < [[0.5], [0.9]]
    pairs = [
        (Sent.of_rounds([a.astype(np.int64)]), Sent.of_rounds([b.astype(np.int64)]))
        for a, b in [(fair, fair), (skewed, fair), (fair, fair)]
    ]
    assert measured(pairs, 0.01).pair == 1


def test_logistic_regression_agrees_with_the_log_odds_of_normal_classes() -> None:
    """Two normal classes at a distance of one have log odds of slope one; 0.1 is over six deviations."""
    random = np.random.default_rng(4)
    features = np.concatenate([random.normal(1, 1, (20_000, 1)), random.normal(0, 1, (20_000, 1))])
    learned = LogisticRegression.fit(features, np.repeat([True, False], 20_000))
    assert learned.weights == pytest.approx([1.0], abs=0.1)
    assert learned.scores(np.array([[0.5]])) == pytest.approx([0.0], abs=0.1)


def test_constant_features_and_separate_classes_do_no_harm() -> None:
    features = np.array([[1.0, 0.0], [1.0, 1.0]] * 50)
    learned = LogisticRegression.fit(features, np.tile([False, True], 50))
    assert learned.scores(features)[1] > 0 > learned.scores(features)[0]
