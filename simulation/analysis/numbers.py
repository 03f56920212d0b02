"""How numbers are written wherever a person reads them."""

from __future__ import annotations

DASH = "–"
"""What does not apply."""


def number(value: float | None, digits: int) -> str:
    """Format a number; what does not apply is a dash, and what is too small for them has two of its own."""
    if value is None:
        return DASH
    return f"{value:,.{digits}f}" if value == 0 or abs(value) >= 0.5 * 10**-digits else f"{value:.2g}"


def loss(epsilon: float | None) -> str:
    """Write a privacy loss; in full where it is large."""
    if epsilon is None:
        return DASH
    return f"{epsilon:,.0f}" if epsilon >= 1000 else f"{epsilon:.4g}"
