from pathlib import Path
from typing import Any

import pytest
import yaml

from dprec.errors import InputError
from simulation.comparison.planning import load_comparison
from tests.paths import CONFIGS

PRESETS = {
    "clear": {"kind": "one-shot", "mechanism": {"kind": "none"}, "completion": {"kind": "mf", "rank": 2}},
    "private": {
        "kind": "one-shot",
        "privacy": {"epsilon": 1.0},
        "mechanism": {"kind": "bounded-laplace"},
        "completion": {"kind": "mf", "rank": 2},
    },
}


@pytest.fixture
def comparison(tmp_path: Path) -> dict[str, Any]:
    """Write two presets and return the values of a comparison of them."""
    dataset = {"kind": "synthetic", "users": 30, "items": 20, "ratings": 300}
    split = {"kind": "k-fold", "folds": 3, "fold": 0}
    for name, protocol in PRESETS.items():
        preset = {"name": name, "dataset": dataset, "split": split, "protocol": protocol}
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(preset))
    return {
        "name": "pair",
        "dataset": dataset,
        "split": split,
        "folds": [0, 2],
        "seeds": [3, 4],
        "epsilons": [0.5, 2.0],
        "protocols": ["clear", "private"],
        "baselines": False,
    }


def load(tmp_path: Path, values: dict[str, Any]) -> Any:
    path = tmp_path / "pair.yaml"
    path.write_text(yaml.safe_dump(values))
    return load_comparison(path)


def test_cells_are_protocols_by_epsilons_by_folds_by_seeds(
    tmp_path: Path, comparison: dict[str, Any]
) -> None:
    cells = load(tmp_path, comparison).cells
    assert len(cells) == 2 * 2 + 2 * 2 * 2
    assert len({cell.key for cell in cells}) == len(cells)
    clear = [cell for cell in cells if cell.protocol == "clear"]
    assert {cell.epsilon for cell in clear} == {None}
    for cell in cells:
        assert cell.config.seed == cell.seed
        assert cell.config.split.fold == cell.fold  # type: ignore[attr-defined]
        if cell.epsilon is not None:
            assert cell.config.protocol.privacy.epsilon == cell.epsilon  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("unit", "per"),
    [("rating", "rating"), ("user", "user"), ("per-rating", "rating"), ("per-user", "user")],
)
def test_protocols_are_matched_in_one_unit(
    tmp_path: Path, comparison: dict[str, Any], unit: str, per: str
) -> None:
    comparison["match"] = {"epsilon": unit}
    cells = [cell for cell in load(tmp_path, comparison).cells if cell.epsilon is not None]
    assert {cell.config.protocol.privacy.per for cell in cells} == {per}
    assert yaml.safe_load(load(tmp_path, comparison).to_yaml({}))["match"] == {"epsilon": per}


def test_an_entry_composes_its_budgets(tmp_path: Path, comparison: dict[str, Any]) -> None:
    preset = yaml.safe_load((tmp_path / "private.yaml").read_text())
    preset["protocol"]["privacy"]["per"] = "user"
    (tmp_path / "private.yaml").write_text(yaml.safe_dump(preset))
    composed = {"protocol.privacy.composition": "pld", "protocol.privacy.delta": 1e-4}
    comparison.update(protocols=[{"name": "private", "set": composed}], match={"epsilon": "user"})
    source = tmp_path / "comparison.yaml"
    source.write_text(yaml.safe_dump(comparison))
    budgets = [cell.config.protocol.privacy for cell in load_comparison(source).cells]
    assert {budget.epsilon for budget in budgets if budget} == {0.5, 2.0}
    assert {(budget.per, budget.composition, budget.delta) for budget in budgets if budget} == {
        ("user", "pld", 1e-4)
    }
    comparison["match"] = {"epsilon": "rating"}
    source.write_text(yaml.safe_dump(comparison))
    with pytest.raises(InputError, match="'pld' per rating"):
        load_comparison(source)


def test_with_a_delta_everything_that_composes_does(tmp_path: Path, comparison: dict[str, Any]) -> None:
    summed = {"name": "summed", "preset": "private", "set": {"protocol.privacy.composition": "sum"}}
    comparison.update(protocols=["private", summed, "clear"], match={"epsilon": "user", "delta": 1e-5})
    budgets = {cell.protocol: cell.config.protocol.privacy for cell in load(tmp_path, comparison).cells}
    assert budgets["clear"] is None
    assert (budgets["private"].composition, budgets["private"].delta) == ("pld", 1e-5)
    assert budgets["summed"].composition == "sum"


def test_an_entry_changes_its_preset(tmp_path: Path, comparison: dict[str, Any]) -> None:
    entry = {"name": "other", "preset": "private", "set": {"protocol.completion.rank": 3}, "epsilons": [7.0]}
    comparison["protocols"] = [entry]
    cells = load(tmp_path, comparison).cells
    assert {cell.epsilon for cell in cells} == {7.0}
    assert {cell.config.protocol.completion.rank for cell in cells} == {3}
    assert {cell.config.name for cell in cells} == {"other"}


def test_an_entry_may_be_the_path_of_a_configuration(tmp_path: Path, comparison: dict[str, Any]) -> None:
    (tmp_path / "runs" / "one").mkdir(parents=True)
    (tmp_path / "private.yaml").rename(tmp_path / "runs" / "one" / "config.yaml")
    named = {"name": "mine", "preset": "runs/one/config.yaml"}
    comparison["protocols"] = ["clear.yaml", named]
    assert {cell.protocol for cell in load(tmp_path, comparison).cells} == {"clear", "mine"}
    comparison["protocols"] = ["runs/one/absent.yaml"]
    with pytest.raises(InputError, match=r"runs/one/absent\.yaml: No such file"):
        load(tmp_path, comparison)


def test_an_entry_may_hold_its_protocol(tmp_path: Path, comparison: dict[str, Any]) -> None:
    inline = {"name": "inline", "protocol": PRESETS["private"], "set": {"protocol.completion.rank": 4}}
    comparison["protocols"] = [inline, "private"]
    cells = {cell.protocol: cell for cell in load_comparison(comparison | {"protocols": [inline]}).cells}
    assert cells["inline"].config.protocol.completion.rank == 4  # type: ignore[attr-defined]
    both = load(tmp_path, comparison).cells
    assert {cell.protocol for cell in both} == {"inline", "private"}
    comparison["protocols"] = [{**inline, "preset": "private"}]
    with pytest.raises(InputError, match=r"protocols\[0\]\.protocol: a protocol beside a preset"):
        load(tmp_path, comparison)


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({"protocols": ["clear", "clear"]}, "two protocols named 'clear'"),
        ({"protocols": ["absent"]}, "no configuration absent.yaml"),
        ({"protocols": []}, "protocols"),
        ({"epsilons": []}, "epsilons"),
        ({"epsilons": [0.0]}, "epsilons"),
        ({"epsilons": [1.0, 1.0]}, "twice"),
        ({"seeds": [1, 1]}, "twice"),
        ({"seeds": [-1]}, "seeds"),
        ({"folds": [9]}, "fold"),
        ({"match": {"epsilon": "per-item"}}, "match.epsilon: 'per-item'; accepted: 'rating' or 'user'"),
        ({"match": {"epsilon": "cell"}}, "match.epsilon: 'cell'; accepted: 'rating' or 'user'"),
        ({"match": {"epsilon": ["user"]}}, "match.epsilon: ['user']; accepted: 'rating' or 'user'"),
        ({"match": {"delta": 1e-6}}, "match.delta: 1e-06, with epsilon per rating"),
        ({"match": {"epsilon": "user", "delta": 0.5}}, "match.delta"),
        ({"protocls": []}, "protocls"),
        ({"protocols": [{"name": "private", "set": {"protocol.completion.rnk": 3}}]}, "rnk"),
    ],
)
def test_bad_input_is_one_line(
    tmp_path: Path, comparison: dict[str, Any], change: dict[str, Any], found: str
) -> None:
    with pytest.raises(InputError) as caught:
        load(tmp_path, {**comparison, **change})
    assert found in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "key", "place"),
    [
        ({"name": "x"}, "name", "the entry's name"),
        ({"seed": 5}, "seed", "the comparison's seeds"),
        ({"split.fold": 1}, "split.fold", "the comparison's folds"),
        ({"protocol.privacy.epsilon": 3.0}, "protocol.privacy.epsilon", "epsilons"),
        ({"split": {"kind": "k-fold", "fold": 1}}, "split.fold", "the comparison's folds"),
    ],
)
def test_what_the_comparison_decides_is_not_set_by_an_entry(
    tmp_path: Path, comparison: dict[str, Any], change: dict[str, Any], key: str, place: str
) -> None:
    comparison["protocols"] = ["clear", {"name": "other", "preset": "private", "set": change}]
    with pytest.raises(InputError) as caught:
        load(tmp_path, comparison)
    assert caught.value.where.endswith(f"pair.yaml: other.set.{key}")
    assert caught.value.accepted.startswith(place)


def test_without_folds_an_entry_has_its_own(tmp_path: Path, comparison: dict[str, Any]) -> None:
    del comparison["folds"]
    comparison["protocols"] = [{"name": "private", "set": {"split.fold": 1}}]
    assert {cell.config.split.fold for cell in load(tmp_path, comparison).cells} == {1}


@pytest.mark.parametrize(
    ("change", "where", "accepted"),
    [
        ({"protocols": ["clear", {"nme": "x"}]}, "protocols[1].name", "Its name in tables and plots."),
        (
            {"protocols": [{"name": "clear", "sett": {}}]},
            "protocols[0].sett",
            "name, preset, protocol, set, epsilons",
        ),
        ({"protocols": [{"name": "clear", "set": []}]}, "protocols[0].set", "a mapping of keys to values"),
        ({"protocols": [{"name": "clear", "epsilons": [1, "a"]}]}, "protocols[0].epsilons[1]", "a number"),
        ({"protocols": [7]}, "protocols[0]", "a mapping of keys to values"),
        ({"protocols": "clear"}, "protocols", "a list"),
        ({"seeds": []}, "seeds", "at least 1 item"),
        ({"folds": []}, "folds", "at least 1 item"),
        ({"split": {"kind": "holdout", "test_fraction": 0.2}}, "folds", "no folds key"),
        ({"folds": [0.5]}, "folds[0]", "an integer, or text"),
        ({"match": {"unit": 1}}, "match.unit", "epsilon"),
        ({"published": [{"lable": 1}]}, "published[0].label", "The protocol's name in this comparison"),
    ],
)
def test_the_error_names_the_place_in_a_list(
    tmp_path: Path, comparison: dict[str, Any], change: dict[str, Any], where: str, accepted: str
) -> None:
    with pytest.raises(InputError) as caught:
        load(tmp_path, {**comparison, **change})
    assert caught.value.where == f"{tmp_path / 'pair.yaml'}: {where}"
    assert caught.value.accepted.startswith(accepted)


def test_a_run_is_not_a_comparison(tmp_path: Path, comparison: dict[str, Any]) -> None:
    load(tmp_path, comparison)
    with pytest.raises(InputError, match=r"a run; accepted: a comparison's, or: dprec run .*clear\.yaml$"):
        load_comparison(tmp_path / "clear.yaml")


@pytest.mark.parametrize("path", sorted(CONFIGS.rglob("*.yaml")), ids=lambda path: path.stem)
def test_every_comparison_of_the_project_is_valid(path: Path) -> None:
    if "protocols" in yaml.safe_load(path.read_text()):
        assert load_comparison(path).cells
