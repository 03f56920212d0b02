"""Numbers of equally many bits in bytes, the highest bit first."""

import numpy as np

from dprec.arrays import Uint8s, Uint64s
from dprec.kernels.compilation import Written, compiled

_BYTE, _EIGHT = np.uint64(255), np.uint64(8)


@compiled
def pack(words: Uint64s, bits: int, data: Written[Uint8s]) -> None:
    """Write numbers below 2**bits, of at most 62 bits, one after another into all of ``data``."""
    held, count, place = np.uint64(0), 0, 0
    # In two halves, so that what is held fits a word.
    widths = bits // 2, bits - bits // 2
    for word in words:
        for half in range(2):
            width = np.uint64(widths[half])
            part = (
                word >> np.uint64(widths[1]) if half == 0 else word & ((np.uint64(1) << width) - np.uint64(1))
            )
            held = (held << width) | part
            count += widths[half]
            while count >= 8:
                count -= 8
                data[place] = np.uint8((held >> np.uint64(count)) & _BYTE)
                place += 1
    if count > 0:
        data[place] = np.uint8((held << np.uint64(8 - count)) & _BYTE)


@compiled
def unpack(data: Uint8s, bits: int, words: Written[Uint64s]) -> None:
    """Read what `pack` has written; the caller has checked that it is there."""
    held, count, place = np.uint64(0), 0, 0
    widths = bits // 2, bits - bits // 2
    for index in range(words.size):
        word = np.uint64(0)
        for half in range(2):
            while count < widths[half]:
                held = (held << _EIGHT) | np.uint64(data[place])
                count += 8
                place += 1
            count -= widths[half]
            width = np.uint64(widths[half])
            part = (held >> np.uint64(count)) & ((np.uint64(1) << width) - np.uint64(1))
            word = (word << width) | part
        words[index] = word
