"""The ClientApp of a simulation, none of whose failures says more to the server than its code."""

import logging

from flwr.app import Context, Error, Message
from flwr.clientapp import ClientApp

from clients.population import PopulationError
from dprec import exchange
from dprec.federated import ContractError

LOG = logging.getLogger("dprec.device")
"""What the owner of a device can read about requests that were not answered."""


class RefusingApp(ClientApp):
    """A `ClientApp` that answers what it refuses with an error: a `RefusalCode` and its name."""

    def __call__(self, message: Message, context: Context) -> Message:
        """Answer a message.

        Raises PopulationError where the simulation has not provided the ratings, and ContractError where its
        code from outside does not do what privacy rests on.
        """
        try:
            if message.metadata.message_type not in exchange.MESSAGE_TYPES:
                what = f"a message of type {message.metadata.message_type!r}"
                raise exchange.Refusal(exchange.RefusalCode.MALFORMED_REQUEST, what)
            return super().__call__(message, context)
        except (PopulationError, ContractError):
            raise
        except exchange.Refusal as refusal:
            LOG.warning("%s: %s", refusal.code.name, refusal.reason)
            code = refusal.code
        except Exception:  # whatever it is, the server must not read it
            code = exchange.RefusalCode.INTERNAL_FAILURE
            LOG.exception("%s", code.name)
        return Message(Error(int(code), code.name), reply_to=message)
