"""Settings drawn at random, from what their classes declare: types, words and bounds."""

import dataclasses
import types
from collections.abc import Mapping
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from dprec.components import Options

_OptionsT = TypeVar("_OptionsT", bound=Options)

_MORE, _LARGEST = 40, 1e6
"""How far integers are above the least one, and floats from 0, where nothing bounds them."""


def drawn(
    options: type[_OptionsT], given: Mapping[str, st.SearchStrategy[Any]] | None = None
) -> st.SearchStrategy[_OptionsT]:
    """Return settings of a class: each by default, or anything that is declared for it.

    ``given``: strategies of settings that are drawn otherwise.
    """
    hints = get_type_hints(options, include_extras=True)
    of_fields = {
        field.name: _of_field(hints[field.name], field)
        for field in dataclasses.fields(options)
        if field.name != "kind" and field.name not in (given or {})
    }
    return st.builds(options, **of_fields, **(given or {}))


def _of_field(hint: Any, field: dataclasses.Field[Any]) -> st.SearchStrategy[Any]:
    within = _within(hint, field.metadata)
    if field.default is dataclasses.MISSING:
        assert within is not None, f"{field.name} has no default, and is of no type that is drawn"
        return within
    return st.just(field.default) if within is None else st.just(field.default) | within


def _within(hint: Any, bounds: Mapping[str, Any]) -> st.SearchStrategy[Any] | None:
    """Return what a type allows within bounds; None for a type that is not drawn."""
    found: st.SearchStrategy[Any] | None = None
    if get_origin(hint) in (Union, types.UnionType):
        parts = [st.none() if own is type(None) else _within(own, bounds) for own in get_args(hint)]
        known = [part for part in parts if part is not None]
        found = st.one_of(known) if len(known) == len(parts) else None
    elif get_origin(hint) is Literal:
        found = st.sampled_from(get_args(hint))
    elif hint is bool:
        found = st.booleans()
    elif hint is int:
        least = int(bounds.get("ge", bounds.get("gt", -1) + 1))
        found = st.integers(least, min(int(bounds.get("le", least + _MORE)), least + _MORE))
    elif hint is float:
        lowest = bounds.get("ge", bounds.get("gt", -_LARGEST))
        highest = min(bounds.get("le", bounds.get("lt", _LARGEST)), _LARGEST)
        found = st.floats(lowest, highest, exclude_min="gt" in bounds, exclude_max="lt" in bounds)
    elif isinstance(hint, type) and issubclass(hint, Options) and "kind" not in hint.__dataclass_fields__:
        found = drawn(hint)
    return found
