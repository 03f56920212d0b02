"""Old names are refused with the new ones, and change no draw."""

from pathlib import Path
from typing import Any

import pytest

from dprec.errors import InputError, SettingError
from dprec.renamed import KEYS, TRUST, VALUES, first_names, now
from simulation.configuration.loading import load
from simulation.storage.columns import read_rows


@pytest.mark.parametrize(
    ("preset", "setting", "new"),
    [
        ("one-bit-on-device", "protocol.places={least_raters: 9}", "item_embeddings"),
        ("one-bit-clear-effects", "protocol.completion.effects=true", "biases"),
        ("dp-als", "protocol.neighbors=removal", "adjacency"),
        ("best-server", "protocol.item_set=visible", "revealed"),
        ("sets-only", "protocol.completion.kind=item-effects", "item-biases"),
    ],
)
def test_an_old_name_is_refused_with_the_new_one(preset: str, setting: str, new: str) -> None:
    with pytest.raises((InputError, SettingError)) as refused:
        load(preset, [setting])
    assert new in refused.value.accepted


def test_an_old_column_is_refused_with_the_new_one(tmp_path: Path) -> None:
    (tmp_path / "comparison.csv").write_text("name,floor\na,nothing-sent\n", encoding="utf-8")
    with pytest.raises(InputError) as refused:
        read_rows(tmp_path / "comparison.csv")
    assert (refused.value.where.rpartition(": ")[2], refused.value.accepted) == ("floor", "baseline")


def test_an_old_trust_model_is_refused_with_the_new_one(tmp_path: Path) -> None:
    (tmp_path / "comparison.csv").write_text("name,trust\na,nobody\n", encoding="utf-8")
    with pytest.raises(InputError) as refused:
        read_rows(tmp_path / "comparison.csv")
    assert TRUST["nobody"] in refused.value.accepted


def test_a_name_that_is_as_it_was_is_not_said_to_be_another() -> None:
    assert now("neighbors", ["neighbors", "epsilon"]) is None
    assert now("neighbors", ["adjacency", "epsilon"]) == "adjacency"


def test_draws_are_keyed_by_the_first_names() -> None:
    settings: dict[str, Any] = {"adjacency": "replace-one", "parts": [{"kind": "item-biases"}], "rounds": 3}
    first = {"neighbors": "replacement", "parts": [{"kind": "item-effects"}], "rounds": 3}
    assert first_names(settings) == first
    assert len(set(KEYS.values())) == len(KEYS)
    assert len(set(VALUES.values())) == len(VALUES)
