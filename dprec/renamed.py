"""What settings and their values were called before.

An old name is refused with the new one. What devices and server draw is keyed by the first names, so that a
new name changes no draw; nor does a setting that came later, while it is as everything was before.
"""

from typing import Any

KEYS = {
    "floors": "baselines",
    "effects": "biases",
    "effect_rounds": "bias_rounds",
    "effect_share": "bias_share",
    "effect_deviation": "bias_deviation",
    "neighbors": "adjacency",
    "places": "item_embeddings",
}
"""From the old key of a setting to the new one."""

VALUES = {
    "item-effects": "item-biases",
    "visible": "revealed",
    "removal": "add-or-remove-one",
    "replacement": "replace-one",
}
"""From the old value of a setting to the new one."""

TRUST = {"nobody": "local", "shuffler": "shuffle", "sum": "secure-aggregation", "server": "central"}
"""From the old name of a trust model to the new one."""

_CAME_LATER = {"fewest": 1, "proofs": "none", "promised": None}
"""Settings that there were not at first, with the values that say what was done without them."""

_FIRST = {new: old for old, new in (*KEYS.items(), *VALUES.items())}


def now(old: object, names: object) -> str | None:
    """Return what an old key or value is called now, if that is one of some names."""
    new = (KEYS | VALUES | TRUST).get(str(old))
    return new if isinstance(names, list | tuple | dict | frozenset | set) and new in names else None


def first_names(settings: Any) -> Any:
    """Return settings, as a file would hold them, under the names that they had first."""
    if isinstance(settings, dict):
        kept = ((key, value) for key, value in settings.items() if _CAME_LATER.get(key, settings) != value)
        return {_FIRST.get(key, key): first_names(value) for key, value in kept}
    if isinstance(settings, list):
        return [first_names(value) for value in settings]
    return _FIRST.get(settings, settings) if isinstance(settings, str) else settings
