from pathlib import Path
from typing import Any

import pytest
import yaml

from dprec.errors import InputError
from simulation import load


def test_a_comparison_is_not_a_run(tmp_path: Path) -> None:
    file = tmp_path / "pair.yaml"
    file.write_text("name: pair\nprotocols: [a, b]\n")
    with pytest.raises(InputError, match=f"a comparison; accepted: a run's, or: dprec compare {file}$"):
        load(file)


@pytest.mark.parametrize("path", ["missing.yaml", "."])
def test_what_cannot_be_read_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(InputError) as caught:
        load(tmp_path / path)
    assert caught.value.where == str(tmp_path / path)


@pytest.mark.parametrize("key", ["2020-01-01", "1", "null", "true", "1.5", ".nan", "!!binary aGk="])
def test_keys_that_are_no_text_are_unknown_keys(tmp_path: Path, tiny: dict[str, Any], key: str) -> None:
    file = tmp_path / "odd.yaml"
    file.write_text(yaml.safe_dump(tiny) + f"{key}: 1\n")
    with pytest.raises(InputError, match="an unknown key"):
        load(file)


def test_an_override_replaces_what_stands_there(tmp_path: Path, tiny: dict[str, Any]) -> None:
    file = tmp_path / "tiny.yaml"
    file.write_text(yaml.safe_dump(tiny))
    config = load(
        file,
        [
            "seed=5",
            "split={kind: k-fold, folds: 4, fold: 1}",
            "evaluation.top_k=3",
            "protocol.privacy.epsilon=1e-1",
            "name=a-b",
            "seed=6",
        ],
    )
    assert config.seed == 6
    assert (config.split.kind, config.evaluation.top_k, config.name) == ("k-fold", 3, "a-b")
    assert config.protocol.privacy.epsilon == 0.1  # type: ignore[attr-defined]
