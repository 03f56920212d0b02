"""How long processes may take to start: only what hangs takes so long, however busy the machine."""

START_SECONDS = 300.0
"""Longest wait for a worker, a node, a free processor or Flower's runtime while nothing else goes on."""
