"""One secure sum of many devices, every mask drawn: what a server computes from what they send."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dprec.secure_aggregation import shamir
from dprec.secure_aggregation.encoding import reduced, word_type
from dprec.secure_aggregation.graph import GraphSize, MaskGraph
from dprec.secure_aggregation.masking import (
    RevealedShares,
    SumContext,
    Words,
    check_threshold,
    masked_vector,
    unmasked_total,
)
from dprec.secure_aggregation.secrets import SharedSecrets, public_keys


class MaskedSum:
    """Devices that add up vectors: their keys, shares and masks, without the encryption of their messages.

    Parameters
    ----------
    keys : sequence of bytes
        Every device's key of the sum.
    order : ndarray of int64, shape (users,)
        The devices' order on the circle.
    """

    def __init__(
        self, keys: Sequence[bytes], order: NDArray[np.int64], graph_size: GraphSize, context: SumContext
    ) -> None:
        self.graph = MaskGraph.of(order, graph_size.degree)
        self._threshold, self._context = graph_size.threshold, context
        self._secrets = SharedSecrets.of(keys, graph_size.threshold)
        self._private, self._seeds = self._secrets.private_keys(), self._secrets.seeds()
        self._public = public_keys(self._private)

    def masked(self, user: int, vector: NDArray[np.integer]) -> Words:
        """Return what a device sends in place of its vector, modulo the modulus, shape (size,)."""
        neighbours = self.graph.neighbours[user]
        public = [self._public[other] for other in neighbours.tolist()]
        keys = self._private[user], self._seeds[user]
        masked = masked_vector(vector, user, keys, neighbours, public, self._context)
        return reduced(masked, self._context.bits)

    def total(self, masked: Words, present: NDArray[np.bool_]) -> Words:
        """Unmask the sum of what those present sent, with the shares that they reveal.

        Parameters
        ----------
        masked : ndarray, shape (size,)
        present : ndarray of bool, shape (users,)

        Raises
        ------
        TooFewSharesError
            When more dropped out than the threshold bears; nothing is unmasked.
        """
        check_threshold(self.graph, self._threshold, present)
        degree = self.graph.neighbours.shape[1]
        of_seeds = shamir.shares(self._secrets.self_seeds, degree)
        of_keys = shamir.shares(self._secrets.mask_keys, degree)
        revealed = RevealedShares.of(of_seeds, of_keys, self.graph, self._threshold, present)
        total = unmasked_total(masked, present, revealed, self.graph, self._public, self._context)
        return reduced(total, self._context.bits)


def plain_total(vectors: NDArray[np.integer], present: NDArray[np.bool_], bits: int) -> Words:
    """Return the sum of the vectors of those present with the masks that cancel left out, shape (size,)."""
    total = vectors[present].astype(word_type(bits)).sum(axis=0, dtype=word_type(bits))
    return reduced(total, bits)
