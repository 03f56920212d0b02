"""Reports: a self-contained page with tables and figures, built from the files of a directory alone."""

from simulation.pages.build import *

__all__ = [
    "comparison_html",
    "plot",
    "plot_channel",
    "plot_comparison",
    "projected",
    "report",
    "report_runs",
    "run_html",
]
