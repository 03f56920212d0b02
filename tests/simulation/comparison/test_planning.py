"""The cells of a comparison: of its entries, of the baselines beside them, and of other populations."""

import csv
from pathlib import Path
from typing import Any

import pytest
import yaml

from dprec.protocols.base import BASELINE_PRESETS, BASELINES, INFORMED_BASELINES
from simulation import compare
from simulation.comparison.planning import Comparison, load_comparison
from simulation.configuration.models import parse_config
from simulation.configuration.strict_yaml import presets, read_yaml
from tests.paths import CONFIGS
from tests.refusals import refused_at

CLEAR = {"kind": "one-shot", "mechanism": {"kind": "none"}, "completion": {"kind": "mf", "rank": 2}}
PRIVATE = {**CLEAR, "privacy": {"epsilon": 1.0}, "mechanism": {"kind": "bounded-laplace"}}
DATASET = {"kind": "synthetic", "users": 30, "items": 20, "ratings": 300}
FOLDS = {"kind": "k-fold", "folds": 3, "fold": 0}


@pytest.fixture
def comparison(tmp_path: Path) -> dict[str, Any]:
    """Write two presets and return the values of a comparison of them."""
    for name, protocol in {"clear": CLEAR, "private": PRIVATE}.items():
        preset = {"name": name, "dataset": DATASET, "split": FOLDS, "protocol": protocol}
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(preset))
    return {
        "name": "pair",
        "dataset": DATASET,
        "split": FOLDS,
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


@pytest.mark.parametrize(("unit", "per"), [("rating", "rating"), ("per-user", "user")])
def test_protocols_are_matched_in_one_unit(
    tmp_path: Path, comparison: dict[str, Any], unit: str, per: str
) -> None:
    comparison["match"] = {"epsilon": unit}
    cells = [cell for cell in load(tmp_path, comparison).cells if cell.epsilon is not None]
    assert {cell.config.protocol.privacy.per for cell in cells} == {per}
    assert yaml.safe_load(load(tmp_path, comparison).to_yaml({}))["match"] == {"epsilon": per}


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


def test_an_entry_may_hold_its_protocol_or_the_path_of_a_configuration(
    tmp_path: Path, comparison: dict[str, Any]
) -> None:
    inline = {"name": "inline", "protocol": PRIVATE, "set": {"protocol.completion.rank": 4}}
    comparison["protocols"] = [inline, "clear.yaml", {"name": "mine", "preset": "private.yaml"}]
    cells = {cell.protocol: cell for cell in load(tmp_path, comparison).cells}
    assert list(cells) == ["inline", "clear", "mine"]
    assert cells["inline"].config.protocol.completion.rank == 4


def entry(**changes: Any) -> dict[str, Any]:
    return {"protocols": ["clear", {"name": "other", "preset": "private", "set": changes}]}


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"protocols": ["clear", "clear"]}, "protocols"),
        ({"protocols": ["absent"]}, "protocols"),
        ({"protocols": [{"name": "x", "protocol": PRIVATE, "preset": "clear"}]}, "protocols[0].protocol"),
        ({"epsilons": [1.0, 1.0]}, "epsilons"),
        ({"protocols": [{"name": "private", "epsilons": [1.0, 1.0]}]}, ""),
        ({"seeds": [1, 1]}, "seeds"),
        ({"folds": [9]}, "clear: split.fold"),
        ({"split": {"kind": "holdout", "test_fraction": 0.2}}, "folds"),
        ({"match": {"epsilon": "user", "delta": 0.5}}, "match.delta"),
        # What the comparison decides is not set by an entry.
        (entry(seed=5), "other.set.seed"),
        (entry(split={"kind": "k-fold", "fold": 1}), "other.set.split.fold"),
        (entry(**{"protocol.privacy.epsilon": 3.0}), "other.set.protocol.privacy.epsilon"),
        (entry(**{"protocol.completion.rnk": 3}), "other: protocol.completion.rnk"),
        ({"populations": {"users": [40, 40]}}, "populations"),
        ({"populations": {"users": [40], "protocols": ["absent"]}}, "populations.protocols"),
    ],
)
def test_what_is_refused_is_named_by_its_place(
    tmp_path: Path, comparison: dict[str, Any], change: dict[str, Any], where: str
) -> None:
    with refused_at(f"{tmp_path / 'pair.yaml'}{where and ': '}{where}"):
        load(tmp_path, {**comparison, **change})


@pytest.mark.parametrize("path", sorted(CONFIGS.rglob("*.yaml")), ids=lambda path: path.stem)
def test_every_comparison_of_the_project_is_valid(path: Path) -> None:
    if "protocols" in yaml.safe_load(path.read_text()):
        assert load_comparison(path).cells


DOMAINS = {"kind": "synthetic-domains", "users": 40, "items": 60, "ratings": 800}
COLD = {"kind": "cold-start", "test_fraction": 0.4}
SHARED: dict[str, Any] = {
    "name": "some",
    "dataset": DATASET,
    "split": {"kind": "holdout", "test_fraction": 0.2},
    "seeds": [1, 2],
    "epsilons": [1.0],
    "simulation": {"backend": "local"},
}


def planned(protocols: list[Any], **changes: Any) -> Comparison:
    return load_comparison({**SHARED, "protocols": protocols, **changes})


def names(comparison: Comparison) -> list[str]:
    return list(dict.fromkeys(cell.protocol for cell in comparison.cells))


def test_folds_are_those_of_a_split_that_names_none() -> None:
    comparison = planned(
        ["blp-mf"],
        dataset={"kind": "movielens-100k", "path": "ml-100k"},
        split={"kind": "predefined"},
        folds=["u2", "u3"],
    )
    folds = {cell.fold: cell.config.split.fold for cell in comparison.cells}  # type: ignore[attr-defined]
    assert folds == {"u2": "u2", "u3": "u3"}


def test_baselines_follow_the_protocols_with_the_same_folds_and_seeds() -> None:
    comparison = planned(["blp-mf"], split=FOLDS, folds=[0, 2])
    assert names(comparison) == ["blp-mf", *BASELINES]
    for baseline in BASELINES:
        cells = [cell for cell in comparison.cells if cell.protocol == baseline]
        assert [(cell.fold, cell.seed) for cell in cells] == [(0, 1), (0, 2), (2, 1), (2, 2)]
        assert {cell.epsilon for cell in cells} == {None}
        assert all(cell.config.protocol.facts.baseline == baseline for cell in cells)
        assert [cell.config.split.fold for cell in cells] == [0, 0, 2, 2]  # type: ignore[attr-defined]


def test_everything_that_is_predicted_has_its_baselines() -> None:
    elsewhere = {"dataset": DOMAINS, "split": COLD}
    comparison = planned(["plain-mf", "one-bit-clear", {"name": "nx-map", "set": elsewhere}, "blp-mf"])
    kinds = ("", "-signs", "-synthetic-domains")
    expected = [baseline + kind for kind in kinds for baseline in BASELINES]
    assert names(comparison)[4:] == expected
    cells = {cell.protocol: cell.config for cell in comparison.cells}
    assert cells["nothing-sent"].binarization is None
    assert cells["nothing-sent-signs"].binarization == cells["one-bit-clear"].binarization
    assert cells["nothing-sent-synthetic-domains"].dataset == cells["nx-map"].dataset
    assert cells["nothing-sent-synthetic-domains"].split == cells["nx-map"].split


def test_only_some_protocols_run_as_configured_and_with_their_baselines() -> None:
    elsewhere = {"dataset": DOMAINS, "split": COLD}
    entries = ["plain-mf", {"name": "nx-map", "set": elsewhere}, {"name": "small", "preset": "blp-mf"}]
    entries[2]["set"] = {"protocol.completion.rank": 2}
    whole = planned(entries)
    some = planned(entries, only=["small"])
    assert names(some) == ["small", *BASELINES]
    assert some.cells == tuple(cell for cell in whole.cells if cell.protocol in names(some))
    assert names(planned(entries, only=["nx-map"], baselines=False)) == ["nx-map"]
    both = planned(entries, only=["nx-map", "item-average"])
    assert names(both) == ["nx-map", *BASELINES, *(f"{each}-synthetic-domains" for each in BASELINES)]


def test_only_a_promise_of_all_runs() -> None:
    some = planned([], promises="all", only=["best-shuffle-per-user"])
    assert names(some) == ["best-shuffle-per-user", *BASELINES]
    promised = {cell.protocol: cell.config.protocol.stated for cell in some.cells}
    assert promised["best-shuffle-per-user"] == {"per": "user", "item_set": "hidden", "trust": "shuffle"}


def test_a_name_that_is_not_there_is_refused_with_those_that_are() -> None:
    with refused_at("comparison: only") as refusal:
        planned(["blp-mf"], only=["blp-mf", "blp"])
    assert refusal.value.found == "no protocol 'blp'"
    assert refusal.value.accepted == ", ".join(["blp-mf", *BASELINES]) + "; did you mean blp-mf?"
    with refused_at("comparison: only"):
        planned(["blp-mf"], only=[])


FILMS = {"kind": "movielens-100k", "path": "nowhere", "items": True}


def known(comparison: Comparison) -> dict[str, tuple[str | None, bool]]:
    """Return which baseline each protocol is, and whether it knows the items."""
    return {
        cell.protocol: (cell.baseline, bool(getattr(cell.config.dataset, "items", False)))
        for cell in comparison.cells
    }


@pytest.mark.parametrize("first", [True, False])
def test_a_baseline_knows_of_the_items_what_the_protocols_beside_it_know(first: bool) -> None:
    """Whichever protocol comes first; and where only some know them, one that does not stands beside."""
    entries = ["blp-mf", {"name": "without", "preset": "blp-mf", "set": {"dataset.items": False}}]
    mixed = known(planned(entries if first else entries[::-1], dataset=FILMS))
    assert mixed["nothing-sent"] == ("nothing-sent", True)
    assert mixed.get("nothing-sent-without-items") == ("nothing-sent", False)
    assert mixed["sets-only"] == ("sets-only", True)
    assert mixed.get("sets-only-without-items") == ("sets-only", False)
    assert list(mixed)[2:] == [
        *("nothing-sent", "nothing-sent-without-items", "global-mean", "item-average"),
        *("sets-only", "sets-only-without-items"),
    ]
    alike = known(planned(entries[:1], dataset=FILMS))
    assert alike["nothing-sent"] == ("nothing-sent", True)
    assert list(alike)[1:] == list(BASELINES)


def test_popularity_is_weighed_by_what_is_public_of_the_items() -> None:
    dataset, split = {**FILMS, "positive": ">= 4"}, {"kind": "user-holdout", "test_fraction": 0.2}
    lists = known(planned(["ease"], dataset=dataset, split=split))
    assert lists["popularity-by-content"] == ("popularity", True)
    assert lists["content-list"] == ("nothing-sent", True)
    assert {"random-list", "popularity"} <= set(lists)
    dataset = {**dataset, "items": False}
    lists = known(planned(["ease"], dataset=dataset, split=split))
    assert set(lists) == {"ease", "random-list", "popularity"}


def test_what_is_listed_is_not_added_whatever_its_name_unless_it_has_other_settings() -> None:
    elsewhere = {"dataset": DOMAINS, "split": COLD}
    alone = {"name": "alone", "preset": "nothing-sent"}
    protocols = ["blp-mf", alone, {"name": "item-average", "set": elsewhere}]
    comparison = planned(protocols)
    assert "nothing-sent" not in names(comparison)
    assert {"item-average-synthetic", "nothing-sent-synthetic-domains"} <= set(names(comparison))
    handicapped = {**alone, "set": {"protocol.prior": 1}}
    assert "nothing-sent" in names(planned(["blp-mf", handicapped]))
    unknowing = {**alone, "set": {"dataset.items": False}}
    assert known(planned(["blp-mf", unknowing], dataset=FILMS))["nothing-sent"][1]


@pytest.mark.thorough
@pytest.mark.parametrize(
    "path",
    sorted(path for folder in ("comparisons", "experiments") for path in (CONFIGS / folder).glob("*.yaml")),
    ids=lambda p: p.stem,
)
def test_every_comparison_holds_the_strongest_baseline_that_its_public_data_permit(path: Path) -> None:
    comparison = load_comparison(path)
    if not comparison.config.baselines:
        return
    predicts: dict[tuple[Any, ...], list[Any]] = {}
    for cell in comparison.cells:
        values = cell.config.model_dump(mode="json")
        dataset = {key: value for key, value in values["dataset"].items() if type(value) is not bool}
        split = {key: value for key, value in values["split"].items() if key != "fold"}
        group = yaml.safe_dump([dataset, split, values["binarization"], cell.panel, cell.population])
        predicts.setdefault((group,), []).append(cell)
    for cells in predicts.values():
        knows = [bool(cell.public) for cell in cells if cell.baseline is None]
        lists = cells[0].config.protocol.predicted == "lists"
        for most in {max(knows), min(knows)} if knows else ():
            of = [each for each in cells if bool(each.public) == most]
            assert "nothing-sent" in {each.baseline for each in of}
            if most and lists:
                assert {"content-list", "popularity-by-content"} <= {each.protocol for each in of}


def test_baselines_are_known_among_the_presets() -> None:
    runs = {name: values for name, path in presets().items() if "protocol" in (values := read_yaml(path))}
    known = {name: parse_config(values).protocol.facts.baseline for name, values in runs.items()}
    named = {preset: name for own in BASELINE_PRESETS.values() for name, preset in own.items()}
    named |= {form: named[preset] for preset, form in INFORMED_BASELINES.items()}
    assert known == {name: named.get(name) for name in runs}


@pytest.mark.thorough
def test_the_table_names_baselines_and_an_interrupted_comparison_goes_on(tmp_path: Path) -> None:
    values, folder = {**SHARED, "protocols": ["blp-mf"]}, tmp_path / "out"
    assert not compare(values, folder, page=False).failures
    table = (folder / "comparison.csv").read_text()
    rows = list(csv.DictReader(table.splitlines()))
    assert [row["baseline"] for row in rows[::2]] == ["", *BASELINES]
    assert [row["against"] for row in rows[:4]] == ["nothing-sent", "nothing-sent", "", ""]
    better = [float(rows[2 + seed]["rmse"]) - float(rows[seed]["rmse"]) for seed in (0, 1)]
    low, gained, high = (float(rows[0][f"rmse_gain{end}"]) for end in ("_low", "", "_high"))
    assert low < gained < high
    assert gained == pytest.approx(sum(better) / 2, abs=1e-9)
    (folder / "cells" / "nothing-sent-seed2" / "summary.json").unlink()
    assert not compare(values, folder, resume=True, page=False).failures
    assert (folder / "comparison.csv").read_text() == table
    predictions = folder / "cells" / "nothing-sent-seed1" / "predictions.csv.gz"
    predictions.write_bytes(predictions.read_bytes()[:-1])
    with refused_at("predictions.csv.gz"):
        compare(values, folder, resume=True, page=False)
    assert load_comparison(folder / "comparison.yaml").cells == load_comparison(values).cells


def test_a_comparison_is_written_so_that_it_goes_on_from_any_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.csv").write_text("".join(f"{row % 7},{row % 5},{1 + row % 3}\n" for row in range(35)))
    mine = {"kind": "csv", "path": "mine.csv"}
    others = {"users": [14], "dataset": mine, "datasets": [{**mine, "high": 5, "low": 1, "step": 1}]}
    parts = {"dataset": mine, "split": {"kind": "holdout"}, "folds": None, "populations": others}
    values = {**SHARED, **parts, "protocols": ["blp-mf"]}
    written = yaml.safe_load(load_comparison(values).to_yaml({}))
    held = written["populations"]
    for part in (written["dataset"], held["dataset"], *held["datasets"]):
        assert part["path"] == str(tmp_path / "mine.csv")


VALUES: dict[str, Any] = {
    **SHARED,
    "dataset": {"kind": "synthetic", "users": 20, "items": 30, "ratings": 300},
    "split": FOLDS,
    "folds": [0, 2],
    "epsilons": [1.0, 2.0],
    "protocols": [
        {"name": "averages", "protocol": {**PRIVATE, "completion": {"kind": "item-average"}}},
        {"name": "plain", "protocol": CLEAR},
    ],
    "baselines": False,
}


def load_populations(populations: Any, **changes: Any) -> Comparison:
    return load_comparison({**VALUES, "populations": populations, **changes})


def test_ratings_per_user_stay_the_same() -> None:
    cells = [cell for cell in load_populations({"users": [40, 10]}).cells if cell.population]
    assert {(cell.population, cell.config.dataset.known_size()) for cell in cells} == {
        ("40", (40, 30, 600)),
        ("10", (10, 30, 150)),
    }
    assert {cell.config.split.fold for cell in cells} == {0}  # type: ignore[attr-defined]


def test_populations_come_beside_the_comparisons_own_ratings() -> None:
    plain = load_comparison(VALUES).cells
    cells = load_populations(
        {"users": [40], "epsilons": [5.0], "protocols": ["averages"]}, baselines=True
    ).cells
    assert [cell for cell in cells if cell.population is None and cell.baseline is None] == list(plain)
    others = [cell for cell in cells if cell.population]
    assert [(cell.protocol, cell.epsilon, cell.seed, cell.baseline) for cell in others] == [
        ("averages", 5.0, 1, None),
        ("averages", 5.0, 2, None),
        ("nothing-sent", None, 1, "nothing-sent"),
        ("nothing-sent", None, 2, "nothing-sent"),
    ]
    assert others[0].key == "averages-users40-eps5.0-seed1"


def test_users_of_given_data_are_copied() -> None:
    given = {"kind": "movielens-1m", "path": "x", "simulated_up_to": 500}
    cells = load_populations({"users": [40, 800], "dataset": given}).cells
    datasets = {cell.population: cell.config.dataset for cell in cells if cell.population}
    assert {name: dataset.copies for name, dataset in datasets.items()} == {"40": 40, "800": 800}
    assert {name: dataset.represented(30) for name, dataset in datasets.items()} == {"40": None, "800": 800}
