"""Times as they are configured, beside those of ratings: numbers in whatever unit the data have, or dates."""

from contextlib import suppress
from datetime import UTC, datetime

import numpy as np

from dprec.arrays import Floats
from dprec.errors import SettingError

Moment = float | str
"""A number in the unit of the data's times; or a date such as 2005-09-06 or 2005-09-06 17:30:00, in UTC.

A text of digits is the number that it spells, but one of four digits is a year.
"""

_UNITS = ((1.0, 1e11), (1e3, 1e14), (1e6, 1e17), (1e9, np.inf))
"""Units of a second, and the times that they are too few for: 1e11 is in 1973 as milliseconds, and in 5138 as
seconds.
"""


def is_date(moment: Moment) -> bool:
    """Return whether a moment is a text, other than of a number."""
    return isinstance(moment, str) and (len(moment) == 4 or not moment.isdecimal())


def seconds_of(moment: Moment) -> float:
    """Return a date as seconds since 1970, and a number as it is; raises SettingError for any other text."""
    if isinstance(moment, float) or not is_date(moment):
        return float(moment)
    with suppress(ValueError):
        date = datetime.fromisoformat(f"{moment}-01-01" if len(moment) == 4 else moment)
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    accepted = "a date such as 2005-09-06 or 2005-09-06 17:30:00, or a number as the data have"
    raise SettingError("", repr(moment), accepted)


def in_unit_of(times: Floats, moment: Moment) -> float:
    """Return a time in the unit of others: the one in which most of these are dates of this age."""
    return seconds_of(moment) * (_unit_of(times) if is_date(moment) else 1)


def reach_of(times: Floats, moment: Moment) -> str:
    """Return from when to when times are, as dates too where the moment is one."""
    ends = np.array([times.min(), times.max()])
    texts = [np.format_float_positional(end, trim="-") for end in ends]
    if is_date(moment):
        dates = (ends / _unit_of(times)).astype("datetime64[s]").tolist()
        texts = [f"{date} ({number})" for date, number in zip(dates, texts, strict=True)]
    return " to ".join(texts)


def _unit_of(times: Floats) -> float:
    middle = abs(float(np.median(times)))
    return next(unit for unit, too_few in _UNITS if middle < too_few)
