"""One simulation at a time: Flower has one identity per process, and Ray one connection.

A simulation in another thread waits for its turn; one inside another, in the same thread, takes part in it.
"""

import threading

TURN = threading.RLock()
"""Held by the thread that has a simulation open, or is connected to Ray."""
