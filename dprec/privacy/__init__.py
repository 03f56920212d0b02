"""What is guaranteed to whom: budgets, guarantees, the ledger of every user, and the papers' theory."""

from dprec.privacy.calibration import CalibratedMechanism, PrivacyBudget
from dprec.privacy.guarantee import Guarantee, Status, Trust
from dprec.privacy.ledger import Charge, PrivacyLedger
from dprec.privacy.units import ComparableUnit, PrivacyUnit

__all__ = [
    "CalibratedMechanism",
    "Charge",
    "ComparableUnit",
    "Guarantee",
    "PrivacyBudget",
    "PrivacyLedger",
    "PrivacyUnit",
    "Status",
    "Trust",
]
