"""What a device sends, as far as the configuration alone says, before anything runs."""

from dataclasses import dataclass

from dprec.accounting import PrivacyUnit
from dprec.channel import Channel
from dprec.ratings import RatingScale
from dprec.reports import ReportFamily
from dprec.wire import ReportCodec


@dataclass(frozen=True)
class Example:
    """The population and the user for whom reports are described."""

    scale: RatingScale
    users: int
    items: int
    """Sizes of the population and of the catalogue."""
    ratings: int
    """Ratings of the user, at least 1."""

    @property
    def shape(self) -> tuple[int, int]:
        """Users and items."""
        return self.users, self.items


@dataclass(frozen=True)
class Sent:
    """The reports of one device."""

    reports: int
    """Reports that a device sends, at most."""
    symbols: int | None
    """Size of the alphabet of one answer; None for a number in floating point."""
    answers: int
    """Answers in one report."""
    bits: float
    """Mean size of one report, before it is padded to whole bytes."""
    epsilon: float | None
    """Exact loss of one answer, in natural logarithms; None if it is not protected."""
    per: PrivacyUnit
    """What this loss is for."""


def sent_through(channel: Channel, example: Example, *, protected: bool, reports: int = 1) -> Sent:
    """Return reports on the rated items, each through a channel."""
    return Sent(
        reports=reports,
        symbols=channel.symbols,
        answers=example.ratings,
        bits=ReportCodec(channel, example.items).expected_bits(example.ratings),
        epsilon=channel.epsilon if protected else None,
        per="rating",
    )


def sent_ratings(family: ReportFamily, example: Example) -> Sent:
    """Return the one report of a family."""
    size = family.size(example.ratings)
    return Sent(1, size.symbols, size.answers, size.bits, size.epsilon, size.per)
