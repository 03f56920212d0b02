"""What the files of run and comparison directories are called; others read them by these names."""

CONFIG, SUMMARY, ROUNDS = "config.yaml", "summary.json", "rounds.jsonl"
TRAFFIC, PREDICTIONS = "traffic.csv", "predictions.csv"
"""Of a run."""

COMPARISON, TABLE, TIMINGS, CELLS = "comparison.yaml", "comparison.csv", "timing.csv", "cells"
NOISE = "noise.csv"
"""Of a comparison, which holds one run directory per cell."""

AUDIT = "audit.json"
"""Of an audit, beside its configuration."""

REPORT, FIGURES = "report.html", "figures"
"""Of any of them that has a page."""
