"""How numbers are written for readers."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable

from simulation.analysis.vocabulary import Average

DASH = "–"
"""Stands for a value that does not apply."""

THOUSANDS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e4, "k"))
"""From which numbers on a suffix is written; "k" from 10,000 on."""

SIZES = ((1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
"""The units of bytes, with decimal prefixes."""


def number(value: float | None, digits: int) -> str:
    """Write a number with the given decimals, or with two significant digits if it is too small for them."""
    if value is None:
        return DASH
    return f"{value:,.{digits}f}" if value == 0 or abs(value) >= 0.5 * 10**-digits else f"{value:.2g}"


def loss(epsilon: float | None) -> str:
    """Write a privacy loss; in full if it is large."""
    if epsilon is None:
        return DASH
    return f"{epsilon:,.0f}" if epsilon >= 1000 else f"{epsilon:.4g}"


def with_claim(proved: float | None, claimed: float | None, word: str = "claimed") -> str:
    """Write the privacy loss that is proved, and beside it the one that is claimed or declared, if any is."""
    return loss(proved) if claimed is None else f"{loss(proved)} ({word} {loss(claimed)})"


def with_spread(average: Average | None, digits: int) -> str:
    """Write a mean with its standard deviations, over seeds and then over folds; a single run has none."""
    if average is None:
        return DASH
    spreads = (spread for spread in (average.seeds, average.folds) if spread)
    return number(average.mean, digits) + "".join(f" ± {spread.deviation:.{digits}f}" for spread in spreads)


def spread_in_words(averages: Iterable[Average]) -> str:
    """Say what every ± of `with_spread` is: how it is counted, and over what; empty over single runs."""
    every = list(averages)
    counts = {
        "seeds": {average.seeds.count for average in every if average.seeds},
        "folds": {average.folds.count for average in every if average.folds},
    }
    over = [f"over {_range(several)} {what}" for what, several in counts.items() if several]
    return f"standard deviation {', then '.join(over)}" if over else ""


def _range(counts: Collection[int]) -> str:
    return f"{min(counts)}" if len(counts) == 1 else f"{min(counts)} to {max(counts)}"


def short(value: float) -> str:
    """Write a number in about five characters: 0.25, 12.5, 340, 12.3k, 3.4M."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    for limit, suffix in THOUSANDS:
        if abs(value) >= limit:
            divisor = 1e3 if suffix == "k" else limit
            return f"{value / divisor:.3g}{suffix}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def size(count: float) -> str:
    """Write a number of bytes: 340 B, 1.2 kB, 3.4 MB (decimal prefixes)."""
    for limit, unit in SIZES:
        if abs(count) >= limit:
            return f"{count / limit:.3g} {unit}" if count < 1000 * limit else f"{count / limit:,.0f} {unit}"
    return f"{count:.3g} B" if count < 100 else f"{count:.0f} B"
