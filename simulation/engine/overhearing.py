"""A session in this process that records what its devices answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from flwr.app import Message
from flwr.clientapp import ClientApp

from clients.app import client_app
from clients.brought import Brought
from clients.places import folder_inside, place_of
from simulation.engine.local_grid import LocalGrid
from simulation.engine.runtime import identity_restored
from simulation.engine.session import Session
from simulation.engine.supervised_grid import SupervisedGrid
from simulation.engine.temporary import temporary_folder
from strategies.roster import identify


@contextmanager
def open_overheard_session(population_dir: str | None = None) -> Iterator[tuple[Session, list[Message]]]:
    """Start a session with one node, and yield it with the list that collects every reply.

    Parameters
    ----------
    population_dir : str, optional
        Directory or URL for the populations, which are deleted at the end; by default, a temporary one.
    """
    place = temporary_folder() if population_dir is None else folder_inside(place_of(population_dir))
    with place as folder, identity_restored():
        brought: dict[str, Brought] = {}
        grid = _OverheardGrid(client_app(str(folder), brought), 1)
        session = Session(
            SupervisedGrid(grid), identify(grid), folder, 0.0, individual_reports=True, brought=brought
        )
        yield session, grid.replies


class _OverheardGrid(LocalGrid):
    """A local grid that records the replies."""

    def __init__(self, app: ClientApp, nodes: int) -> None:
        super().__init__(app, nodes)
        self.replies: list[Message] = []

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Return the replies to the given messages, once."""
        replies = list(super().pull_messages(message_ids))
        self.replies += replies
        return replies
