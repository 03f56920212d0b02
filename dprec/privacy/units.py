"""The units of privacy loss used in the papers: named alike everywhere, and never mixed on one axis."""

from __future__ import annotations

from typing import Any, Literal, get_args

PrivacyUnit = Literal["rating", "cell", "user"]
"""What two neighbouring profiles differ in, for a loss.

``rating``: the value of one rating; both profiles hold the same items. ``cell``: one (user, item)
entry, rated or not. ``user``: everything that a user sends.
"""

ComparableUnit = Literal["rating", "user"]
"""The units in which every protocol has a loss, so that protocols can be compared.

If a mechanism hides which items are rated, the loss of a rating is that of a cell.
"""

COMPARABLE_UNITS: tuple[ComparableUnit, ...] = get_args(ComparableUnit)

UNITS_IN_WORDS: dict[PrivacyUnit, str] = {
    "rating": "for the value of one rating",
    "cell": "for one entry, rated or not",
    "user": "for everything that a user sends",
}

_SPELLINGS = {"per-rating": "rating", "per-user": "user"}


def unit_from_text(text: Any) -> Any:
    """Return a unit by its usual name; "per-rating" and "per-user" are understood too.

    Parameters
    ----------
    text
        Any value from a file; anything that is not such a spelling is returned unchanged.
    """
    return _SPELLINGS.get(text, text) if isinstance(text, str) else text
