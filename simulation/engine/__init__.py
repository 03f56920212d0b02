"""Starts Flower, on Ray or in this process, and provides what a protocol needs from it.

Every private name of Flower that the project uses is here, except for those that measure the size of a
message (`strategies.envelope`).
"""

from simulation.engine.local_grid import LocalGrid
from simulation.engine.overhearing import open_overheard_session
from simulation.engine.session import Session, open_session

__all__ = ["LocalGrid", "Session", "open_overheard_session", "open_session"]
