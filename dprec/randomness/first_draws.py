"""The names by which draws are keyed: those that settings and their values had when draws were first made.

So a new name changes no draw; nor does a setting that came later, while it is as everything was before.
"""

from typing import Any

_FIRST = {
    "baselines": "floors",
    "biases": "effects",
    "bias_rounds": "effect_rounds",
    "bias_share": "effect_share",
    "bias_deviation": "effect_deviation",
    "adjacency": "neighbors",
    "item_embeddings": "places",
    "item-biases": "item-effects",
    "revealed": "visible",
    "add-or-remove-one": "removal",
    "replace-one": "replacement",
}
"""From a setting's key, or value, to its first name."""

_CAME_LATER = {"fewest": 1, "proofs": "none", "promised": None}
"""Settings that there were not at first, with the values that say what was done without them."""


def first_names(settings: Any) -> Any:
    """Return settings, as a file would hold them, under the names that they had first."""
    if isinstance(settings, dict):
        kept = ((key, value) for key, value in settings.items() if _CAME_LATER.get(key, settings) != value)
        return {_FIRST.get(key, key): first_names(value) for key, value in kept}
    if isinstance(settings, list):
        return [first_names(value) for value in settings]
    return _FIRST.get(settings, settings) if isinstance(settings, str) else settings
