"""Tables of numbers in few bits: rounded to steps, as many to a byte as there is room for, and compressed.

What has noise in it, or only ranks items, needs no steps much below it: rounding adds a twelfth of a step's
square to the variance of the noise. So a sender chooses steps (`step_of`) by numbers that are released or
public already, and how many bits a number takes follows from how the rounded ones spread: a bit or two where
most are 0, none where all are equal. Logarithms are what to round where ratios matter. Both ends work with
the rounded numbers, which are written with the same steps as they were read.
"""

import math
import zlib
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from dprec.arrays import AnyArray, AnyInts, Bools, Floats, Int32s, Ints, Pieces, Uint8s
from dprec.wire.symbols import decode_item_sets

MOST_NUMBERS = 1 << 24
"""With one step: a few compressed bytes could fill the memory of a device. Readers bound the rows."""

FARTHEST = (1 << 15) - 1
"""Steps from 0 to either side; steps are longer where there would be more."""

MOST_TIMES = 1024.0
"""With steps so many times as long as those that matter, everything is as good as 0."""

_STEP = np.dtype("<f4")
_HEADING = np.dtype([("low", "<i2"), ("span", "<u2")])

_DIGITS = np.floor(np.log(256.5) / np.log(np.arange(2, 257))).astype(np.int64)
"""How many digits of base 2, 3 and so on have room in a byte."""

_STRATEGIES = zlib.Z_DEFAULT_STRATEGY, zlib.Z_HUFFMAN_ONLY

SentT = TypeVar("SentT")


def step_of(numbers: Floats, fraction: float) -> float:
    """Return the step that is a fraction of the root mean square of some numbers; 1 if all are 0.

    Rounding adds ``fraction**2 / 12`` of their mean square, as noise would.
    """
    size = float(np.sqrt(np.mean(numbers**2))) if numbers.size else 0.0
    return size * fraction if size > 0 else 1.0


def encode_numbers(numbers: Floats, steps: Floats | float) -> bytes:
    """Return numbers, rounded to steps, as bytes that know their end.

    Parameters
    ----------
    numbers : ndarray of float64, any shape
        Finite.
    steps : float or ndarray, shape (rows,)
        Above 0: one for all numbers, or one for each row, the first axis, which is then compressed by itself.
    """
    row_steps = np.atleast_1d(np.asarray(steps, dtype=np.float64))
    rows = numbers.reshape(row_steps.size, -1) if numbers.size else np.zeros((row_steps.size, 0))
    # A quarter beyond the farthest is rounded to it, whatever single precision makes of a step.
    least = np.abs(rows).max(axis=1, initial=0.0) / (FARTHEST + 0.25)
    sent = np.maximum(row_steps, np.maximum(least, np.finfo(_STEP).tiny)).astype(_STEP)
    rounded = np.rint(rows / sent.astype(np.float64)[:, None]).astype(np.int64)
    return sent.tobytes() + b"".join(map(encode_integers, rounded))


def encode_integers(integers: AnyInts | Bools) -> bytes:
    """Return integers of any shape, at most `FARTHEST` from 0, as bytes that know their end."""
    flat = integers.ravel().astype(np.int64)
    low, high = (int(flat.min()), int(flat.max())) if flat.size else (0, 0)
    span, above = high - low, flat - low
    heading = np.array([(low, span)], dtype=_HEADING).tobytes()
    if not span:
        return heading
    if span < 256:
        digits = int(_DIGITS[span - 1])
        padded = np.append(above, np.zeros(-above.size % digits, dtype=np.int64)).reshape(-1, digits)
        packed = padded @ (span + 1) ** np.arange(digits)
    else:
        packed = np.concatenate([above & 255, above >> 8])
    data = packed.astype(np.uint8).tobytes()
    return heading + min((_deflated(data, strategy) for strategy in _STRATEGIES), key=len)


def fitted(
    tried: Callable[[float], SentT], size: Callable[[SentT], int], most: int, longest: float
) -> SentT | None:
    """Return what fits with the shortest steps, None where nothing does.

    ``tried``: returns what is sent with steps so many times as long, from 1 to ``longest``; ``size``: its
    bytes; ``most``: of these.
    """
    every = (tried(2.0 ** (halves / 2)) for halves in range(1 + round(2 * math.log2(longest))))
    return next((sent for sent in every if size(sent) <= most), None)


def _deflated(data: bytes, strategy: int) -> bytes:
    stream = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS, 9, strategy)
    return stream.compress(data) + stream.flush()


def inflated(data: bytes, size: int, window: int = -zlib.MAX_WBITS) -> tuple[Uint8s, bytes]:
    """Return what was compressed, which must be exactly so many bytes, and what follows; else ValueError."""
    stream = zlib.decompressobj(window)
    try:
        body = stream.decompress(data, size + 1)
    except zlib.error:
        body = b""
    if len(body) != size or not stream.eof:
        raise ValueError(f"{len(data)} bytes that are no {size} bytes, compressed")
    return np.frombuffer(body, dtype=np.uint8), stream.unused_data


class Reader:
    """Numbers one after another in bytes."""

    def __init__(self, data: bytes) -> None:
        self._data, self._place = data, 0

    def numbers(self, kind: np.dtype[Any], count: int) -> AnyArray:
        """Return so many numbers; raises ValueError where there are fewer."""
        end = self._place + count * kind.itemsize
        if end > len(self._data):
            raise ValueError(f"{len(self._data)} bytes, of which {end} are needed")
        numbers = np.frombuffer(self._data[self._place : end], dtype=kind)
        self._place = end
        return numbers

    def floats(self, kind: np.dtype[Any], count: int) -> Floats:
        """Return so many numbers in double precision, which may not be finite; for errors see `numbers`."""
        # To widen a signalling NaN is no error: whoever reads the numbers refuses it.
        with np.errstate(invalid="ignore"):
            return self.numbers(kind, count).astype(np.float64)

    def rounded(self, shape: tuple[int, ...]) -> tuple[Floats, float]:
        """Return numbers of a shape that are rounded to steps, and the step; raises ValueError."""
        numbers, steps = self.rounded_rows(shape, 1)
        return numbers, float(steps[0])

    def rounded_rows(self, shape: tuple[int, ...], steps: int) -> tuple[Floats, Floats]:
        """Return numbers of a shape, and the steps of its rows, or the one of all.

        Raises ValueError, as devices do not trust the server, for what is cut short, out of range, more than
        `MOST_NUMBERS`, or not of this size.
        """
        row_steps = self.floats(_STEP, steps)
        # Not a number is in no range.
        if not ((row_steps > 0) & (row_steps < np.inf)).all():
            raise ValueError(f"{len(self._data)} bytes with steps that are not above 0")
        rows = [
            self.integers(int(np.prod(shape, dtype=np.int64)) // steps) * step for step in row_steps.tolist()
        ]
        return np.array(rows, dtype=np.float64).reshape(shape), row_steps

    def integers(self, count: int) -> Ints:
        """Return so many packed integers, shape (count,); for errors see `rounded_rows`."""
        if count > MOST_NUMBERS:
            raise ValueError(f"a table of {count} numbers, of which a device takes {MOST_NUMBERS}")
        low, span = map(int, self.numbers(_HEADING, 1)[0])
        if not span:
            return np.full(count, low, dtype=np.int64)
        digits = int(_DIGITS[span - 1]) if span < 256 else 0
        packed, remainder = inflated(self.rest(), -(-count // digits) if digits else 2 * count)
        self._place = len(self._data) - len(remainder)
        if digits:
            powers = (span + 1) ** np.arange(digits)
            every = (packed.astype(np.int64)[:, None] // powers % (span + 1)).ravel()
            valid = not every[count:].any() and bool((packed < (span + 1) ** digits).all())
            above = every[:count]
        else:
            above = packed[:count] + 256 * packed[count:].astype(np.int64)
            valid = bool((above <= span).all())
        if not valid:
            raise ValueError(f"a table of numbers beyond its {span} steps")
        return low + above

    def item_set(self, n_items: int, size: int | None = None) -> Int32s:
        """Return a set of so many items, or of some at least, ascending; raises ValueError."""
        if size == 0:
            # It has no bytes.
            return np.zeros(0, dtype=np.int32)
        valid, _, items, ends = decode_item_sets(Pieces.of([self.rest()]), n_items)
        if not valid.all() or items.size != (size or items.size):
            wanted = "items" if size is None else f"{size} items"
            raise ValueError(f"{len(self.rest())} bytes that begin with no set of {wanted}")
        self._place += int(ends[0])
        return items

    def rest(self) -> bytes:
        """Return what was not read yet."""
        return self._data[self._place :]

    def end(self) -> None:
        """Raise ValueError where there is more."""
        if self._place != len(self._data):
            raise ValueError(f"{len(self._data)} bytes, of which {self._place} are read")
