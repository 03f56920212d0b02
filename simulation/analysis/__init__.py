"""What the figures mean: settings and averages of a comparison, advice, projections, and their wording."""

from simulation.analysis.advice import Advice, advise
from simulation.analysis.advice_words import advice_lines
from simulation.analysis.averages import Average
from simulation.analysis.limits import AdviceLimits
from simulation.analysis.measures import MEASURES, Measure
from simulation.analysis.projection import Projection, project
from simulation.analysis.selection import frontier
from simulation.analysis.settings import Setting, read_settings

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
