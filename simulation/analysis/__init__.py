"""What the figures mean: results and averages of a comparison, advice, projections, and their wording."""

from simulation.analysis.advice import Advice, AdviceLimits, advice_lines, advise
from simulation.analysis.populations import Projection, project
from simulation.analysis.protocol_results import ProtocolResult, read_results
from simulation.analysis.vocabulary import METRICS, Average, Metric

__all__ = [
    "METRICS",
    "Advice",
    "AdviceLimits",
    "Average",
    "Metric",
    "Projection",
    "ProtocolResult",
    "advice_lines",
    "advise",
    "project",
    "read_results",
]
