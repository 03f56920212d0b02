"""Formulas of lists of items: what sums of sets tell of items, and how devices rank by it."""
