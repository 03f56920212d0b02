"""What is lost and what is promised: the privacy accountant and its events, budgets and guarantees."""

from dprec.accounting.accountant import *
from dprec.accounting.events import *
from dprec.accounting.noisy_sums import *
from dprec.accounting.pld import *
from dprec.accounting.promises import *
from dprec.accounting.shuffling import *

__all__ = [
    "COMPARABLE_UNITS",
    "DELTA",
    "LARGEST_CELL_EPSILON",
    "LARGEST_DELTA",
    "LEAST_DELTA",
    "LEAST_TRUST_FIRST",
    "SMALLEST_DELTA",
    "UNITS_IN_WORDS",
    "Adjacency",
    "ChannelDraws",
    "ComparableUnit",
    "ComposedLoss",
    "Epsilon",
    "Event",
    "EventMechanism",
    "Guarantee",
    "Loss",
    "MatchedBudget",
    "NoisySum",
    "PrivacyAccountant",
    "PrivacyBlanket",
    "PrivacyBudget",
    "PrivacyLossDistribution",
    "PrivacyUnit",
    "ShuffledChannel",
    "ShuffledProfiles",
    "ShuffledReports",
    "Status",
    "Trust",
    "clones_delta",
    "closed_form_epsilon",
    "compose",
    "dominating_channel",
    "gaussian_epsilon",
    "largest_mu",
    "least_epsilon",
    "note_on_delta",
    "skellam_epsilon",
    "skellam_multiplier",
    "two_answers_delta",
    "unit_from_text",
    "with_the_same_items",
    "worst_pair",
]
