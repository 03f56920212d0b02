"""Figures: pure functions of numbers, drawn without pyplot, so that no global state changes."""
