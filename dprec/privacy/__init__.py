"""What is guaranteed to whom: budgets, guarantees, the ledger of every user, and the papers' theory."""

from dprec.accounting import (
    ChannelDraws,
    ComparableUnit,
    ComposedLoss,
    Guarantee,
    PrivacyAccountant,
    PrivacyBudget,
    PrivacyLossDistribution,
    PrivacyUnit,
    Status,
    Trust,
    compose,
)
from dprec.accounting.accountant import Charge
from dprec.accounting.events import composed_losses

__all__ = [
    "Charge",
    "ComparableUnit",
    "Guarantee",
    "PrivacyLossDistribution",
    "PrivacyBudget",
    "PrivacyAccountant",
    "PrivacyUnit",
    "ChannelDraws",
    "Status",
    "ComposedLoss",
    "Trust",
    "composed_losses",
    "compose",
]
