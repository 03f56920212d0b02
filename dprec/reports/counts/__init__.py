"""Symbols about some ratings, and noisy counts over the others, in a further exchange."""

from dprec.reports.counts.family import CountFamily
from dprec.reports.counts.noise import CountNoise

__all__ = ["CountFamily", "CountNoise"]
