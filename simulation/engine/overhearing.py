"""A session in this process that records what its devices are asked and answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from flwr.app import Message
from flwr.clientapp import ClientApp

from clients.app import client_app
from clients.brought import NOTHING, Brought
from clients.places import folder_inside, place_of
from clients.population import Population, open_population
from simulation.engine.local_grid import LocalGrid
from simulation.engine.runtime import identity_restored
from simulation.engine.session import Session
from simulation.engine.supervised_grid import SupervisedGrid
from simulation.engine.temporary import temporary_folder
from strategies.roster import identify


@dataclass(frozen=True, eq=False)
class Overhearing:
    """What is heard of a session.

    Parameters
    ----------
    session : Session
    grid : OverheardGrid
        Its only node answers for everybody.
    """

    session: Session
    grid: OverheardGrid

    @property
    def replies(self) -> list[Message]:
        """Every reply so far, in order."""
        return self.grid.replies

    @property
    def requests(self) -> list[Message]:
        """Every request so far, in order."""
        return self.grid.requests

    def population(self, request: Message) -> Population:
        """Return the people whom a request is for."""
        run = request.metadata.group_id
        return open_population(f"{self.session.root}/{run}", self.session.brought.get(run, NOTHING))

    def ask(self, request: Message) -> Message:
        """Return the reply to a further request, which is not recorded."""
        (identifier,) = LocalGrid.push_messages(self.grid, [request])
        (reply,) = LocalGrid.pull_messages(self.grid, [identifier])
        return reply


@contextmanager
def open_overheard_session(population_dir: str | None = None) -> Iterator[Overhearing]:
    """Start a session with one node, and yield it with all that is said.

    Parameters
    ----------
    population_dir : str, optional
        Directory or URL for the populations, which are deleted at the end; by default, a temporary one.
    """
    place = temporary_folder() if population_dir is None else folder_inside(place_of(population_dir))
    with place as folder, identity_restored():
        brought: dict[str, Brought] = {}
        grid = OverheardGrid(client_app(str(folder), brought), 1)
        session = Session(
            SupervisedGrid(grid), identify(grid), folder, 0.0, individual_reports=True, brought=brought
        )
        yield Overhearing(session, grid)


class OverheardGrid(LocalGrid):
    """A local grid that records requests and replies."""

    def __init__(self, app: ClientApp, nodes: int) -> None:
        super().__init__(app, nodes)
        self.requests: list[Message] = []
        self.replies: list[Message] = []

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Answer each message at once and keep the reply until it is pulled."""
        asked = list(messages)
        self.requests += asked
        return super().push_messages(asked)

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Return the replies to the given messages, once."""
        replies = list(super().pull_messages(message_ids))
        self.replies += replies
        return replies
