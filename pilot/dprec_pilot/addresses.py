"""Addresses of servers, as HOST:PORT."""

import re

from dprec.errors import InputError

_ADDRESS = re.compile(r"([A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]):([0-9]{1,5})", re.ASCII)
"""A name or an address of version 4, or one of version 6 in brackets; and the port."""


def check_address(address: str, where: str = "--superlink") -> None:
    """Raise InputError for what is no address."""
    found = _ADDRESS.fullmatch(address)
    if found is None or not 0 < int(found[2]) < 1 << 16:
        raise InputError(where, address, "HOST:PORT, such as recommend.example:443")
