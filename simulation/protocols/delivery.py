"""Whether, and how, users get what the server predicts for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dprec.arrays import AnyInts
from dprec.completion import Completed
from dprec.components import Options, option
from dprec.predictions import checked, checked_rows
from simulation.protocols.task import Grid, ServerTask

if TYPE_CHECKING:
    from dprec.wire import TrafficLedger

NOT_DELIVERED = (
    "What the server predicts is not sent back to the users: the bytes down leave out their recommendations."
)
"""Of a protocol that has no delivery."""


@dataclass(frozen=True, kw_only=True)
class TopN(Options):
    """Each user gets the best items that the server has not seen as rated, with their predicted ratings."""

    items: int = option("Length of the list.", 10, ge=1, le=10_000)

    def deliver(
        self,
        grid: Grid,
        task: ServerTask,
        completed: Completed,
        seen: tuple[AnyInts, AnyInts] | None,
        traffic: TrafficLedger,
        name: str,
    ) -> dict[str, int]:
        """Send everybody a list; return the bytes charged, as `RoundAccount.spent` does.

        ``seen``: users and items of the cells that the server has seen as rated, by user; None if reports
        hide them. A device leaves out what it has rated by itself.
        """
        from strategies.delivery import Lists, Seen, deliver_lists

        shape = task.n_users, task.n_items
        lists = Lists(
            self.items,
            Seen.nothing(shape) if seen is None else Seen.of(*seen, shape),
            task.scale,
            checked(completed.predict, f"completion {name}"),
            checked_rows(completed.predict_rows, f"completion {name}"),
        )
        return deliver_lists(grid, task.roster, task.group, lists, traffic)


DELIVERY = (
    "What users are sent where the server predicts: a list of the best items, or null for nothing. Papers do "
    "not say."
)
"""What the setting means, for every protocol that has it."""
