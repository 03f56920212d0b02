"""What a node does that Flower starts: refuse, whatever it is asked.

Devices run `dprec-pilot device`, which takes no code from a server. A SuperNode of Flower does: what it runs
is this file. A simulation is `dprec run`.
"""

from flwr.app import Context, Error, Message
from flwr.clientapp import ClientApp

NOT_SET_UP = 102
"""That of `dprec.exchange`: a node that refuses need not have dprec."""


class RefusingApp(ClientApp):
    """Refuses every message, of whatever type, by a code that says nothing else."""

    def __call__(self, message: Message, context: Context) -> Message:
        """Refuse a message."""
        return Message(Error(NOT_SET_UP, "NOT_SET_UP"), reply_to=message)


app = RefusingApp()
