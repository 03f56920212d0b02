"""Experiment trackers: they are given a run's settings, its rounds as they come, and its figures."""

from simulation.tracking.trackers import TRACKERS, Callback, Started

__all__ = ["TRACKERS", "Callback", "Started"]
