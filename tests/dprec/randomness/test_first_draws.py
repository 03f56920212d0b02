"""Draws are keyed by the names that settings had when draws were first made."""

from typing import Any

from dprec.randomness.first_draws import first_names


def test_draws_are_keyed_by_the_first_names() -> None:
    settings: dict[str, Any] = {"adjacency": "replace-one", "parts": [{"kind": "item-biases"}], "rounds": 3}
    first = {"neighbors": "replacement", "parts": [{"kind": "item-effects"}], "rounds": 3}
    assert first_names(settings) == first
    assert first_names({**settings, "fewest": 1, "proofs": "none"}) == first
    assert first_names({"fewest": 2}) == {"fewest": 2}
