"""Comparisons: protocols x epsilons x folds x seeds on the same ratings, in one table."""

from simulation.comparison.run import ComparisonResult, compare

__all__ = ["ComparisonResult", "compare"]
