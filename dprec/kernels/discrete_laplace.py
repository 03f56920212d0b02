"""Noise in integers, every draw of which takes random words of its own until it is accepted."""

import numpy as np

from dprec.arrays import Ints, Uint64s
from dprec.kernels.compilation import Table, Written, compiled

_MULTIPLIERS = np.uint64(0xD2E7470EE14C6C93), np.uint64(0xCA5A826395121157)
_KEY_STEPS = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBB67AE8584CAA73B)
_LOW_HALF, _HALF, _LANE = np.uint64(2**32 - 1), np.uint64(32), np.uint64(3)
_ZERO, _ONE, _TWO = np.uint64(0), np.uint64(1), np.uint64(2)
_REMAINDER, _ACCEPTED, _QUOTIENT, _SIGN = range(4)
"""Stages of a draw: its last bits, whether these are accepted, the rest of its bits, and its sign."""


@compiled
def high_product(one: np.uint64, other: np.uint64) -> np.uint64:
    """Return the high 64 bits of a product of 128."""
    middle = (one >> _HALF) * (other & _LOW_HALF) + ((one & _LOW_HALF) * (other & _LOW_HALF) >> _HALF)
    carried = (one & _LOW_HALF) * (other >> _HALF) + (middle & _LOW_HALF)
    return (one >> _HALF) * (other >> _HALF) + (middle >> _HALF) + (carried >> _HALF)


@compiled
def philox(key: np.uint64, second_key: np.uint64, index: np.uint64) -> np.uint64:
    """Return a word of the stream of a key: Philox-4x64-10 (Salmon et al. [salmon2011]), as NumPy has it."""
    first, second, third, fourth = (index >> _TWO) + _ONE, _ZERO, _ZERO, _ZERO
    for _ in range(10):
        first, second, third, fourth = (
            high_product(_MULTIPLIERS[1], third) ^ second ^ key,
            _MULTIPLIERS[1] * third,
            high_product(_MULTIPLIERS[0], first) ^ fourth ^ second_key,
            _MULTIPLIERS[0] * first,
        )
        key += _KEY_STEPS[0]
        second_key += _KEY_STEPS[1]
    if index & _TWO:
        return fourth if index & _ONE else third
    return second if index & _ONE else first


@compiled
def draw(noise: Written[Ints], indices: Ints, keys: Table[Uint64s], bits: int) -> bool:
    """Write the draw of each index; return whether the keys were enough, of which each word takes another.

    Canonne, Kamath and Steinke [canonne2020], Algorithms 1 and 2. A draw is remainder + quotient * 2**bits,
    and a sign. A coin that shows heads with probability exp(-p) is tossed as coins of p / 1, p / 2 and so on
    until the first tails: it shows heads if that toss was an odd one.
    """
    for place in range(indices.size):
        stage, toss, remainder, quotient, used = _REMAINDER, 1, np.int64(0), 0, 0
        while True:
            if used == keys.shape[0]:
                return False
            word = philox(keys[used, 0], keys[used, 1], np.uint64(indices[place]))
            used += 1
            # The high half is a number below 2**bits, the low half one of `toss` cases.
            high, scaled = np.int64(word >> _HALF), (word & _LOW_HALF) * np.uint64(toss)
            below = high >> (32 - bits)
            if stage == _REMAINDER:
                stage, toss, remainder = _ACCEPTED, 1, below
            elif stage == _SIGN:
                size = remainder + (quotient << bits)
                if high < 2**31 or size > 0:
                    noise[place] = size if high < 2**31 else -size
                    break
                stage = _REMAINDER
            # Of the 2**32 low halves, those are not used that would make one case likelier than another.
            elif np.int64(scaled & _LOW_HALF) >= 2**32 % toss:
                if scaled >> _HALF == _ZERO and (stage == _QUOTIENT or below < remainder):
                    toss += 1
                    continue
                odd = toss % 2 == 1
                # A coin of exp(-1) begins with a toss that shows heads for certain, which is left out.
                toss = 2
                if stage == _QUOTIENT and odd:
                    quotient += 1
                elif stage == _QUOTIENT:
                    stage = _SIGN
                else:
                    stage = _QUOTIENT if odd else _REMAINDER
    return True
