"""User-defined components in configurations: as ``module:Class`` and as instances."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from dprec.components import option
from dprec.datasets import Synthetic
from dprec.errors import InputError
from dprec.mechanisms import BoundedLaplace, Mechanism, RandomizedResponse
from dprec.protocols.one_shot import OneShotProtocol
from dprec.splits import Holdout
from simulation import RunConfig, load
from simulation.comparison.planning import load_comparison
from simulation.configuration.strict_yaml import parse_yaml
from tests.refusals import refused_at


def test_a_comparison_is_not_a_run(tmp_path: Path) -> None:
    file = tmp_path / "pair.yaml"
    file.write_text("name: pair\nprotocols: [a, b]\n")
    with pytest.raises(InputError, match=f"a comparison; accepted: a run's, or: dprec compare {file}$"):
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


@dataclass(frozen=True, kw_only=True)
class Softened(RandomizedResponse):
    """Randomised response at a share of the budget."""

    share: float = option("Share of the budget.", 0.5, gt=0, le=1)


class Fifth(Holdout):
    """A user-defined split, without settings of its own."""


class Unfinished(Mechanism):
    """Has no channel."""


REFERENCE = f"{__name__}:Softened"


@pytest.fixture
def own(tiny: dict[str, Any]) -> dict[str, Any]:
    tiny["protocol"]["mechanism"] = Softened(share=0.25)
    return tiny


def test_an_instance_stays_itself(own: dict[str, Any]) -> None:
    mechanism = own["protocol"]["mechanism"]
    config = load(own)
    assert config.protocol.mechanism == mechanism  # type: ignore[attr-defined]
    assert mechanism.kind == REFERENCE
    assert config.user_defined_classes() == [Softened]
    assert load({**own, "split": Fifth()}).split == Fifth()
    whole = OneShotProtocol(**{**own["protocol"], "privacy": None, "completion": config.protocol.completion})  # type: ignore[attr-defined]
    assert load({**own, "protocol": whole}).protocol == whole


def test_the_file_names_the_class(own: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    values = parse_yaml(load(own).to_yaml(), "it")
    assert values["protocol"]["mechanism"] == {"kind": REFERENCE, "share": 0.25}
    assert load(values) == load(own)
    monkeypatch.setattr(Softened, "__module__", "__main__")
    text = load(own).to_yaml()
    assert text.startswith(
        "# __main__:Softened is not at the top of a file, so this file alone does not run.\n"
    )
    with refused_at("configuration: protocol.mechanism.kind"):
        load(parse_yaml(text, "it"))


def test_an_instance_of_something_else_is_refused(own: dict[str, Any]) -> None:
    with refused_at("configuration: split"):
        load({**own, "split": Softened()})
    own["protocol"]["mechanism"] = Unfinished()
    with refused_at("configuration: protocol.mechanism.kind"):
        load(own)
    own["protocol"]["mechanism"] = {"kind": {"instance": 0}}
    with refused_at("configuration: protocol.mechanism.kind"):
        load(own)


def test_overrides_reach_into_components(own: dict[str, Any]) -> None:
    loaded = load(load(own), ["protocol.mechanism.share=0.75", "seed=9"])
    assert loaded.protocol.mechanism == Softened(share=0.75)  # type: ignore[attr-defined]
    assert loaded.seed == 9
    assert own["protocol"]["mechanism"] == Softened(share=0.25)
    ours = load({**own, "dataset": Synthetic(users=40)}, ["dataset.items=31"])
    assert ours.dataset == Synthetic(users=40, items=31)


def test_a_configuration_is_made_from_plain_values(tiny: dict[str, Any]) -> None:
    assert RunConfig(**tiny) == load(tiny)
    with refused_at("seed"):
        RunConfig(**{**tiny, "seed": -1})


def test_a_comparison_holds_instances(own: dict[str, Any], tmp_path: Path) -> None:
    shared = {"name": "mine", "dataset": own["dataset"], "split": own["split"], "epsilons": [1.0]}
    entries = [
        {"name": "inline", "protocol": own["protocol"]},
        {"name": "changed", "preset": "blp-mf", "set": {"protocol.mechanism": Softened(share=0.125)}},
        {"name": "ours", "preset": "blp-mf", "set": {"protocol.mechanism": BoundedLaplace(symbols=8)}},
    ]
    comparison = load_comparison({**shared, "protocols": entries, "baselines": False})
    mechanisms = [cell.config.protocol.mechanism for cell in comparison.cells]  # type: ignore[attr-defined]
    assert mechanisms == [Softened(share=0.25), Softened(share=0.125), BoundedLaplace(symbols=8)]
    written = parse_yaml(comparison.to_yaml({}), "it")
    assert written["protocols"][1]["set"] == {"protocol.mechanism": {"kind": REFERENCE, "share": 0.125}}
    assert written["protocols"][0]["protocol"]["mechanism"] == {"kind": REFERENCE, "share": 0.25}


def test_a_file_stands_for_a_data_set(tmp_path: Path) -> None:
    (tmp_path / "plays.csv").write_text("1,10,3\n1,20,1\n2,20,5\n")
    loaded = load("ease", overrides=[f"dataset={tmp_path / 'plays.csv'}", "dataset.positive='>= 2'"])
    assert (loaded.dataset.kind, loaded.dataset.positive) == ("csv", ">= 2")
    assert loaded.split.kind == "user-holdout"
    with pytest.raises(InputError, match=r"dataset\.kind"):
        load("ease", overrides=["dataset={path: plays.csv}"])
