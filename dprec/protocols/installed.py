"""What devices can be given, read back from what describes their population."""

from typing import TYPE_CHECKING

from dprec.components import Registry, one_of
from dprec.exchange import Setup
from dprec.exchange.setups import SETUPS
from dprec.protocols.one_shot import OneShotProtocol

INSTALLED: Registry[Setup] = Registry("protocol", Setup, [*SETUPS, OneShotProtocol])

if TYPE_CHECKING:
    AnyInstalled = Setup
else:
    AnyInstalled = one_of(INSTALLED)
