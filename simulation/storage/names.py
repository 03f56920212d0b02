"""What the files of run and comparison directories are called; others read them by these names."""

from __future__ import annotations

# Of a run.
CONFIG, SUMMARY, ROUNDS = "config.yaml", "summary.json", "rounds.jsonl"
TRAFFIC, PREDICTIONS = "traffic.csv", "predictions.csv"
CHANNEL, LEDGER = "channel.npz", "ledger.npz"

# Of a comparison, which holds one run directory per cell.
COMPARISON, TABLE, TIMINGS, CELLS = "comparison.yaml", "comparison.csv", "timing.csv", "cells"
NOISE = "noise.csv"

# Of an audit, beside its configuration.
AUDIT = "audit.json"

# Of whatever has a page.
REPORT, FIGURES = "report.html", "figures"


def cell_key(name: str, epsilon: float | None, fold: object, seed: object) -> str:
    """Return the name of a cell's directory."""
    parts = [name]
    parts += [] if epsilon is None else [f"eps{epsilon!r}"]
    parts += [] if fold is None else [f"fold{fold}"]
    return "-".join([*parts, f"seed{seed}"])
