"""The colours of pages and figures: a fixed set of tokens, each with a light and a dark form.

A figure is drawn in light tokens; on a page each of them is a variable, light or dark as the reader prefers.
"""

from __future__ import annotations

from collections.abc import Mapping

INK, MUTED, RULE, SURFACE = "#1b2530", "#5a6672", "#dde2e7", "#ffffff"

REFERENCE = "#56616d"

SERIES = ("#0a62a9", "#c24a05", "#00785c", "#a62f7d", "#866802", "#5a40b4", "#0f7f99", "#6d4a33")
"""Colours of protocols; each protocol also has its own marker, so that nothing rests on colour alone."""

RAMP = ("#9ecae8", "#74b0db", "#4f95ca", "#337ab5", "#1f609a", "#134a7d", "#0b3560")
"""Colours of ordered things, from low to high."""

_DARK = {
    INK: "#e6eaee",
    MUTED: "#a3aeb9",
    RULE: "#323b45",
    SURFACE: "#161b21",
    REFERENCE: "#aab5c0",
    **dict(
        zip(
            SERIES,
            ("#68b3f2", "#ff9557", "#48c7a0", "#ee87c6", "#dcb848", "#ae9bff", "#5fd0e8", "#d0aa8c"),
            strict=True,
        )
    ),
    **dict(
        zip(
            RAMP,
            ("#23486b", "#2c5f8d", "#3a79af", "#5594cb", "#77afe0", "#9dc9f0", "#c9e3fb"),
            strict=True,
        )
    ),
}


NAMES: Mapping[str, str] = {
    INK: "ink",
    MUTED: "muted",
    RULE: "rule",
    SURFACE: "surface",
    REFERENCE: "look-reference",
    **{colour: f"look-{place}" for place, colour in enumerate(SERIES)},
    **{colour: f"ramp-{place}" for place, colour in enumerate(RAMP)},
}
"""The variable of each token on a page."""


def page_colours(*, dark_mode: bool) -> dict[str, str]:
    """Return the variables of a page and their values."""
    return {name: _DARK[token] if dark_mode else token for token, name in NAMES.items()}


def ramp(count: int) -> list[str]:
    """Return colours for ordered things, from low to high."""
    if count <= 1:
        return [RAMP[-2]] * count
    return [RAMP[round(place * (len(RAMP) - 1) / (count - 1))] for place in range(count)]
