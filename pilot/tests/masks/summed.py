"""A whole masked sum in one process, and what it adds up to without masks."""

from collections.abc import Sequence

import numpy as np

from dprec.arrays import AnyInts, Bools, Ints, Uint64s
from dprec.secure_aggregation import GraphSize, MaskGraph, SumContext, reduced
from dprec.secure_aggregation.encoding import word_type
from dprec_pilot.masks import masking as secrets
from dprec_pilot.masks.masking import Shares, Words, first_shares, masked_vector, unmasked_total


class TooFewSharesError(Exception):
    """More devices dropped out than the threshold bears: nothing can be unmasked."""


def of_one_secret(
    of_seeds: Uint64s, of_keys: Uint64s, graph: MaskGraph, threshold: int, present: Bools
) -> Shares:
    """Choose as many shares as the threshold, of the first neighbours that are present.

    ``of_seeds``, ``of_keys``, shape (users, degree, elements): all shares that neighbours hold.
    """
    of_one = np.where(present[:, None, None], of_seeds, of_keys)
    return first_shares(of_one, present[graph.neighbours], threshold)


def check_threshold(graph: MaskGraph, threshold: int, present: Bools) -> None:
    """Raise TooFewSharesError unless a threshold of every device's neighbours answer."""
    fewest = int(graph.answers(present).min())
    if fewest < threshold:
        raise TooFewSharesError(f"a device with {fewest} neighbours left, of whom {threshold} must answer")


class MaskedSum:
    """Devices that add up vectors, in an order on the circle: their keys, shares and masks, unencrypted."""

    def __init__(
        self, keys: Sequence[bytes], order: Ints, graph_size: GraphSize, context: SumContext
    ) -> None:
        self.graph = MaskGraph.of(order, graph_size.degree)
        self._threshold, self._context = graph_size.threshold, context
        self._secrets = secrets.SharedSecrets.of(keys, graph_size.threshold)
        self._private, self._seeds = (
            secrets.mask_private_keys(self._secrets.mask_keys[:, 0]),
            secrets.as_bytes(self._secrets.self_seeds[:, 0]),
        )
        self._public = list(map(secrets.public_key, self._private))

    def masked(self, user: int, vector: AnyInts) -> Words:
        """Return what a device sends in place of its vector, modulo the modulus, shape (size,)."""
        neighbours = self.graph.neighbours[user]
        public = [self._public[other] for other in neighbours.tolist()]
        keys = self._private[user], self._seeds[user]
        masked = masked_vector(vector, user, keys, neighbours, public, self._context)
        return reduced(masked, self._context.bits)

    def total(self, masked: Words, present: Bools) -> Words:
        """Unmask the sum of what those present sent; raises TooFewSharesError if too many dropped out."""
        check_threshold(self.graph, self._threshold, present)
        degree = self.graph.neighbours.shape[1]
        of_seeds = secrets.shares(self._secrets.self_seeds, degree)
        of_keys = secrets.shares(self._secrets.mask_keys, degree)
        revealed = of_one_secret(of_seeds, of_keys, self.graph, self._threshold, present)
        everybody = np.ones(present.size, dtype=np.bool_)
        total = unmasked_total(masked, everybody, present, revealed, self.graph, self._public, self._context)
        return reduced(total, self._context.bits)


def plain_total(vectors: AnyInts, present: Bools, bits: int) -> Words:
    """Return the sum of the vectors of those present with the masks that cancel left out, shape (size,)."""
    total = vectors[present].astype(word_type(bits)).sum(axis=0, dtype=word_type(bits))
    return reduced(total, bits)
