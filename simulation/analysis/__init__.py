"""What the figures mean: settings and averages of a comparison, advice, projections, and their wording."""

from simulation.analysis.advice import Advice, AdviceLimits, advice_lines, advise
from simulation.analysis.populations import Projection, project
from simulation.analysis.settings import Setting, frontier, read_settings
from simulation.analysis.vocabulary import MEASURES, Average, Measure

__all__ = [
    "MEASURES",
    "Advice",
    "AdviceLimits",
    "Average",
    "Measure",
    "Projection",
    "Setting",
    "advice_lines",
    "advise",
    "frontier",
    "project",
    "read_settings",
]
