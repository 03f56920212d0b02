"""The colours of pages and figures: a fixed set of tokens, each with a light and a dark form.

A figure is drawn once, in light tokens; its dark form is the same SVG with the tokens replaced.
"""

from __future__ import annotations

import re

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


def dark(svg: str) -> str:
    """Return a figure's SVG with the light tokens replaced by the dark ones."""
    return re.sub(r"#[0-9a-f]{6}", lambda match: _DARK.get(match[0], match[0]), svg)


def page_colours(dark_mode: bool) -> dict[str, str]:
    """Return the tokens that the page shares with the figures."""
    tokens = {"ink": INK, "muted": MUTED, "rule": RULE, "surface": SURFACE, "accent": SERIES[0]}
    return {name: _DARK[value] if dark_mode else value for name, value in tokens.items()}


def exchanged(colour: str) -> str:
    """Return the dark form of a token."""
    return _DARK[colour]


def ramp(count: int) -> list[str]:
    """Return colours for ordered things, from low to high."""
    if count <= 1:
        return [RAMP[-2]] * count
    return [RAMP[round(place * (len(RAMP) - 1) / (count - 1))] for place in range(count)]
