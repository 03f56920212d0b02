"""An app on a device, none of whose failures says more to the server than its code."""

from __future__ import annotations

import logging

from flwr.app import Context, Error, Message
from flwr.clientapp import ClientApp

from clients.population import PopulationError
from dprec.exchange import MESSAGE_TYPES, Refusal, RefusalCode

LOG = logging.getLogger("dprec.device")
"""What the owner of a device can read about requests that were not answered."""


class RefusingApp(ClientApp):
    """A `ClientApp` that answers what it refuses with an error: a `RefusalCode` and its name."""

    def __call__(self, message: Message, context: Context) -> Message:
        """Answer a message.

        Raises
        ------
        PopulationError
            When the simulation did not provide the device with its ratings: that is no device's fault.
        """
        try:
            if message.metadata.message_type not in MESSAGE_TYPES:
                what = f"a message of type {message.metadata.message_type!r}"
                raise Refusal(RefusalCode.MALFORMED_REQUEST, what)
            return super().__call__(message, context)
        except PopulationError:
            raise
        except Refusal as refusal:
            LOG.warning("%s: %s", refusal.code.name, refusal.reason)
            code = refusal.code
        except Exception:  # whatever it is, the server must not read it
            code = RefusalCode.INTERNAL_FAILURE
            LOG.exception("%s", code.name)
        return Message(Error(int(code), code.name), reply_to=message)
