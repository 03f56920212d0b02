"""The ClientApp of a simulation, none of whose failures says more to the server than its code."""

import logging

from flwr.app import Context, Error, Message
from flwr.clientapp import ClientApp

from clients.population import PopulationError
from dprec import exchange
from dprec.components import CodeError
from dprec.federated import ContractError

LOG = logging.getLogger("dprec.device")
"""What the owner of a device can read about requests that were not answered."""


class WithheldError(Exception):
    """An exception on a device, of which a server reads the code alone.

    ``failure``: what was raised, for whoever runs the simulation.
    """

    def __init__(self, failure: CodeError) -> None:
        super().__init__(failure)
        self.failure = failure

    def __str__(self) -> str:
        return exchange.RefusalCode.INTERNAL_FAILURE.name


class RefusingApp(ClientApp):
    """A `ClientApp` that answers what it refuses with an error: a `RefusalCode` and its name."""

    def __call__(self, message: Message, context: Context) -> Message:
        """Answer a message.

        Raises PopulationError where the simulation has not provided the ratings, ContractError where its code
        from outside does not do what privacy rests on, and WithheldError for any other exception.
        """
        try:
            if message.metadata.message_type not in exchange.MESSAGE_TYPES | exchange.OF_SIMULATIONS:
                what = f"a message of type {message.metadata.message_type!r}"
                raise exchange.Refusal(exchange.RefusalCode.MALFORMED_REQUEST, what)
            return super().__call__(message, context)
        except (PopulationError, ContractError):
            raise
        except exchange.Refusal as refusal:
            LOG.warning("%s: %s", refusal.code.name, refusal.reason)
            return Message(Error(int(refusal.code), refusal.code.name), reply_to=message)
        except Exception as error:  # whatever it is, the server must not read it
            raise WithheldError(CodeError.of(error)) from None
