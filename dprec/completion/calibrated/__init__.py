"""Completion from the likelihood of what was received, and from item sets."""
