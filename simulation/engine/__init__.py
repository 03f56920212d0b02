"""Starts Flower, on Ray or in this process, and hands out what a protocol needs of it.

Every private name of Flower that the project uses is here, but for those that tell the size of a
message (`strategies.envelope`).
"""

from simulation.engine.local_grid import LocalGrid
from simulation.engine.overhearing import open_overheard_session
from simulation.engine.session import Session, open_session

__all__ = ["LocalGrid", "Session", "open_overheard_session", "open_session"]
