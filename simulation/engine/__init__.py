"""Starts Flower, on Ray or in this process, and provides what a protocol needs from it.

What Flower does not promise to keep is used here, where a message is measured (`strategies.rounds`), and
where real devices are reached (`clients.device`, `simulation.deployment`), and nowhere else.
"""

from simulation.engine.grids import LocalGrid
from simulation.engine.session import Session, open_overheard_session, open_session

__all__ = ["LocalGrid", "Session", "open_overheard_session", "open_session"]
