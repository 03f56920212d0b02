"""What shuffling gains: bounds for reports that reach the server in an order that says nothing."""

from dprec.accounting import (
    PrivacyBlanket,
    ShuffledChannel,
    ShuffledProfiles,
    ShuffledReports,
    clones_delta,
    closed_form_epsilon,
    least_epsilon,
    two_answers_delta,
    with_the_same_items,
)
from dprec.accounting.shuffling import computed_for

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
