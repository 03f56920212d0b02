"""What the files of run and comparison directories are called; others read them by these names."""

# Of a run.
CONFIG, SUMMARY, ROUNDS = "config.yaml", "summary.json", "rounds.jsonl"
TRAFFIC, PREDICTIONS = "traffic.csv", "predictions.csv"

# Of a comparison, which holds one run directory per cell.
COMPARISON, TABLE, TIMINGS, CELLS = "comparison.yaml", "comparison.csv", "timing.csv", "cells"
NOISE = "noise.csv"

# Of an audit, beside its configuration.
AUDIT = "audit.json"

# Of whatever has a page.
REPORT, FIGURES = "report.html", "figures"
