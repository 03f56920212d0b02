"""User-defined components in configurations: as ``module:Class`` and as instances."""

import shlex
from dataclasses import dataclass
from datetime import date, datetime
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
from simulation.configuration.loading import checked_parts
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


@pytest.mark.parametrize(
    ("override", "typed"),
    [
        ("dataset.positive=>= 5", """'dataset.positive=">= 5"'"""),
        ("dataset.positive=> 5", """'dataset.positive="> 5"'"""),
        ("dataset.separator=|", """'dataset.separator="|"'"""),
        ("dataset.separator=::", """'dataset.separator="::"'"""),
        ("dataset.path=mine #2.csv", """'dataset.path="mine #2.csv"'"""),
        ("dataset.path=*.csv", """'dataset.path="*.csv"'"""),
        ("dataset.path='a' or b", """'dataset.path="'"'"'a'"'"' or b"'"""),
        ("dataset.path=2024", """'dataset.path="2024"'"""),
        ("dataset.path=yes", """'dataset.path="yes"'"""),
        ("dataset.path=a: b", """'dataset.path="a: b"'"""),
    ],
)
def test_a_text_that_yaml_takes_for_another_is_told_with_its_quotes(override: str, typed: str) -> None:
    with pytest.raises(InputError) as caught:
        load("ease", ["dataset={kind: csv}", override])
    assert caught.value.accepted.endswith(f": --set {typed}")
    # What is printed does what was meant.
    loaded = load("ease", ["dataset={kind: csv, path: x}", *shlex.split(typed)])
    key, _, text = override.partition("=")
    assert getattr(loaded.dataset, key.removeprefix("dataset.")) == text


@pytest.mark.parametrize(
    ("override", "accepted"),
    [
        ("dataset={kind: csv, positive: >= 5}", "valid YAML, with texts such as '>= 5' in quotes"),
        ("dataset={kind:csv}", "a space after a colon: kind: csv"),
    ],
)
def test_mappings_that_yaml_cannot_read(override: str, accepted: str) -> None:
    with pytest.raises(InputError) as caught:
        load("ease", [override])
    assert caught.value.accepted == accepted


def test_a_folder_of_parts_has_settings_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("1,1,2\n2,1,3\n")
    (tmp_path / "test.csv").write_text("1,2,4\n")
    (tmp_path / "dataset.yaml").write_text("{low: 1, high: 5, step: 1, kind: synthetic}")
    config = load("blp-mf", [f"dataset={tmp_path}", "dataset.high=9"])
    assert (config.dataset.kind, config.dataset.known_scale().high) == ("csv", 9.0)
    assert config.split.fold == "given"
    (tmp_path / "dataset.yaml").write_text("[low]")
    with refused_at("dataset.yaml"):
        load("blp-mf", parts=checked_parts({"dataset": tmp_path}, ""))


def test_a_bare_date_of_a_file_divides_the_ratings(tmp_path: Path, tiny: dict[str, Any]) -> None:
    tiny["split"] = {"kind": "temporal", "before": date(2005, 6, 1), "after": datetime(2005, 6, 2, 12)}
    (tmp_path / "dated.yaml").write_text(yaml.safe_dump(tiny))
    config = load(tmp_path / "dated.yaml")
    assert (config.split.before, config.split.after) == ("2005-06-01", "2005-06-02 12:00:00")
    assert load(yaml.safe_load(config.to_yaml())) == config
    assert load(tiny, ["split.after=2005-06-02 12:00:00"]) == config
    with refused_at("overrides split.test_fraction"):
        load(tiny, ["split.test_fraction=0.2"])
