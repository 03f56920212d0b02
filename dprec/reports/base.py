"""The contract of a family of reports: what one kind of report is, on the device and at the server.

A family is what a mechanism at a budget sends, for a scale and a catalogue. Devices, server, protocols and
audits ask it and never what it is: what a device computes (`encode`), how the server reads it (`reader`),
what it loses (`losses`, `draws_about`), what it costs (`size`), and whether a further exchange follows
(`follow_up`). A mechanism names its family once, as `Mechanism.report_family`, which may be user-defined.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from dprec.accounting import LARGEST_CELL_EPSILON, ChannelDraws, PrivacyAccountant, PrivacyBudget, PrivacyUnit
from dprec.arrays import Bools, Floats, Int32s, Ints, Uint8s
from dprec.catalogue import Catalogue
from dprec.channel import Channel
from dprec.errors import SettingError
from dprec.observations import Evidence, Observations, SymbolReports
from dprec.randomness import Draws
from dprec.ratings import Ratings, RatingScale


@dataclass(frozen=True, eq=False)
class DeviceChannel:
    """A mechanism at a budget, as applied on the devices."""

    channel: Channel
    """Everybody's; for a budget per user, that of a user with the median number of ratings."""
    cells: int
    """Cells that such a user reports."""
    per_user: bool
    """Whether the budget is per user, so that the channel depends on the number of cells."""

    @property
    def ratings(self) -> Floats:
        """The true ratings, the inputs without "not rated", shape (levels,)."""
        return self.channel.inputs[~np.isnan(self.channel.inputs)]

    @property
    def expected(self) -> Floats:
        """E[r* | r] of every true rating, given that the report shows a rating, shape (levels,)."""
        return (self.channel.inputs + self.channel.bias())[~np.isnan(self.channel.inputs)]

    @property
    def slope(self) -> float:
        """Least-squares slope of E[r* | r]: 1 without bias, 0 if a report's mean says nothing about r."""
        return float(np.polyfit(self.ratings, self.expected, 1)[0])


NEARLY_ALL = 0.98
"""Share of a budget that a mechanism must cost to exhaust it."""

REPORT_ROUND, FOLLOW_UP_ROUND = 1, 2
"""The rounds for which devices draw: of their reports, and of what follows them."""

DrawsFor = Callable[[str], Draws]
"""From a purpose to the random words of some users for it, the same whenever they are asked for."""


class HasChannel(Protocol):
    """What every family asks of its mechanism."""

    private: ClassVar[bool]

    @property
    def kind(self) -> str:
        """Name of the mechanism."""

    @property
    def report_family(self) -> "type[ReportFamily]":
        """What its reports are at one budget."""

    def channel(self, scale: RatingScale, epsilon: float) -> Channel:
        """Return the channel at the budget of one draw."""

    def distance_bound(
        self, users: int, items: int, ratings: int, scale: RatingScale, epsilon: float, tolerance: float
    ) -> float | None:
        """Return a bound on the Frobenius distance of reports; see `dprec.mechanisms.Mechanism`."""


@dataclass(frozen=True, eq=False)
class ProfileLevels:
    """What some users have rated."""

    counts: Ints
    """Ratings of each user; shape (users,)."""
    items: Int32s
    levels: Uint8s
    """By user, items ascending within a user; levels from 1, or 0 of ratings that are shown without an answer
    (`dprec.reports.PartlyAnsweredFamily`); shape (sum of counts,)."""
    numbers: Uint8s | None = None
    """Of each user's budget, where users have budgets of their own; shape (users,)."""


@dataclass(frozen=True)
class Wanted:
    """What a completion reads beside values; see `dprec.observations.Observations`."""

    likelihood: bool = False
    symbols: bool = False


@dataclass(frozen=True)
class ReportSize:
    """The reports of a device as they are described before anything runs."""

    symbols: int | None
    """Size of the alphabet of one answer; None for a number in floating point."""
    answers: int
    """Answers in one report, or of what it is computed from; see `of`."""
    bits: float
    """Mean size of one report, before it is padded to whole bytes."""
    epsilon: float | None
    """Exact loss of one answer, in natural logarithms; None if it is not protected."""
    per: PrivacyUnit
    """What this loss is for."""
    of: str = ""
    """What `answers` counts, where a report holds one message that is computed from them, as a noun; empty
    where it holds the answers themselves.
    """
    reports: int = 1
    """Reports that a device sends, at most."""


class ReportReader(ABC):
    """What a server makes of reports as they arrive, of users in ascending order."""

    told: Ints | None = None
    """What reports say of each user beside the ratings, from which losses follow (`ReportFamily.losses`)."""

    @abstractmethod
    def take(self, users: Ints, reports: Sequence[bytes]) -> Bools:
        """Decode the reports of some users and keep what they say; return which are valid.

        A report is any bytes at all: one that no device would send is rejected without an exception, and says
        nothing.

        Parameters
        ----------
        users : ndarray of int, shape (reports,)
        """

    @abstractmethod
    def observations(self, catalogue: Catalogue | None = None) -> Observations:
        """Return what completions are given of all that was taken."""


class Asking(ReportReader):
    """The server's side of a further exchange: what it asks, and what it makes of the answers."""

    question: bytes
    """The same for everybody."""
    asked: Ints
    """What was asked of each user, from which losses follow (`ReportFamily.losses`); shape (users, ...)."""


class FollowUp(ABC):
    """A further exchange after the reports, with everybody whose report was accepted.

    `answers_called` says in the plural what devices send.
    """

    answers_called: ClassVar[str]

    @abstractmethod
    def accepts(self, question: bytes) -> bool:
        """Return whether bytes are a question that a server may ask."""

    @abstractmethod
    def encode(self, profiles: ProfileLevels, question: bytes, draws: DrawsFor) -> Sequence[bytes]:
        """Return each user's answer to a question that is accepted."""

    @abstractmethod
    def asking(self, observed: Observations) -> Asking:
        """Return the server's side, given what the reports say."""

    @abstractmethod
    def losses(self, profiles: ProfileLevels, question: bytes, draws: DrawsFor) -> Floats:
        """Return what answers add to the loss of whole profiles, shape (users,)."""


@dataclass(frozen=True, eq=False)
class ReportFamily(ABC):
    """One kind of report at a budget, for one scale and one catalogue.

    What holds at any budget is said by the class, so that protocols can ask before anything is calibrated:
    `hides_items`, whether the server cannot tell which items a user rated; `by_cell`, whether each symbol is
    about one cell by itself; `composes`, whether a user's draws can share a budget by composition;
    `asks_further`, whether a further exchange follows; `loss_of_channel`, whether the losses follow from the
    mechanism's channel, whoever wrote it; `evidence`, the kind of evidence that completions are
    given; `units`, what a budget may be for, and `units_reason` why; `on_items`, what is said about the item
    set, and `further_notes` what else a reader of the guarantee must know.

    Raises
    ------
    SettingError
        When mechanism and budget are incompatible; the keys begin with "mechanism" and "privacy".
    """

    mechanism: HasChannel
    budget: PrivacyBudget | None
    """None for a mechanism that is not private."""
    scale: RatingScale
    n_items: int
    hides_items: ClassVar[bool] = False
    by_cell: ClassVar[bool] = True
    composes: ClassVar[bool] = True
    asks_further: ClassVar[bool] = False
    loss_of_channel: ClassVar[bool] = True
    evidence: ClassVar[type[Evidence]] = SymbolReports
    units: ClassVar[tuple[PrivacyUnit, ...]] = ("rating", "user")
    units_reason: ClassVar[str] = "this mechanism reveals the rated items"
    on_items: ClassVar[str] = (
        "Which items a user rated is not hidden; epsilon protects the values of the ratings."
    )
    further_notes: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        name, budget = self.mechanism.kind, self.budget
        if self.mechanism.private and budget is None:
            raise SettingError("privacy", f"none, with mechanism {name}", "an epsilon")
        if not self.mechanism.private and budget is not None:
            found = f"an epsilon, with mechanism {name}"
            raise SettingError("privacy", found, "null: this mechanism protects nothing")
        if budget is None:
            return
        if budget.per not in self.units:
            accepted = f"{' or '.join(map(repr, self.units))}: {self.units_reason}"
            raise SettingError("privacy.per", f"{budget.per!r}, with mechanism {name}", accepted)
        if budget.per != "user" and budget.epsilon > LARGEST_CELL_EPSILON:
            found = f"{budget.epsilon:g} per {budget.per}"
            accepted = f"at most {LARGEST_CELL_EPSILON:g}; beyond it there is practically no noise"
            raise SettingError("privacy.epsilon", found, accepted)

    # What holds for every budget.

    @classmethod
    def of_single_ratings(cls) -> bool:
        """Return whether each symbol is about one rating, of an item that is shown."""
        return cls.by_cell and not cls.hides_items

    @classmethod
    def matched_unit(cls, unit: PrivacyUnit) -> PrivacyUnit:
        """Return what a budget is for that is matched in a unit that all protocols share."""
        return unit if unit in cls.units else "user"

    @classmethod
    def channel_inputs(cls, scale: RatingScale) -> Floats:
        """Return the inputs of the mechanism's channel: the levels, after NaN where "not rated" is one."""
        return scale.values

    @classmethod
    def seen_cells(cls, users: int, items: int, ratings: int) -> int:
        """Return how many cells the server may see as rated, at most."""
        return ratings

    @abstractmethod
    def check(self) -> None:
        """Refuse a budget and a catalogue for which there is no report, before anything runs."""

    # The device.

    def work(self, counts: Ints) -> Ints:
        """Return the cells that a device computes for users with ``counts`` ratings, shape (users,)."""
        return counts

    @abstractmethod
    def encode(self, profiles: ProfileLevels, draws: DrawsFor) -> Sequence[bytes]:
        """Return the report of every user, which depends on nothing but its own profile and words.

        Many reports travel as one buffer, in which the encoders of `dprec.wire` write them; a list will do.
        """

    def crafted(self, profiles: ProfileLevels, draws: DrawsFor) -> Sequence[bytes]:
        """Return the reports that say most for profiles, of malicious users who choose what they send.

        Nobody can tell by its form that one was not drawn. By default, malicious users lie by their profiles
        alone.
        """
        return self.encode(profiles, draws)

    @property
    def follow_up(self) -> FollowUp | None:
        """What devices are asked after their reports; None if nothing."""
        return None

    # The server.

    @abstractmethod
    def reader(self, n_users: int, wanted: Wanted) -> ReportReader:
        """Return what reads the reports of so many users, for a completion that wants more than values."""

    def together(self, collected: Observations) -> Observations:
        """Return what reports of several collections say, by how they depend on each other: as they are."""
        return collected

    def against_truth(
        self, train: Ratings, observed: Observations, accepted: Bools
    ) -> tuple[tuple[str, ...], dict[str, float | None]]:
        """Return what only a simulation can say of reports: notes, and how far they are from the ratings.

        Parameters
        ----------
        accepted : ndarray of bool, shape (users,)
            Users whose report was used.
        """
        return (), {}

    # What it loses.

    @abstractmethod
    def channel(self, cells: int) -> Channel:
        """Return a dominating channel of one draw about a user who has ``cells`` cells."""

    @abstractmethod
    def protects(self, counts: Ints) -> Bools:
        """Return which users with ``counts`` ratings have a rating to protect, shape (users,)."""

    @abstractmethod
    def losses(self, counts: Ints, asked: Ints | None = None) -> tuple[Floats, Floats]:
        """Return the exact losses, per rating and per user, of users with ``counts`` ratings.

        Parameters
        ----------
        counts : ndarray of int64, shape (users,)
        asked : ndarray of int64, shape (users, ...), optional
            What the further exchange has asked of each user; see `Asking`. Of users who have budgets of
            their own, the numbers of these; of users who answer about a part of their ratings, how many.

        Returns
        -------
        per_rating, per_user : ndarray of float64, shape (users,)
            By basic composition. NaN per rating where there is none to protect.
        """

    @abstractmethod
    def draws_about(self, counts: Ints, asked: Ints | None = None) -> ChannelDraws:
        """Return the independent draws about users with ``counts`` ratings, for composition; see `losses`."""

    def accountant(self, counts: Ints, sent: Bools, asked: Ints | None = None) -> PrivacyAccountant:
        """Return the accountant of a round of reports, and of what followed them.

        Parameters
        ----------
        counts : ndarray of int64, shape (users,)
            Number of ratings of each user.
        sent : ndarray of bool, shape (users,)
            Users whose report arrived, whether or not it could be used.
        asked : ndarray of int64, shape (users, ...), optional
            What was asked of each after the reports.
        """
        accountant = PrivacyAccountant(rated=self.protects(counts))
        accountant.step(1, sent, *self.losses(counts, asked), self.draws_about(counts, asked))
        return accountant

    def report_losses(self, profiles: ProfileLevels, draws: DrawsFor) -> tuple[Floats, Floats]:
        """Return what devices charge themselves for their reports, which they know; see `losses`."""
        return self.losses(profiles.counts)

    @abstractmethod
    def most_losses(self) -> tuple[float, float]:
        """Return what no profile loses more than, by its report and what follows it: per rating, per user."""

    def note_on_unspent(self) -> tuple[str, ...]:
        """Say where the mechanism adds more noise than its budget asks for."""
        if self.budget is None or self.budget.own:
            return ()
        most = self.most_losses()[self.budget.per == "user"]
        if most >= NEARLY_ALL * self.budget.epsilon:
            return ()
        return (f"The mechanism costs only {most:.4g} of the epsilon of {self.budget.epsilon:g} asked for.",)

    def evidence_of_one(self, counts: Ints, *, of_values: bool) -> tuple[float, float] | None:
        """Return the evidence about an item that a report can carry, and that of an honest user's.

        The first is the largest that any accepted bytes hold, the second the mean of users who rate the item
        highest. Their ratio is how many such users one malicious user can outweigh; see `dprec.influence`. By
        default, None: nothing is known of it.

        Parameters
        ----------
        counts : ndarray of int64, shape (users,)
            Ratings of the honest users.
        of_values : bool
            Whether the server adds up values that it decodes, and not log likelihood ratios.
        """
        return None

    def influence_of_one(self, counts: Ints, *, of_values: bool) -> float | None:
        """Return how many honest users one malicious user can outweigh; see `evidence_of_one`."""
        evidence = self.evidence_of_one(counts, of_values=of_values)
        return None if evidence is None or evidence[1] <= 0 else evidence[0] / evidence[1]

    @abstractmethod
    def device_channel(self, counts: Ints) -> DeviceChannel | None:
        """Return the channel of devices with ``counts`` ratings, or None without noise."""

    # What it costs.

    @abstractmethod
    def size(self, ratings: int) -> ReportSize:
        """Return the report of a user with so many ratings."""

    def parts(self, report: bytes) -> dict[str, int]:
        """Return what a report consists of, in bits, in the order in which it is sent."""
        return {"answers": 8 * len(report)}

    # How it is audited.

    @property
    def fewest_items(self) -> int:
        """Items of the smallest catalogue about which devices report as they do about this one."""
        return 1

    def exact_losses(self, entries: int) -> Iterator[tuple[str, float]]:
        """Yield losses of so many entries that follow from matrices: what was compared, and the loss."""
        yield from ()

    def audited_symbols(self, exchange: int, reports: Sequence[bytes], items: Ints) -> Ints:
        """Return what can be read in reports, a column for each thing that is, shape (reports, columns).

        Parameters
        ----------
        exchange : int
            0 for the reports, 1 for what follows them.
        items : ndarray of int64
            Those that anybody has rated.
        """
        return np.zeros((len(reports), 0), dtype=np.int64)
