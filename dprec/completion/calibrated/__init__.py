"""Completion from the likelihood of what was received, and from which items were rated."""
