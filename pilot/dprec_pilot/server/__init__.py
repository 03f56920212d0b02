"""The server of a pilot: the same protocols on Flower's SuperLink, and what its operator does."""
