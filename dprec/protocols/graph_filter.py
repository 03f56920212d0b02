"""Lists by graph filters, from secure sums alone: no epsilon, so what noise costs can be read off.

The filters are those of GF-CF (Shen et al. [shen2021]). With the sets R (users x items), the numbers of items
D_U of the users and of users D_I of the items, P = D_I^-1/2 R^T D_U^-1 R D_I^-1/2 is how items go together,
and V its leading eigenvectors; a user's items r score r (P + alpha D_I^-1/2 V V^T D_I^1/2).

PriviRec (Nicolas et al. [nicolas2025]) has devices add up all of it: D_I, then R^T D_U^-1 R, then in every
round of a power iteration R^T D_U^-1 R Z for vectors Z that the server sends: items x rank numbers.
PriviRec-k does without the second sum, and takes P from its projections on V.

Up to a public factor, no contribution is longer than 1: r^T r / n has the norm 1 for a set of n items, and
r^T (r Z) / n at most the spectral norm of Z. So the sums can have noise, too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Self

import numpy as np

from dprec.accounting import Adjacency, Guarantee, PrivacyBudget
from dprec.arrays import AnyInts, Bools, Floats, Ints
from dprec.catalogue import Catalogue
from dprec.completion import Profiles, products_of_rows, unpack
from dprec.components import Options, option
from dprec.errors import SettingError, within
from dprec.lists.gram import MOST_ITEMS
from dprec.protocols.base import Predicted, Public
from dprec.protocols.components import AnyAggregation
from dprec.protocols.item_sums import PairSum, pairs_of
from dprec.protocols.sharing import COMPARED
from dprec.protocols.sums import SummedDevice, SummedServer, SumsProtocol
from dprec.randomness import generator
from dprec.ratings import Ratings, RatingScale
from dprec.sums import Release, SecureAggregation
from dprec.wire import Reader

_NUMBER = np.dtype("<f4")
_ASKING, _LEARNED = b"\0", b"\1"
_FINEST = SecureAggregation(norm=1 << 16)
"""Sums without noise are as exact as their grid is fine."""
_CODE = "shen2021, its public code"


@dataclass(frozen=True, kw_only=True)
class GraphFilterOptions(Options):
    """Which filters are learned, and in how many rounds."""

    papers: ClassVar[tuple[str, ...]] = ("nicolas2025", "shen2021")
    rank: int = option(
        "Vectors of the low-pass filter, at most.", 256, ge=1, le=1024, published=256, source=_CODE
    )
    low_pass: float = option("alpha: its weight.", 0.3, ge=0, le=1e6, published=0.3, source=_CODE)
    iterations: int = option("Rounds of the power iteration.", 5, ge=1, le=100)
    low_rank: bool = option(
        "Whether items go together as the vectors say (PriviRec-k), without a sum of its own.", False
    )

    @property
    def before(self) -> int:
        """Rounds before the power iteration: users of items, and their pairs."""
        return 1 if self.low_rank else 2

    def width(self, n_items: int) -> int:
        """Return how many vectors there are of so many items."""
        return min(self.rank, n_items)

    def together(self, n_items: int) -> int:
        """Return how many numbers say how items go together."""
        return self.width(n_items) if self.low_rank else pairs_of(n_items)


@dataclass(frozen=True, kw_only=True)
class GraphFilterProtocol(SumsProtocol):
    """Devices add up what graph filters are made of by secure aggregation, and rank by these."""

    kind: Literal["privirec"] = "privirec"
    # bonawitz2017: the paper's sums are secure ones, so these are no combination of ours.
    papers: ClassVar[tuple[str, ...]] = ("nicolas2025", "shen2021", "bonawitz2017")
    predicted: ClassVar[Predicted] = "lists"
    learns: ClassVar[str] = "graph-filters"
    privacy: PrivacyBudget | None = option("What is promised, per user; in the paper nothing.", None)
    adjacency: Adjacency = option(COMPARED.format("twice the"), "add-or-remove-one")
    filters: GraphFilterOptions = option("What is learned, and from what.", GraphFilterOptions())
    aggregation: AnyAggregation = option("Who adds up and adds the noise.", _FINEST)

    @property
    def shares(self) -> tuple[float, ...]:
        """What each round spends, all the same."""
        rounds = self.filters.before + self.filters.iterations
        return (1 / rounds,) * rounds

    def guarantee(self, shape: tuple[int, int]) -> Guarantee:
        """Promise nothing without a budget, and say what the sums tell."""
        guarantee = super().guarantee(shape)
        single = (
            "each round tells the mean of the vectors of all that the user has."
            if self.filters.low_rank
            else "the sums that items go together in hold everything else that the user has."
        )
        reason = (
            "the sums are released without noise, and no epsilon bounds what they tell: of an item that a "
            f"single user has, {single}"
        )
        return guarantee if self.privacy is not None else replace(guarantee, reason=reason)

    def check_settings(self, train: Public | Ratings) -> None:
        """Refuse a matrix of too many items."""
        if train.n_items > MOST_ITEMS and not self.filters.low_rank:
            with within("filters"):
                found = f"false, for {train.n_items} items"
                raise SettingError("low_rank", found, f"true, or at most {MOST_ITEMS} items")

    def model_bytes(self, public: Public) -> float:
        """Return that of the sums of pairs and of vectors, and of what is made of them."""
        pairs = 0 if self.filters.low_rank else public.n_items**2
        return 8.0 * (3 * pairs + 4 * public.n_items * self.filters.width(public.n_items))

    def begin(self, public: Public, catalogue: Catalogue | None = None) -> GraphDevice:
        """Return no vectors."""
        return GraphDevice.begun(self.filters, public.n_items)

    def device(self, received: bytes, n_items: int, scale: RatingScale) -> GraphDevice:
        """Read nothing, vectors or filters."""
        return GraphDevice.decode(received, self.filters, n_items)

    def server(self, public: Public, catalogue: Catalogue | None, seed: int) -> GraphServer:
        """Return the server before the first round, which reads nothing of the catalogue."""
        return GraphServer(self.filters, public.n_items, seed)


def inverse(numbers: Floats) -> Floats:
    """Return the inverse of numbers, of 0 itself."""
    return np.divide(1.0, numbers, out=np.zeros_like(numbers), where=numbers > 0)


@dataclass(frozen=True, eq=False)
class GraphDevice(SummedDevice):
    """What devices do: contribute their sets to three kinds of sums, and rank by what follows from these."""

    options: GraphFilterOptions
    raters: Floats
    """D_I: how many users have an item, at least 0; shape (items,)."""
    vectors: Floats
    """Z, of a spectral norm of at most 1; 0 before there are any; at the end V; shape (items, rank)."""
    together: Floats
    """P, its upper triangle by row; of low rank, its eigenvalues, shape (rank,)."""
    learned: bool = False

    @classmethod
    def begun(cls, options: GraphFilterOptions, n_items: int) -> Self:
        """Return what devices hold at first."""
        vectors = np.zeros((n_items, options.width(n_items)))
        return cls(options, np.zeros(n_items), vectors, np.zeros(options.together(n_items)))

    def encode(self) -> bytes:
        """Return nothing, the vectors, or all that was learned, in single precision."""
        if not self.learned:
            return _ASKING + self.vectors.astype(_NUMBER).tobytes() if self.vectors.any() else b""
        parts = self.raters, self.vectors, self.together
        return _LEARNED + b"".join(part.astype(_NUMBER).tobytes() for part in parts)

    @classmethod
    def decode(cls, received: bytes, options: GraphFilterOptions, n_items: int) -> Self:
        """Read what `encode` returned; raises ValueError, as devices do not trust the server."""
        start = cls.begun(options, n_items)
        if not received:
            return start
        kind, reader = received[:1], Reader(received[1:])
        names = {_ASKING: ("vectors",), _LEARNED: ("raters", "vectors", "together")}.get(kind, ())
        parts: dict[str, Any] = {}
        for name in names:
            empty = getattr(start, name)
            parts[name] = reader.numbers(_NUMBER, empty.size).astype(np.float64).reshape(empty.shape)
        reader.end()
        finite = all(np.isfinite(part).all() for part in parts.values())
        if not names or not finite or parts.get("raters", start.raters).min() < 0:
            raise ValueError(f"{len(received)} bytes that are neither finite vectors nor graph filters")
        return replace(start, **parts, learned=kind == _LEARNED)

    @property
    def _pairs(self) -> PairSum:
        return PairSum(np.arange(self.raters.size, dtype=np.int32), 1)

    def _kind_of(self, round_index: int) -> int:
        """Return whether a round is of the users of items, 0, of pairs, 1, or of vectors, 2."""
        return 2 if round_index > self.options.before else round_index - 1

    def release(self, round_index: int) -> Release:
        """Return a number for each item, for each pair, or for each item and vector."""
        kind, size = self._kind_of(round_index), self.raters.size
        if kind == 0:
            share = 1 / math.sqrt(size)
            return Release(
                self, round_index, size, size, most=share, honestly=lambda counts: np.full(counts.size, share)
            )
        if kind == 1:
            return Release(self, round_index, pairs_of(size), size, honestly=lambda counts: 1 / counts)
        return Release(self, round_index, self.vectors.size, size, negative=True)

    def cells(self, profiles: Profiles, release: Release, words: object) -> tuple[Ints, AnyInts, Floats]:
        """Return 1 over the root of all items for each item, 1 / n for each pair, or r^T (r Z) / n."""
        counts, kind = np.diff(profiles.indptr), self._kind_of(release.round_index)
        if kind == 0:
            return profiles.indptr, profiles.items, np.full(profiles.items.size, release.most)
        shares = 1 / np.maximum(counts, 1.0)
        if kind == 1:
            indptr, rows, _ = self._pairs.cells(profiles)
            return indptr, rows, np.repeat(shares, np.diff(indptr))
        width = self.vectors.shape[1]
        projections = (profiles.to_sets() @ self.vectors) * shares[:, None]
        rows = profiles.items[:, None].astype(np.int64) * width + np.arange(width)
        return profiles.indptr * width, rows.ravel(), np.repeat(projections, counts, axis=0).ravel()

    def work(self, counts: Ints, release: Release) -> Ints:
        """Return how many numbers users with so many items add."""
        return (counts, pairs_of(counts), counts * self.vectors.shape[1])[self._kind_of(release.round_index)]

    def about(self, items: AnyInts, layout: Release) -> Bools:
        """Return the numbers of some items, and of pairs that they are in."""
        kind, about = self._kind_of(layout.round_index), np.isin(np.arange(self.raters.size), items)
        if kind == 1:
            return self._pairs.about(items)
        return np.repeat(about, self.vectors.shape[1]) if kind else about

    def predictions(self, profiles: Profiles) -> Floats:
        """Return the scores of all items (Shen et al. [shen2021])."""
        if not self.learned:
            raise ValueError("devices that have not received what was learned")
        sets, roots, vectors = profiles.to_sets(), np.sqrt(self.raters)[:, None], self.vectors
        low_pass = products_of_rows(sets @ (vectors * inverse(roots)), vectors * roots)
        together = (
            products_of_rows((sets @ vectors) * self.together, vectors)
            if self.options.low_rank
            else sets @ unpack(self.together[None])[0]
        )
        return together + self.options.low_pass * low_pass


_FEWEST = 0.5
"""Users, fewer than which are none: sums are rounded, or have noise."""


@dataclass(eq=False)
class GraphServer(SummedServer):
    """Learns how many users items have, how items go together, and the leading eigenvectors of that."""

    options: GraphFilterOptions
    n_items: int
    seed: int
    """Of the first vectors."""
    raters: Floats = field(init=False)
    vectors: Floats = field(init=False)
    together: Floats = field(init=False)
    """See `GraphDevice`; the vectors are orthonormal."""
    length: float = field(init=False, default=0.0)
    """By which the vectors that devices are sent are divided; 0 before they are sent any."""

    def __post_init__(self) -> None:
        size, width = self.n_items, self.options.width(self.n_items)
        start = generator(self.seed, "first vectors of a power iteration").standard_normal((size, width))
        self.raters, self.vectors = np.zeros(size), np.linalg.qr(start)[0]
        self.together = np.zeros(self.options.together(size))

    @property
    def held(self) -> GraphDevice:
        """The vectors of the next round, as devices decode them: D_I^-1/2 V, of norm 1."""
        scale = self._inverse_roots / self.length if self.length else np.zeros(self.n_items)
        start = GraphDevice.begun(self.options, self.n_items)
        return replace(start, vectors=as_sent(scale[:, None] * self.vectors))

    @property
    def learned(self) -> GraphDevice:
        """The filters, as far as they are known."""
        parts = as_sent(self.raters), as_sent(self.vectors), as_sent(self.together)
        return GraphDevice(self.options, *parts, learned=True)

    @property
    def _inverse_roots(self) -> Floats:
        return inverse(np.sqrt(self.raters))

    def learn(
        self, layout: Release, round_index: int, released: Floats, deviation: float, users: int
    ) -> None:
        """Read users of items, pairs, or a product with the vectors."""
        sums, options = released[:, 0], self.options
        if round_index == 1:
            raters = sums * math.sqrt(self.n_items)
            self.raters = np.where(raters > _FEWEST, raters, 0.0)
        elif round_index <= options.before:
            first, second = np.triu_indices(self.n_items)
            self.together = sums * self._inverse_roots[first] * self._inverse_roots[second]
        else:
            product = sums.reshape(self.vectors.shape) * self._inverse_roots[:, None] * self.length
            self.vectors, values = iterated(self.vectors, product)
            self.together = values if options.low_rank else self.together
        if round_index >= options.before:
            norm = float(np.linalg.norm(self._inverse_roots[:, None] * self.vectors, 2))
            # Rounding to single precision makes no vectors longer than 1.
            self.length = norm * (1 + 1e-6)


_SMALLEST = 1e-9
"""Least eigenvalue, relative to the largest, that is not taken for rounding."""


def iterated(vectors: Floats, product: Floats) -> tuple[Floats, Floats]:
    """Return leading eigenvectors and values of P, given P V for orthonormal V: an iteration on.

    They are those of P V (V^T P V)^-1 V^T P, the Nystrom approximation (Halko et al. [halko2011], section
    5.4); shapes (items, rank) and (rank,).
    """
    axes, upper = np.linalg.qr(product)
    inner = vectors.T @ product
    values, rotation = np.linalg.eigh((inner + inner.T) / 2)
    positive = values > max(float(values[-1]) * _SMALLEST, 0.0)
    left_vectors, singular_values, _ = np.linalg.svd(
        upper @ rotation[:, positive] / np.sqrt(values[positive])
    )
    eigenvalues = np.zeros(values.size)
    eigenvalues[: singular_values.size] = singular_values**2
    return axes @ left_vectors, eigenvalues


def as_sent(numbers: Floats) -> Floats:
    """Return numbers as devices decode them."""
    return numbers.astype(_NUMBER).astype(np.float64)
