"""What a device would run that trusts code from the server: nothing. Devices run `dprec device`."""

from flwr.app import Context, Error, Message
from flwr.clientapp import ClientApp

NOT_SET_UP = 102
"""That of `dprec.exchange.messages`, which such a device need not have."""

app = ClientApp()


@app.query()
@app.train()
@app.evaluate()
def refuse(message: Message, _context: Context) -> Message:
    """Refuse whatever is asked."""
    return Message(Error(NOT_SET_UP, "NOT_SET_UP"), reply_to=message)
