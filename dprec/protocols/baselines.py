"""Protocols that others have to beat: devices alone, a random order, one mean of all."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np

from dprec.accounting import Guarantee, MatchedBudget
from dprec.arrays import AnyInts, Floats
from dprec.binarization import is_binary
from dprec.catalogue import Catalogue
from dprec.completion import one_mean_per_user, own_averages, scale_of_means
from dprec.components import option
from dprec.errors import SettingError
from dprec.lists.model import ListModel, PairTable
from dprec.mechanisms import Raw
from dprec.ordinal import Histogram
from dprec.personalization import BroadcastDevices, OrdinalProcess
from dprec.predictions import cells_from_rows
from dprec.protocols import sharing
from dprec.protocols.base import Facts, Predicted, Public
from dprec.protocols.collection import CollectionProtocol
from dprec.protocols.components import AnyMechanism
from dprec.protocols.secret_sets import SecretSetOptions, SecretSetProtocol
from dprec.protocols.silent import Alone, SilentProtocol
from dprec.randomness import public_words, uniforms
from dprec.ratings import Ratings, RatingScale
from dprec.reports import DeviceChannel, ReportFamily, ReportSize


@dataclass(frozen=True, kw_only=True)
class NothingSentProtocol(SilentProtocol):
    """Every device predicts for its user the mean of the user's own ratings; nothing is sent.

    One that knows what is public about the items predicts by how alike these are.
    """

    kind: Literal["nothing-sent"] = "nothing-sent"
    predicts_by: ClassVar[str] = "every device predicts for its user from the user's own ratings alone"
    prior: float | None = option(
        "Publicly known rating that each mean is pulled towards; by default the middle of the scale.",
        None,
    )
    prior_ratings: float = option(
        "Number of own ratings that the prior weighs as much as; the default is the best of eleven values on "
        "tenths of the train ratings of MovieLens 100K (u1), RMSE 1.0386 "
        "(benchmarks/choosing/nothing_sent_prior.py).",
        2.0,
        ge=0,
    )
    shares: bool = option(
        "Whether a device reads public shares of the levels where nothing is public about the items, too.",
        False,
    )
    histogram: Histogram | None = option(
        "Public shares of the levels, from the lowest, for who reads them.", "netflix"
    )
    process: OrdinalProcess = option(
        "What a device assumes of its user there; number and category are the best on the same tenths, with "
        "years and genres.",
        OrdinalProcess(number=0.1, category=0.1),
    )

    @property
    def facts(self) -> Facts:
        """Devices that predict alone, from their own averages."""
        return self.facts_of(private=False, learns="own-average", baseline="nothing-sent")

    def check(self, train: Any) -> None:
        """Refuse a budget, and a prior outside the rating scale."""
        super().check(train)
        low, high = train.scale.low, train.scale.high
        if self.prior is not None and not low <= self.prior <= high:
            raise SettingError("prior", f"{self.prior:g}", f"a rating from {low:g} to {high:g}")

    def alone(self, ratings: Ratings, catalogue: Catalogue | None, public_seed: int = 0) -> Alone:
        """Return the means of the users' own ratings, or what a device makes of what is public."""
        if (catalogue is not None or self.shares) and not is_binary(ratings.scale):
            note = "Devices weigh what is public about the items (dataset.items)."
            notes = () if catalogue is None else (note,)
            return Alone(self._weighing(ratings, catalogue).predict, notes=notes)
        middle = (ratings.scale.low + ratings.scale.high) / 2
        averages = own_averages(ratings, middle if self.prior is None else self.prior, self.prior_ratings)
        return Alone(averages.predict, averages.predict_rows, diagnostics=averages.diagnostics)

    def _weighing(self, ratings: Ratings, catalogue: Catalogue | None) -> BroadcastDevices:
        """Return devices that were sent a table in which nothing was learned from anybody."""
        options = SecretSetOptions(histogram=self.histogram, process=self.process)
        protocol = SecretSetProtocol(sums=options)
        untaught = protocol.server(Public.of(ratings), catalogue, 0).learned.encode()
        return protocol.device(untaught, ratings.n_items, ratings.scale).devices(ratings)


@dataclass(frozen=True, kw_only=True)
class RandomListProtocol(SilentProtocol):
    """Every user gets items in a random order, drawn from what is public; nothing is sent.

    With content, a device orders them by how like they are to its user's own; only equals are in that order.
    """

    kind: Literal["random-list"] = "random-list"
    predicted: ClassVar[Predicted] = "lists"
    predicts_by: ClassVar[str] = "every order is drawn from a public seed"
    content: bool = option("Whether devices order items by public data that their users' items share.", False)

    @property
    def facts(self) -> Facts:
        """Devices that know nothing but the catalogue."""
        return self.facts_of(private=False, protects="none", baseline="nothing-sent")

    def alone(self, ratings: Ratings, catalogue: Catalogue | None, public_seed: int) -> Alone:
        """Draw the orders, or what decides between items that are as like to a user's own."""
        seed = public_seed % (1 << 64)
        if not self.content or catalogue is None:
            return Alone(lambda users, items: uniforms(public_words(seed, users, items)))
        model = ListModel.of(np.ones(ratings.n_items), catalogue, PairTable.nothing())
        sets, items = ratings.to_sets(), np.arange(ratings.n_items)

        def predict_rows(users: AnyInts, n_items: int) -> Floats:
            order = uniforms(public_words(seed, np.repeat(users, n_items), np.tile(items, len(users))))
            return np.round(model.scores(sets[users]), 9) + 1e-9 * order.reshape(-1, n_items)

        return Alone(cells_from_rows(predict_rows, ratings.n_items), predict_rows)


_TRUE = Raw()
"""Of devices that send what they hold."""


@dataclass(frozen=True, kw_only=True)
class GlobalMeanProtocol(CollectionProtocol):
    """Every device sends the mean of its ratings; everybody is predicted the mean of these means.

    Every user counts once, however many ratings it has, since numbers of ratings are not sent. The mean is
    sent as one rating of a catalogue of one item; see `one_mean_per_user`.
    """

    kind: Literal["global-mean"] = "global-mean"
    folds_in: ClassVar[bool] = True
    mechanism: AnyMechanism = option("What the device applies to its mean.", _TRUE)

    @property
    def facts(self) -> Facts:
        """One mean of all; a baseline in the clear."""
        return replace(super().facts, baseline=None if self.mechanism.private else "global-mean")

    def family(self, scale: RatingScale, n_items: int) -> ReportFamily:
        """Return what devices report of a mean, on the scale of means and of one item."""
        return sharing.cell_reports(self.mechanism, self.privacy, scale, n_items)

    def at_budget(self, budget: MatchedBudget) -> Self:
        """Return the protocol at a budget: a mean stands for the whole profile, so both units are one."""
        return replace(self, privacy=sharing.budget_at(self.privacy, budget, "user"))

    def check(self, train: Any) -> None:
        """Refuse a budget in another unit, or that the mechanism cannot keep on the scale of means."""
        if self.privacy is not None:
            sharing.check_unit(self.privacy, "user", "one number is sent for all of a user's ratings")
        if self.mechanism.private and self.privacy is None:
            raise SettingError("privacy", "none", f"a budget per user, for {self.mechanism.kind}")
        super().check(Public(train.n_users, 1, scale_of_means(train.scale)))

    def sent(self, public: Public, ratings: int) -> ReportSize:
        """Return the one mean, as one rating of a catalogue of one item."""
        return replace(self.family(public.scale, 1).size(1), per="user")

    def seen_cells(self, users: int, items: int, ratings: int) -> int:
        """Return the means, one of each user."""
        return users

    def influence_of_one(self, train: Ratings) -> float | None:
        """Return that of the mean that is sent, on the prediction of every item alike."""
        means = one_mean_per_user(train)
        return self.family(means.scale, 1).influence_of_one(means.counts, of_values=True)

    def guarantee(self, shape: tuple[int, int]) -> Guarantee:
        """Promise the loss of the channel for a whole profile, if there is a budget."""
        note = "Whether a user has any rating at all is not hidden."
        if not self.mechanism.sends_values:
            why = "nothing that is sent depends on any rating."
            return Guarantee("proved", "local", True, why, notes=(note,))
        if self.privacy is None:
            return Guarantee("none", "central", True, "the server receives every user's true mean.")
        notes = ["One number is sent for a whole profile, so the loss per rating is at most that per user."]
        if not self.mechanism.report_family.hides_items:
            notes.append(note)
        return Guarantee("proved", "local", True, f"{sharing.EXACT_CHANNEL}.", notes=tuple(notes))

    def learn(self, received: float, channel: DeviceChannel | None) -> float:
        """Return the mean, within the scale, whose expectation after the channel, by its best line, came in.

        ``received``: mean of what was reported; ``channel``: None where means are sent as they are.
        """
        if channel is None:
            return received
        slope, start = np.polyfit(channel.ratings, channel.expected, 1)
        low, high = channel.ratings[[0, -1]]
        return float(np.clip((received - start) / slope, low, high))
