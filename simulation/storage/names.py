"""The names of the files in run and comparison directories; other programs rely on them."""

from __future__ import annotations

# A run.
CONFIG, SUMMARY, ROUNDS = "config.yaml", "summary.json", "rounds.jsonl"
TRAFFIC, PREDICTIONS = "traffic.csv", "predictions.csv"
CHANNEL, LEDGER = "channel.npz", "ledger.npz"

# What an unfinished run draws from, if that is not its seed.
ENTROPY = "entropy.hex"

# A comparison, with one run directory per cell.
COMPARISON, TABLE, TIMINGS, CELLS = "comparison.yaml", "comparison.csv", "timing.csv", "cells"
NOISE, TABLES = "noise.csv", "tables.json"

# An audit, beside its configuration.
AUDIT = "audit.json"
AUDITS = "audits"

# Whatever has a page.
REPORT, FIGURES = "report.html", "figures"


def cell_key(
    name: str, epsilon: float | None, fold: object, seed: object, population: str | None = None
) -> str:
    """Return the name of a cell's directory."""
    parts = [name] if population is None else [name, f"users{population}"]
    parts += [] if epsilon is None else [f"eps{epsilon!r}"]
    parts += [] if fold is None else [f"fold{fold}"]
    return "-".join([*parts, f"seed{seed}"])
