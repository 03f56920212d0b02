"""Configurations: what they may hold, how their files are read, and errors of one line."""
