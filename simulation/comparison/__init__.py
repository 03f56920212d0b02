"""Comparisons: protocols x epsilons x folds x seeds on the same ratings, in one table."""
