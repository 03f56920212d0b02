"""A device that stands by itself: one user, one folder, and a server that it does not trust.

The handlers that answer are those of the simulation (`clients.app`). What is added here is what a real device
needs: a secret of its own, limits, a ledger and a memory that survive a crash, and a connection.
"""
