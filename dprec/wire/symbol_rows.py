"""Symbols alone, if both ends already know which items they are for: a prefix code and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dprec.arrays import cut, offsets
from dprec.channel import Channel
from dprec.wire.bits import BitStream
from dprec.wire.symbols import PrefixCode


class SymbolRows:
    """Encoder and decoder of users' symbols, whose number both ends know."""

    def __init__(self, channel: Channel) -> None:
        self._code = PrefixCode.for_distribution(channel.marginal())

    def encode(self, counts: NDArray[np.int64], symbols: NDArray[np.integer]) -> list[bytes]:
        """Encode the symbols of a partition.

        Parameters
        ----------
        counts : ndarray of int64, shape (users,)
        symbols : ndarray of int, shape (sum of counts,)
            By user.

        Returns
        -------
        list of bytes, one per user
        """
        code_starts, cells = offsets(self._code.lengths[symbols]), offsets(counts)
        sizes = (np.diff(code_starts[cells]) + 7) // 8
        bits = np.zeros(int(sizes.sum()) * 8, dtype=np.uint8)
        bases = offsets(sizes)[:-1] * 8 - code_starts[cells[:-1]]
        self._code.write(bits, code_starts[:-1] + np.repeat(bases, counts), symbols)
        return cut(np.packbits(bits).tobytes(), sizes)

    def decode(
        self, reports: Sequence[bytes], counts: NDArray[np.int64]
    ) -> tuple[NDArray[np.bool_], NDArray[np.uint16]]:
        """Decode the reports of users from whom ``counts`` symbols are expected.

        Returns
        -------
        valid : ndarray of bool, shape (users,)
            A report that does not end with its last symbol, apart from padding zeros, is rejected
            without an exception.
        symbols : ndarray of uint16, shape (sum of the valid users' counts,)
        """
        stream = BitStream(reports)
        symbols, ends = self._code.read(stream, stream.starts, counts)
        padding = stream.ends - ends
        fits = (padding >= 0) & (padding < 8)
        valid = fits & (stream.peek(ends, np.where(fits, padding, 0)) == 0)
        return valid, symbols[np.repeat(valid, counts)]
