"""What protocols say about what is read beside reports: which items were rated, and public data."""

from __future__ import annotations

from dprec.catalogue import Catalogue

SET_IS_SEEN = "Which items a user rated is not hidden; epsilon protects the values of the ratings."

ALL_VALUES = (
    "Which items a user rated is not hidden; epsilon protects the values of all ratings of a user together: "
    "however many of them change, the report's probability changes by at most a factor of e^epsilon."
)

WHOLE_PROFILE = (
    "Which items a user rated is hidden, and how many: epsilon holds between any two profiles, and everybody "
    "sends as many bytes."
)


def note_on_reading(*, on_device: bool, sends_values: bool) -> str:
    """Say that the predictions rest on the set of rated items, and where nothing of this holds.

    Parameters
    ----------
    on_device : bool
        Whether devices predict, from their own ratings too.
    sends_values : bool
        Whether anything that is sent depends on how an item was rated.
    """
    who = "Devices predict" if on_device else "The server predicts"
    sources = ["what is reported"] * sends_values + ["which items were rated"]
    sources += ["their own ratings"] * on_device
    *others, last = sources
    read = f"{', '.join(others)} and {last}" if others else last
    alone = "The set alone, without a report of any value, gives what the floor sets-only reaches. "
    return (
        f"{who} from {read}. {alone if sends_values else ''}"
        "Where the set of rated items is hidden, none of that gain holds."
    )


def notes_on_catalogue(catalogue: Catalogue | None) -> tuple[str, ...]:
    """Say which public data about the items the predictions rest on, if on any."""
    if catalogue is None:
        return ()
    held = [*catalogue.number_names]
    if catalogue.category_names:
        held.append(f"{len(catalogue.category_names)} categories")
    return (f"Predictions also rest on public data about the items: {', '.join(held)}.",)
