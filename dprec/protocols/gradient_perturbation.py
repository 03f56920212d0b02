"""Gradient perturbation for one-bit completion: noisy slopes over rounds, sent to an untrusted server.

Li et al. [li2021], Algorithm 3. The server sends every user the entries of the hidden matrix at its items; a
device answers with the slopes of its likelihood there, each clipped and with noise of its own. Which items
are rated is sent in the clear, by the first report.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np

from dprec import accounting
from dprec.arrays import Bools, Floats, Int32s, Ints, Pieces, Uint8s, offsets, segments
from dprec.channel import Channel
from dprec.completion import (
    Biases,
    HiddenMatrix,
    OneBit,
    Profiles,
    SignLikelihood,
    levels_of,
    slope_channel,
)
from dprec.components import option
from dprec.errors import SettingError, plural, within
from dprec.exchange import ROW_ENTRY, SLOPES
from dprec.gradients import RoundDraws
from dprec.observations import Observations, SymbolReports
from dprec.protocols import sharing
from dprec.protocols.base import Facts, Public
from dprec.protocols.rounds import Charge, RoundsProtocol
from dprec.protocols.sharing import DELIVERY, TopN
from dprec.randomness import even_share
from dprec.ratings import Ratings, RatingScale
from dprec.reports import ReportSize
from dprec.sent_symbols import SentSymbols, symbols_of_slopes
from dprec.wire import ReportCodec, SymbolRows


@dataclass(frozen=True, kw_only=True)
class GradientPerturbationProtocol(sharing.Completes, RoundsProtocol):
    """Devices send noisy gradients of their rows over rounds; the server takes projected steps."""

    kind: Literal["gradient-perturbation"] = "gradient-perturbation"
    papers: ClassVar[tuple[str, ...]] = ("li2021",)
    message_type: ClassVar[str] = SLOPES
    privacy: accounting.PrivacyBudget = option("What is promised for all rounds together, per rating.")
    completion: OneBit = option("The model; the rounds do not use the settings of its solver.", OneBit())
    rounds: int = option(
        "Number of rounds K; each spends 1/K of the budget. The paper leaves K open, but takes spectral step "
        "lengths from the second round on; here every step has the same length.",
        1,
        published=1,
        source="li2021, Algorithm 3, with a spectral step in every further round",
        ge=1,
    )
    clamp: float = option(
        "Bound C on the entries of a gradient that is sent.",
        0.5,
        published=0.5,
        source="li2021, section 4.3",
        gt=0,
        le=1e9,
    )
    symbols: int = option("Cells of the grid to which a noisy entry is rounded.", 256, ge=3, le=4096)
    step: float = option(
        "Step length, as a multiple of 1 / curvature at 0; not published, chosen by "
        "benchmarks/choosing/settings.py.",
        4.0,
        reader="server",
        gt=0,
        le=1e9,
    )
    delivery: TopN | None = option(DELIVERY, TopN(), reader="result")

    @property
    def facts(self) -> Facts:
        """Noisy slopes, by which a completion moves."""
        return self.facts_of()

    def at_budget(self, budget: accounting.MatchedBudget) -> Self:
        """Return the protocol at a budget; `check` refuses a budget per user."""
        return replace(self, privacy=sharing.budget_at(self.privacy, budget, budget.unit))

    @property
    def epsilon_per_round(self) -> float:
        """An even share of the budget."""
        return even_share(self.privacy.epsilon, self.rounds)

    @cached_property
    def channel(self) -> Channel:
        """The channel of one entry of a gradient, at the budget of one round."""
        return slope_channel(self.clamp, self.symbols, self.epsilon_per_round)

    def charge(self, round_index: int, counts: Ints | None = None) -> Charge:
        """Return the price of slopes: each rating has one of its own."""
        assert counts is not None, "unknown numbers of ratings"
        loss = self.channel.epsilon
        draws = accounting.ChannelDraws((self.channel,), draws=counts)
        return Charge(loss, counts.astype(np.float64) * loss, draws)

    def check(self, train: Ratings) -> None:
        """Refuse a budget, rounds, completion and ratings that do not fit together."""
        with within("completion"):
            self.completion.check_scale(train.scale)
            self.completion.check((train.n_users, train.n_items))
        sharing.check_unit(self.privacy, "rating", "the noise is calibrated to one sign")
        shares = f"{self.privacy.epsilon:g} in {plural(self.rounds, 'round')}"
        if self.epsilon_per_round > accounting.LARGEST_CELL_EPSILON:
            raise SettingError(
                "privacy.epsilon", shares, f"at most {accounting.LARGEST_CELL_EPSILON:g} per round"
            )
        try:
            channel = self.channel
        except ValueError:
            raise SettingError(
                "privacy.epsilon", shares, "a larger epsilon, or fewer rounds or symbols"
            ) from None
        ReportCodec(channel, train.n_items)

    def audited(self) -> Self:
        """Return the protocol as it is; see `Protocol.audited`."""
        return self

    def influence_of_one(self, train: Ratings) -> float:
        """Return the largest entry that can be sent, in units of the largest one that is not clipped."""
        return float(np.abs(self.channel.values).max()) / self.clamp

    def sent(self, public: Public, ratings: int) -> ReportSize:
        """Return the reports of noisy slopes, one in each round."""
        channel = self.channel
        bits = ReportCodec(channel, public.n_items).expected_bits(ratings)
        return ReportSize(channel.symbols, ratings, bits, channel.epsilon, "rating", reports=self.rounds)

    def sent_symbols(self, people: Ratings) -> SentSymbols:
        """Return what can be read in the slopes."""
        return symbols_of_slopes(self.channel, self.rounds, people)

    def guarantee(self, shape: tuple[int, int]) -> accounting.Guarantee:
        """Promise the loss of the channel, once for each round."""
        noise = 2 * self.clamp / self.epsilon_per_round
        return accounting.Guarantee(
            status="proved",
            trust="local",
            hides_rated_items=False,
            reason=f"{sharing.EXACT_CHANNEL}, and the rounds add up.",
            notes=(
                f"Epsilon holds per rating over all rounds, {self.epsilon_per_round:.4g} in each, against "
                "any server; which items a user rated is not hidden.",
                f"Noise on each entry of a gradient, in each round: scale {noise:.3g}; an entry is at "
                f"most {self.clamp:g}.",
            ),
        )

    def codecs(self, n_items: int) -> tuple[ReportCodec, SymbolRows]:
        """Return the codes of reports that include the rated items, and of those that need not."""
        return ReportCodec(self.channel, n_items), SymbolRows(self.channel)

    def levels(self, values: Floats, entries: Floats) -> Uint8s:
        """Return the levels, from 1, of slopes of ratings at entries of the matrix, shape (ratings,)."""
        likelihood = SignLikelihood.of_signs(self.completion.link_function, values)
        return levels_of(likelihood.value_and_slopes(entries)[1], self.clamp)

    def answer(
        self, profiles: Profiles, entries: Floats, known_users: Bools, draws: RoundDraws
    ) -> list[bytes]:
        """Return every user's report on the slopes at its items.

        Parameters
        ----------
        entries : ndarray of float64, shape (ratings,)
            Of the hidden matrix; 0 of users of whom the server knows no items yet.
        known_users : ndarray of bool, shape (users,)
            Whose items the server knows: the reports of the others include the items.
        """
        counts = np.diff(profiles.indptr)
        noise = draws.devices.given(profiles.indptr, profiles.items, entries).per_cell(
            counts, profiles.items, draws.round_index
        )
        symbols = self.channel.sample(self.levels(profiles.values, entries), noise)
        first_codec, later_codec = self.codecs(profiles.n_items)
        later = np.repeat(known_users, counts)
        with_items = first_codec.encode(
            offsets(np.where(known_users, 0, counts)), profiles.items[~later], symbols[~later]
        )
        without_items = later_codec.encode(np.where(known_users, counts, 0), symbols[later])
        return [
            short if row else long
            for row, short, long in zip(known_users.tolist(), without_items, with_items, strict=True)
        ]

    def server(self, public: Public, seed: int) -> SlopesServer:
        """Return the server before the first question."""
        return SlopesServer(self, (public.n_users, public.n_items), seed)


@dataclass(frozen=True, eq=False)
class Slopes:
    """What was sent in a round about the slopes of cells, and what devices had been sent of these."""

    users: Int32s
    items: Int32s
    """By user, items ascending within a user; shape (cells,)."""
    symbols: Ints
    entries: Floats
    """Entries of the hidden matrix, from which a slope follows and the sign of the rating."""

    def observed(
        self, protocol: GradientPerturbationProtocol, shape: tuple[int, int], scale: RatingScale
    ) -> Observations:
        """Return what the server sees: a sign follows from a slope as the entry is known."""
        channel = protocol.channel
        signs = (np.full(self.entries.size, sign) for sign in (-1.0, 1.0))
        pairs = np.stack([protocol.levels(sign, self.entries).astype(np.int64) for sign in signs], axis=1) - 1
        distinct, channel_of = np.unique(pairs, axis=0, return_inverse=True)
        channels = tuple(channel.probabilities[pair] for pair in distinct)
        evidence = SymbolReports(channels, self.symbols, channel_of.ravel())
        values = channel.values[self.symbols]
        return Observations.of(self.users, self.items, values, shape, scale, evidence=evidence)


@dataclass(eq=False)
class SlopesServer:
    """A hidden matrix that takes projected steps along noisy slopes."""

    protocol: GradientPerturbationProtocol
    shape: tuple[int, int]
    """Users and items."""
    seed: int
    matrix: HiddenMatrix = field(init=False)
    cells: Ints = field(init=False)
    """Cells that are known to be rated, ascending, users first."""
    counts: Ints = field(init=False)
    """How many of them each user has."""

    def __post_init__(self) -> None:
        completion, no_items = self.protocol.completion, np.zeros(0, dtype=np.int32)
        zero = completion.domain(no_items, no_items, self.shape, self.seed).zero()
        self.matrix = HiddenMatrix(completion.link_function, Biases.zero(self.shape), zero)
        self.cells, self.counts = np.zeros(0, dtype=np.int64), np.zeros(self.shape[0], dtype=np.int64)

    @property
    def diagnostics(self) -> dict[str, Any]:
        """JSON values about what was learned."""
        return {"radius": self.protocol.completion.radius(self.shape), "rounds": self.protocol.rounds}

    @property
    def observed(self) -> tuple[Int32s, Int32s]:
        """Users and items of the cells that are known to be rated, by user."""
        return self._users_and_items(self.cells)

    @property
    def seen(self) -> tuple[Ints, Int32s]:
        """How many cells of each user are known to be rated, and their items, by user."""
        return self.counts, self.observed[1]

    def rows(self) -> Pieces:
        """Return what every user is sent: the entries at its items, as far as these are known."""
        entries = self.matrix.hidden(*self.observed).astype(ROW_ENTRY).tobytes()
        return Pieces(entries, offsets(self.counts) * ROW_ENTRY.itemsize)

    def read(self, users: Ints, reports: Sequence[bytes]) -> tuple[int, Ints, Ints]:
        """Decode the reports of some users: how many are valid, and their cells and symbols."""
        first_codec, later_codec = self.protocol.codecs(self.shape[1])
        known_users, pieces = self.counts[users] > 0, Pieces.of(reports)
        new_users, old_users = users[~known_users], users[known_users]
        decoded = first_codec.decode(pieces.chosen(np.flatnonzero(~known_users)))
        new_cells = np.repeat(new_users, np.diff(decoded.indptr)) * self.shape[1] + decoded.items
        counts = self.counts[old_users]
        valid, symbols = later_codec.decode(pieces.chosen(np.flatnonzero(known_users)), counts)
        starts = offsets(self.counts)[old_users]
        old_cells = self.cells[segments(starts[valid], counts[valid])]
        return (
            int(decoded.valid.sum() + valid.sum()),
            np.concatenate([new_cells, old_cells]),
            np.concatenate([decoded.symbols, symbols]).astype(np.int64),
        )

    def learn(self, cells: Ints, symbols: Ints) -> Slopes:
        """Take a step along what was read, and return it."""
        order = np.argsort(cells)
        cells, symbols = cells[order], symbols[order]
        users, items = self._users_and_items(cells)
        entries = self.matrix.hidden(users, items).astype(ROW_ENTRY).astype(np.float64)
        entries[~np.isin(cells, self.cells)] = 0.0  # as devices know them before their first report
        completion, biases = self.protocol.completion, self.matrix.biases
        link, slopes = completion.link_function, self.protocol.channel.values[symbols]
        if completion.biases:
            ridge = completion.absolute_ridge
            biases, slopes = biases.stepped(users, items, slopes, link.largest_curvature, ridge)
        length = self.protocol.step / float(link.curvature(np.zeros(1))[0])
        domain = completion.domain(users, items, self.shape, self.seed)
        self.matrix = HiddenMatrix(link, biases, domain.step(self.matrix.point, slopes, length))
        self.cells = np.union1d(self.cells, cells)
        self.counts = np.bincount(self.cells // self.shape[1], minlength=self.shape[0])
        return Slopes(users, items, symbols, entries)

    def _users_and_items(self, cells: Ints) -> tuple[Int32s, Int32s]:
        users, items = np.divmod(cells, self.shape[1])
        return users.astype(np.int32), items.astype(np.int32)
