"""Attacks on a run: what they are given, and what is written of what they reach."""
