"""Starts Flower, on Ray or in this process, and hands out what a protocol needs of it."""
