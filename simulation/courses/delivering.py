"""Lists of the best items for every user, where the server predicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dprec.arrays import AnyInts, Ints
from dprec.completion import Completed
from dprec.predictions import checked
from dprec.protocols.sharing import TopN
from simulation.courses.task import Grid, ServerTask

if TYPE_CHECKING:
    from dprec.wire import TrafficLedger
    from strategies.delivery import ListsToSend


def deliver(
    delivery: TopN,
    grid: Grid,
    task: ServerTask,
    completed: Completed,
    seen_cells: tuple[Ints, AnyInts] | None,
    traffic: TrafficLedger,
    name: str,
    guarded: Completed | None = None,
) -> dict[str, int]:
    """Send everybody a list; return the bytes charged, as `RoundAccount.spent` does.

    ``seen_cells``: how many cells of each user the server has seen as rated, and their items, by user; None
    if reports hide them. A device leaves out what it has rated by itself. ``guarded``: what ranks the items,
    if not the predictions.
    """
    from strategies.delivery import deliver_lists

    lists = lists_for(delivery, task, completed, seen_cells, name, guarded)
    return deliver_lists(grid, task.roster, task.group, lists, traffic)


def lists_for(
    delivery: TopN,
    task: ServerTask,
    completed: Completed,
    seen_cells: tuple[Ints, AnyInts] | None,
    name: str,
    guarded: Completed | None = None,
) -> ListsToSend:
    """Return what everybody is sent; see `deliver`."""
    from strategies.delivery import ListsToSend, SeenItems

    shape = task.n_users, task.n_items
    return ListsToSend(
        delivery.items,
        SeenItems.nothing(shape) if seen_cells is None else SeenItems(*seen_cells, task.n_items),
        task.scale,
        checked(completed.predict, f"completion {name}"),
        checked(completed.predict_rows, f"completion {name}"),
        None if guarded is None else guarded.predict_rows,
    )


def attacked_lists(
    delivery: TopN | None,
    task: ServerTask,
    completed: Completed,
    seen_cells: tuple[Ints, AnyInts],
    name: str,
) -> Ints | None:
    """Return what users are sent in a run that is attacked, if they are; ``seen_cells``: cells left out."""
    if delivery is None or not task.attacked:
        return None
    return lists_for(delivery, task, completed, seen_cells, name).best(np.arange(task.n_users))
