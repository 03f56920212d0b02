"""Bytes of a server that a device does not trust."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from hypothesis import strategies as st

DeviceT = TypeVar("DeviceT")


def devices_sent(data: st.DataObject, good: bytes, read: Callable[[bytes], DeviceT]) -> Iterator[DeviceT]:
    """Yield the devices that were not refused what is nearly good, cut off, or random bytes."""
    place = data.draw(st.integers(0, len(good) - 1))
    changed = good[:place] + bytes([data.draw(st.integers(0, 255))]) + good[place + 1 :]
    cut = changed[: data.draw(st.integers(0, len(good)))]
    for sent in (changed, cut, data.draw(st.binary(max_size=40))):
        try:
            device = read(sent)
        except ValueError:
            continue
        yield device
