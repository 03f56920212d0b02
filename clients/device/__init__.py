"""A device that stands by itself: one user, one folder, and a server that it does not trust.

The handlers that answer are those of the simulation (`clients.app`). What is added here is what a real device
needs: a secret of its own, limits, a ledger and a memory that survive a crash, and a connection.

Names are imported on first use: the command line says what is wrong with its arguments without them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from clients.device.folder import Agreement, DeviceFolder, write_device
    from clients.device.ledger import Limits

__all__ = ["Agreement", "DeviceFolder", "Limits", "write_device"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "ledger" if name == "Limits" else "folder"
    return getattr(import_module(f"{__name__}.{module}"), name)
