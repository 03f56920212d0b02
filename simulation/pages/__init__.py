"""Reports: a self-contained page with tables and figures, built from the files of a directory alone."""

from simulation.pages.build import plot, projected, report

__all__ = ["plot", "projected", "report"]
