import numpy as np

from dprec.privacy.ledger import PrivacyLedger


def test_nobody_has_spent_anything_before_anything_is_charged() -> None:
    ledger = PrivacyLedger(2)
    assert np.isnan(ledger.per_rating).all()
    assert ledger.per_user.tolist() == [0, 0]


def test_only_who_took_part_is_charged_and_losses_add_up() -> None:
    ledger = PrivacyLedger(3)
    ledger.charge(np.array([True, False, True]), np.array([1.0, np.nan]), np.array([5.0, 0.0]))
    ledger.charge(np.array([0, 1]), np.array([0.5, 0.25]), np.array([2.0, 1.0]))
    assert ledger.per_rating[:2].tolist() == [1.5, 0.25]
    assert np.isnan(ledger.per_rating[2])
    assert ledger.per_user.tolist() == [7.0, 1.0, 0.0]


def test_a_round_without_a_rating_leaves_the_loss_per_rating_as_it_was() -> None:
    ledger = PrivacyLedger(1)
    ledger.charge(slice(None), np.array([2.0]), np.array([2.0]))
    ledger.charge(slice(None), np.array([np.nan]), np.array([0.0]))
    assert ledger.per_rating.tolist() == [2.0]


def test_what_was_sent_unprotected_cannot_be_taken_back() -> None:
    ledger = PrivacyLedger(1)
    ledger.charge(slice(None), np.array([np.inf]), np.array([np.inf]))
    ledger.charge(slice(None), np.array([1.0]), np.array([1.0]))
    assert ledger.per_rating.tolist() == ledger.per_user.tolist() == [np.inf]
