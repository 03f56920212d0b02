"""The exchange of masks with real messages: one side for every device, and what a server computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dprec.arrays import AnyInts, Bools, Ints
from dprec.secure_aggregation import masking, secrets
from dprec.secure_aggregation import secrets as shamir
from dprec.secure_aggregation.encoding import reduced, word_type
from dprec.secure_aggregation.masking import GraphSize, MaskGraph

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

_NONCE = bytes(12)


class MaskingDevice:
    """What one device says in one sum, step by step; each step is answered once.

    ``key`` is its key of this sum, from `dprec.secure_aggregation.secrets.device_keys`; ``user`` its own
    number in the sum.
    """

    def __init__(
        self, key: bytes, user: int, neighbours: Ints, graph_size: GraphSize, context: masking.SumContext
    ) -> None:
        self._user, self._neighbours = user, neighbours
        self._size, self._context = graph_size, context
        self._channel = secrets.channel_private_key(key)
        self._secrets = secrets.SharedSecrets.of([key], graph_size.threshold)
        self._private = self._secrets.private_keys()[0]
        self._public: list[tuple[bytes, bytes]] = []
        self._held: list[bytes] = []
        self._answered = False

    def advertise(self) -> bytes:
        """Return the public keys: of its masks, and of its channel."""
        return secrets.public_key(self._private) + secrets.public_key(self._channel)

    def share(self, keys_of_neighbours: bytes) -> bytes:
        """Return shares of its two secrets for every neighbour, encrypted for it."""
        keys = masking.pieces(keys_of_neighbours, self._size.degree, masking.KEYS_BYTES)
        self._public = [(key[: secrets.PUBLIC_BYTES], key[secrets.PUBLIC_BYTES :]) for key in keys]
        given = [
            shamir.as_bytes(shamir.shares(polynomials, self._size.degree)[0])
            for polynomials in (self._secrets.mask_keys, self._secrets.self_seeds)
        ]
        sealed = [
            self._cipher(column, self._user).encrypt(_NONCE, mask_key + seed, None)
            for column, (mask_key, seed) in enumerate(zip(*given, strict=True))
        ]
        return b"".join(sealed)

    def mask(self, shares_of_neighbours: bytes, vector: AnyInts) -> bytes:
        """Keep the shares that neighbours encrypted for this device, and return the masked vector."""
        sealed = masking.pieces(shares_of_neighbours, self._size.degree, masking.SEALED_BYTES)
        self._held = [
            self._cipher(column, neighbour).decrypt(_NONCE, data, None)
            for column, (neighbour, data) in enumerate(zip(self._neighbours.tolist(), sealed, strict=True))
        ]
        keys = self._private, self._secrets.seeds()[0]
        masks = [mask_key for mask_key, _ in self._public]
        masked = masking.masked_vector(vector, self._user, keys, self._neighbours, masks, self._context)
        return masking.pack_vector(masked, self._context.bits)

    def unmask(self, presence_of_neighbours: bytes) -> bytes:
        """Return of every neighbour a share of its seed if it is present, and of its mask key if it is not.

        Raises ValueError when it is asked again, or fewer than the threshold are said to be present.
        """
        present = masking.unpack_presence(presence_of_neighbours, self._size.degree)
        if self._answered:
            raise ValueError("shares of this sum were revealed already")
        if present.sum() < self._size.threshold:
            raise ValueError(f"{present.sum()} neighbours present, of whom {self._size.threshold} must be")
        self._answered = True
        return b"".join(
            held[secrets.SECRET_BYTES :] if is_present else held[: secrets.SECRET_BYTES]
            for held, is_present in zip(self._held, present.tolist(), strict=True)
        )

    def _cipher(self, column: int, sender: int) -> ChaCha20Poly1305:
        """Return the cipher for shares between this device and a neighbour, in one direction."""
        from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

        identity = self._context.identity + sender.to_bytes(8, "little")
        # A key of its own for either direction and every sum: the nonce need not change.
        return ChaCha20Poly1305(
            secrets.agreed_key(self._channel, self._public[column][1], "share channel", identity)
        )


class MaskedSum:
    """Devices that add up vectors, in an order on the circle: their keys, shares and masks, unencrypted."""

    def __init__(
        self, keys: Sequence[bytes], order: Ints, graph_size: GraphSize, context: masking.SumContext
    ) -> None:
        self.graph = MaskGraph.of(order, graph_size.degree)
        self._threshold, self._context = graph_size.threshold, context
        self._secrets = secrets.SharedSecrets.of(keys, graph_size.threshold)
        self._private, self._seeds = self._secrets.private_keys(), self._secrets.seeds()
        self._public = secrets.public_keys(self._private)

    def masked(self, user: int, vector: AnyInts) -> masking.Words:
        """Return what a device sends in place of its vector, modulo the modulus, shape (size,)."""
        neighbours = self.graph.neighbours[user]
        public = [self._public[other] for other in neighbours.tolist()]
        keys = self._private[user], self._seeds[user]
        masked = masking.masked_vector(vector, user, keys, neighbours, public, self._context)
        return reduced(masked, self._context.bits)

    def total(self, masked: masking.Words, present: Bools) -> masking.Words:
        """Unmask the sum of what those present sent; raises TooFewSharesError if too many dropped out."""
        masking.check_threshold(self.graph, self._threshold, present)
        degree = self.graph.neighbours.shape[1]
        of_seeds = shamir.shares(self._secrets.self_seeds, degree)
        of_keys = shamir.shares(self._secrets.mask_keys, degree)
        revealed = masking.RevealedShares.of(of_seeds, of_keys, self.graph, self._threshold, present)
        total = masking.unmasked_total(masked, present, revealed, self.graph, self._public, self._context)
        return reduced(total, self._context.bits)


def plain_total(vectors: AnyInts, present: Bools, bits: int) -> masking.Words:
    """Return the sum of the vectors of those present with the masks that cancel left out, shape (size,)."""
    total = vectors[present].astype(word_type(bits)).sum(axis=0, dtype=word_type(bits))
    return reduced(total, bits)
