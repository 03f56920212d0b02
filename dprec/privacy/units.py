"""The units of privacy loss that the papers quote: the same words everywhere, and never two on one axis."""

from __future__ import annotations

from typing import Any, Literal, get_args

PrivacyUnit = Literal["rating", "cell", "user"]
"""What two profiles differ in that a loss keeps apart.

``rating``: the value of one rating; both profiles hold the same items. ``cell``: one (user, item)
entry, rated or not. ``user``: everything that a user sends.
"""

ComparableUnit = Literal["rating", "user"]
"""The units in which every protocol has a loss, so that protocols can be compared.

Where a mechanism hides which items are rated, the loss of a rating is that of a cell.
"""

COMPARABLE_UNITS: tuple[ComparableUnit, ...] = get_args(ComparableUnit)

UNITS_IN_WORDS: dict[PrivacyUnit, str] = {
    "rating": "for the value of one rating",
    "cell": "for one entry, rated or not",
    "user": "for everything that a user sends",
}

_SPELLINGS = {"per-rating": "rating", "per-user": "user"}


def unit_from_text(text: Any) -> Any:
    """Return a unit in today's words: "per-rating" and "per-user" are read as well.

    Parameters
    ----------
    text
        Whatever a file holds; what is no unit is returned as it is.
    """
    return _SPELLINGS.get(text, text) if isinstance(text, str) else text
