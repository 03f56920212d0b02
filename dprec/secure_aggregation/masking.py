"""Masks on devices' vectors, and their removal from the total (Bonawitz et al. [bonawitz2017], Section 4).

Device u sends x_u + PRG(b_u) + sum over its neighbours v of +-PRG(s_uv), modulo a power of two. Of two
neighbours the lower one adds and the other subtracts, so that both masks vanish from the total.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dprec.secure_aggregation.encoding import word_type
from dprec.secure_aggregation.graph import MaskGraph
from dprec.secure_aggregation.secrets import (
    agreed_key,
    as_bytes,
    derived_key,
    mask_private_keys,
    secrets,
    stream,
)

Words = NDArray[np.unsignedinteger]
"""Whole numbers modulo a power of two; bits above those of the modulus have no meaning until they are cut."""


class TooFewSharesError(Exception):
    """More devices dropped out than the threshold bears: nothing can be unmasked."""


@dataclass(frozen=True)
class SumContext:
    """What all devices of a sum know about it."""

    identity: bytes
    """Differs from that of any other sum; at most 64 bytes."""
    size: int
    """Whole numbers of a vector."""
    bits: int
    """Of the modulus."""

    def self_mask(self, seed: bytes) -> Words:
        """Return a device's mask of its own, shape (size,)."""
        key = derived_key(seed, "self mask", self.identity)
        return stream(key, self.size, word_type(self.bits))

    def pair_mask(self, private: bytes, public: bytes) -> Words:
        """Return the mask that two devices share, from one's private and the other's public key."""
        key = agreed_key(private, public, "pair mask", self.identity)
        return stream(key, self.size, word_type(self.bits))

    def pair_masks(
        self, user: int, private: bytes, neighbours: NDArray[np.int64], public: Sequence[bytes]
    ) -> Words:
        """Return the sum of the masks that a device shares with some neighbours, as it adds them.

        Parameters
        ----------
        public : sequence of bytes
            The neighbours' public keys.
        """
        total = np.zeros(self.size, dtype=word_type(self.bits))
        for neighbour, key in zip(neighbours.tolist(), public, strict=True):
            mask = self.pair_mask(private, key)
            if user < neighbour:
                total += mask
            else:
                total -= mask
        return total


def masked_vector(
    vector: NDArray[np.integer],
    user: int,
    secrets_of_user: tuple[bytes, bytes],
    neighbours: NDArray[np.int64],
    public: Sequence[bytes],
    context: SumContext,
) -> Words:
    """Return what a device sends in place of its vector.

    Parameters
    ----------
    vector : ndarray of int, shape (size,)
    secrets_of_user : tuple of bytes
        The private key behind its masks with neighbours, and the seed of its own mask.
    neighbours : ndarray of int64, shape (degree,)
    public : sequence of bytes
        The neighbours' public keys.
    """
    private, seed = secrets_of_user
    pairs = context.pair_masks(user, private, neighbours, public)
    masked: Words = vector.astype(word_type(context.bits)) + context.self_mask(seed) + pairs
    return masked


@dataclass(frozen=True, eq=False)
class RevealedShares:
    """What neighbours reveal of each device: of its seed if it is present, of its mask key if it dropped out."""

    points: NDArray[np.int64]
    """Where the neighbours' shares are, from 1; shape (users, threshold)."""
    held: NDArray[np.uint64]
    """Shape (users, threshold, elements)."""

    @classmethod
    def of(
        cls,
        of_seeds: NDArray[np.uint64],
        of_keys: NDArray[np.uint64],
        graph: MaskGraph,
        threshold: int,
        present: NDArray[np.bool_],
    ) -> RevealedShares:
        """Choose the shares of the first neighbours that are present, as many as the threshold.

        Parameters
        ----------
        of_seeds, of_keys : ndarray of uint64, shape (users, degree, elements)
            All shares that neighbours hold.
        present : ndarray of bool, shape (users,)
            Who sent a masked vector; only they answer.
            At least the threshold of every device's neighbours; see `check_threshold`.
        """
        first = np.argsort(~present[graph.neighbours], axis=1, kind="stable")[:, :threshold]
        of_one = np.where(present[:, None, None], of_seeds, of_keys)
        return cls(first + 1, np.take_along_axis(of_one, first[:, :, None], axis=1))


def check_threshold(graph: MaskGraph, threshold: int, present: NDArray[np.bool_]) -> None:
    """Refuse to unmask unless every device has enough neighbours who answer.

    Raises
    ------
    TooFewSharesError
        When one has not.
    """
    fewest = int(graph.answers(present).min())
    if fewest < threshold:
        raise TooFewSharesError(f"a device with {fewest} neighbours left, of whom {threshold} must answer")


def unmasked_total(
    masked: Words,
    present: NDArray[np.bool_],
    revealed: RevealedShares,
    graph: MaskGraph,
    public: Sequence[bytes],
    context: SumContext,
) -> Words:
    """Return the sum of the vectors of those present, from the sum of what they sent.

    Parameters
    ----------
    masked : ndarray, shape (size,)
        Sum of the masked vectors.
    present : ndarray of bool, shape (users,)
    public : sequence of bytes
        All public keys behind the masks with neighbours.
    """
    whole = secrets(revealed.points, revealed.held)
    total = masked.astype(word_type(context.bits))
    for seed in as_bytes(whole[present]):
        total -= context.self_mask(seed)
    gone = np.flatnonzero(~present)
    for user, private in zip(gone.tolist(), mask_private_keys(whole[gone]), strict=True):
        left = graph.neighbours[user][present[graph.neighbours[user]]]
        # Its own masks with those who are left would have cancelled theirs.
        total += context.pair_masks(user, private, left, [public[other] for other in left.tolist()])
    return total
