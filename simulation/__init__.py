"""Simulated deployments: configuration, engine, run directory, comparisons and the command line."""

from simulation.run import run

__all__ = ["run"]
