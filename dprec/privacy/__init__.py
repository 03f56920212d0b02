"""What is guaranteed to whom: budgets, guarantees, the ledger of every user, and the papers' theory."""

from dprec.privacy.calibration import PrivacyBudget
from dprec.privacy.composition import TotalLoss, total_loss
from dprec.privacy.guarantee import Guarantee, Status, Trust
from dprec.privacy.ledger import Charge, PrivacyLedger
from dprec.privacy.loss_distribution import LossDistribution
from dprec.privacy.releases import Releases, composed_losses
from dprec.privacy.units import ComparableUnit, PrivacyUnit

__all__ = [
    "Charge",
    "ComparableUnit",
    "Guarantee",
    "LossDistribution",
    "PrivacyBudget",
    "PrivacyLedger",
    "PrivacyUnit",
    "Releases",
    "Status",
    "TotalLoss",
    "Trust",
    "composed_losses",
    "total_loss",
]
