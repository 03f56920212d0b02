"""Comparisons: protocols x epsilons x folds x seeds on the same ratings, in one table."""

from simulation.comparison.planning import Comparison, load_comparison
from simulation.comparison.running import ComparisonResult, run_comparison
from simulation.comparison.templates import Cell, ComparisonConfig

__all__ = ["Cell", "Comparison", "ComparisonConfig", "ComparisonResult", "load_comparison", "run_comparison"]
