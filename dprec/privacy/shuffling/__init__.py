"""What shuffling gains: bounds for reports that reach the server in an order that says nothing."""

from dprec.privacy.shuffling.blanket import PrivacyBlanket
from dprec.privacy.shuffling.clones import clones_delta, closed_form_epsilon, two_answers_delta
from dprec.privacy.shuffling.profiles import ShuffledProfiles, with_the_same_items
from dprec.privacy.shuffling.reports import ShuffledReports
from dprec.privacy.shuffling.shuffled_channel import ShuffledChannel, computed_for, least_epsilon

__all__ = [
    "PrivacyBlanket",
    "ShuffledChannel",
    "ShuffledProfiles",
    "ShuffledReports",
    "clones_delta",
    "closed_form_epsilon",
    "computed_for",
    "least_epsilon",
    "two_answers_delta",
    "with_the_same_items",
]
