"""What a device sends, as far as the configuration alone says, before anything runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dprec.channel import Channel
from dprec.privacy.calibration import CalibratedMechanism
from dprec.privacy.profile_calibration import CalibratedProfiles
from dprec.privacy.units import PrivacyUnit
from dprec.ratings import RatingScale
from dprec.wire.report import ReportCodec


@dataclass(frozen=True)
class Example:
    """The population and the user for whom reports are described.

    Parameters
    ----------
    scale : RatingScale
    users, items : int
        Sizes of the population and of the catalogue.
    ratings : int
        Ratings of the user, at least 1.
    """

    scale: RatingScale
    users: int
    items: int
    ratings: int

    @property
    def shape(self) -> tuple[int, int]:
        """Users and items."""
        return self.users, self.items


@dataclass(frozen=True)
class Sent:
    """The reports of one device.

    Parameters
    ----------
    reports : int
        Reports that a device sends, at most.
    symbols : int or None
        Size of the alphabet of one answer; None for a number in floating point.
    answers : int
        Answers in one report.
    bits : float
        Mean size of one report, before it is padded to whole bytes.
    epsilon : float or None
        Exact loss of one answer, in natural logarithms; None if it is not protected.
    per : {"rating", "cell", "user"}
        What this loss is for.
    """

    reports: int
    symbols: int | None
    answers: int
    bits: float
    epsilon: float | None
    per: PrivacyUnit


def sent_through(channel: Channel, example: Example, *, protected: bool, reports: int = 1) -> Sent:
    """Return reports whose every answer goes through a channel.

    Parameters
    ----------
    channel : Channel
        That of the example's user.
    example : Example
    protected : bool
        Whether the channel adds noise.
    reports : int
    """
    hides = channel.hides_rated_items
    return Sent(
        reports=reports,
        symbols=channel.symbols,
        answers=example.items if hides else example.ratings,
        bits=ReportCodec(channel, example.items).expected_bits(example.ratings),
        epsilon=channel.epsilon if protected else None,
        per="cell" if hides else "rating",
    )


def sent_ratings(calibrated: CalibratedMechanism, example: Example) -> Sent:
    """Return the one report of a mechanism at a budget."""
    cells = int(calibrated.cells(np.array([example.ratings]))[0])
    if isinstance(calibrated, CalibratedProfiles):
        code, fields = calibrated.code, calibrated.numbers
        return Sent(1, code.blocks, cells, fields.fields * fields.width, code.epsilon, "user")
    if calibrated.mechanism.compares_ratings:
        channel, bits = calibrated.channel(cells), calibrated.codec().expected_bits(example.ratings)
        return Sent(1, channel.symbols, cells, bits, channel.epsilon, "user")
    return sent_through(calibrated.channel(cells), example, protected=calibrated.budget is not None)
