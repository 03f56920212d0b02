"""What a node does: in Flower's simulation, play made-up people; anywhere else, refuse.

In a deployment, devices run `dprec-pilot device`, which takes no code from a server. A SuperNode of Flower
does: what it runs is this file, so it refuses whatever it is asked, unless it is a worker of Flower's
simulation. Even there it has no ratings but those that it makes: neither a file nor a setting of the node
says where others could be.
"""

import sys

from flwr.app import Context, Error, Message
from flwr.clientapp import ClientApp

NOT_SET_UP = 102
"""That of `dprec.exchange.messages`: a node that refuses need not have dprec."""


class PilotApp(ClientApp):
    """Answers for made-up people in a simulation, and refuses everything else, of whatever type."""

    def __call__(self, message: Message, context: Context) -> Message:
        """Answer a message, or refuse it by a code that says nothing else."""
        if is_simulation_worker() and not context.run_config.get("folder"):
            from dprec_pilot.server.simulated_pilot import devices

            return devices()(message, context)
        return Message(Error(NOT_SET_UP, "NOT_SET_UP"), reply_to=message)


def is_simulation_worker() -> bool:
    """Return whether this process is an actor of Ray, as all nodes of Flower's simulation runtime are.

    A SuperNode starts a plain process. The node's own settings prove nothing: who starts a SuperNode may call
    it a partition.
    """
    ray = sys.modules.get("ray")
    return bool(ray and ray.is_initialized() and ray.get_runtime_context().get_actor_id())


app = PilotApp()
