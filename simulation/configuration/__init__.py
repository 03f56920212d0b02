"""Configurations: what they may hold, how their files are read, and one-line errors."""
