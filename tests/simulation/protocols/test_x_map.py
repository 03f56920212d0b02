"""X-Map as a protocol: what it predicts, sends, charges and refuses, however the work is divided."""

import copy
import csv
import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Context, RecordDict

from clients.delivery import alter_ego_reports
from clients.population import Partition, open_population
from dprec.accounting import MatchedBudget
from dprec.errors import InputError, RunError
from dprec.exchange import ReplacementRequest
from dprec.randomness import RunKeys
from simulation import load, run
from simulation.configuration.models import parse_config
from simulation.configuration.strict_yaml import replace_value
from simulation.engine.session import open_session
from simulation.execution import load_ratings
from simulation.protocols.base import Protocol
from strategies.rounds import message_size
from tests.paths import CONFIGS, preset_file
from tests.simulation.divisions import recorded

SMALL: dict[str, Any] = {
    "name": "small",
    "seed": 2,
    "dataset": {"kind": "synthetic-domains", "users": 60, "items": 50, "ratings": 1300},
    "split": {"kind": "cold-start", "test_fraction": 0.3},
    "protocol": {
        "kind": "x-map",
        "mechanism": {"kind": "none"},
        "replacement": {"selection": "private", "epsilon": 0.6},
        "recommendation": {"neighbors": 4, "epsilon": 0.5},
    },
    "simulation": {"backend": "local"},
}


def small(**changes: Any) -> dict[str, Any]:
    values = copy.deepcopy(SMALL)
    for key, value in changes.items():
        replace_value(values, key.replace("__", "."), value, "test")
    return values


def variants() -> dict[str, dict[str, Any]]:
    local = small(
        protocol__mechanism={"kind": "bounded-laplace"},
        protocol__privacy={"epsilon": 2.0, "per": "rating"},
        protocol__replacement={"selection": "best", "transfer": "deviation"},
        protocol__recommendation={"neighbors": 4},
    )
    return {
        "private": small(),
        "private deviations": small(protocol__replacement__transfer="deviation"),
        "whole catalogue": small(protocol__replacement__candidates="catalogue"),
        "global sensitivity": small(protocol__recommendation__sensitivity="global"),
        "cosine": small(protocol__graph={"similarity": "cosine"}),
        "best": small(protocol__replacement={"selection": "best"}, protocol__recommendation={"neighbors": 4}),
        "random": small(
            protocol__replacement={"selection": "random", "among": 3},
            protocol__recommendation={"neighbors": 4, "shrinkage": 1.0, "positive_only": True},
        ),
        "target only": small(
            protocol__replacement={"selection": "none"}, protocol__recommendation={"neighbors": 4}
        ),
        "local": local,
        "local, items hidden": {
            **local,
            "protocol": {
                **local["protocol"],
                "mechanism": {"kind": "zheng-randomized-response"},
                "privacy": {"epsilon": 6.0, "per": "cell"},
            },
        },
    }


VARIANTS = variants()
FAULTS = {"dropout": 0.2, "straggle": 0.1, "corrupt": 0.2}


def kept(values: dict[str, Any], users_per_node: int | str) -> dict[str, Any]:
    """Run and return what must not depend on how the users are divided over nodes."""
    simulation = {**values["simulation"], "users_per_node": users_per_node}
    result = run(parse_config({**values, "simulation": simulation}))
    predictions = result.predictions["prediction"]
    assert np.all((predictions >= 1) & (predictions <= 5))
    columns = {**result.predictions, **result.traffic}
    parts = ("accuracy", "privacy", "traffic", "domains", "completion_diagnostics")
    return {
        **{name: column.tobytes() for name, column in columns.items()},
        **{name: result.summary.get(name) for name in parts},
        "rounds": [{**line, "seconds": None} for line in result.rounds],
    }


@pytest.mark.parametrize(
    ("name", "faults"), [(name, {}) for name in VARIANTS] + [("private", FAULTS), ("local", FAULTS)]
)
def test_the_division_of_users_changes_no_bit(name: str, faults: dict[str, float]) -> None:
    few = {"kind": "synthetic-domains", "users": 24, "items": 40, "ratings": 600}
    values = {**VARIANTS[name], "dataset": few, "simulation": {"backend": "local", "faults": faults}}
    expected = kept(values, 1)
    assert expected["privacy"]["trusts_server"] is not name.startswith("local")
    for users_per_node in (7, "all"):
        found = kept(values, users_per_node)
        for key, value in expected.items():
            assert found[key] == value, key


def test_requests_in_many_batches_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = kept(SMALL, 7)
    monkeypatch.setattr("strategies.report_collection._BYTES_AT_ONCE", 100)
    assert kept(SMALL, 7) == expected


def test_less_noise_shrinks_less() -> None:
    alone = run(VARIANTS["target only"]).predictions["prediction"]
    moves = []
    for epsilon in (0.1, 20.0):
        changed = small(
            protocol__replacement__epsilon=epsilon,
            protocol__recommendation={"neighbors": 4, "epsilon": epsilon, "noise_shrinkage": 1.0},
        )
        moves.append(np.abs(run(changed).predictions["prediction"] - alone).mean())
    assert moves[0] < moves[1]


def test_alter_egos_help_where_users_differ() -> None:
    # Synthetic users differ by 0.45 stars in their means, and the item's mean knows nothing of that.
    values = small(dataset={"kind": "synthetic-domains", "users": 400, "items": 120, "ratings": 12_000})
    values["protocol"] = {
        "kind": "x-map",
        "mechanism": {"kind": "none"},
        "replacement": {"selection": "best", "transfer": "deviation"},
        "recommendation": {"shrinkage": 1.0, "positive_only": True},
    }
    with_alter_egos = run(values).summary["accuracy"]["mae"]
    values["protocol"]["replacement"] = {"selection": "none"}
    assert with_alter_egos < 0.99 * run(values).summary["accuracy"]["mae"]


def test_the_target_alone_is_the_items_average() -> None:
    result = run(VARIANTS["target only"])
    train, test = load_ratings(parse_config(SMALL))
    overall = train.values[train.in_target[train.items]].mean()
    for item, prediction in zip(test.items, result.predictions["prediction"], strict=True):
        own = train.values[train.items == item]
        assert prediction == pytest.approx(own.mean() if own.size else overall)
    assert any("Target domain alone" in note for note in result.summary["privacy"]["notes"])


def test_the_losses_charged_are_those_that_are_claimed() -> None:
    values = small()
    train, _ = load_ratings(parse_config(values))
    result = run(values)
    traffic, summary = result.traffic, result.summary
    source = ~train.in_target[train.items]
    most = np.bincount(train.users[source], minlength=train.n_users)
    privacy = summary["privacy"]
    assert (privacy["status"], privacy["trust"]) == ("claimed", "central")
    assert privacy["epsilon_per_rating"] is None
    assert privacy["epsilon_per_user"] == {"max": None, "mean": None, "median": None}
    assert np.isposinf(traffic["epsilon_per_user"]).all()
    assert privacy["epsilon_claimed"]["per_rating"] == pytest.approx(0.6 + 0.5)
    replaced = (privacy["epsilon_claimed"]["per_user"] - 0.5 * train.in_target.sum()) / 0.6
    assert 0.5 < replaced <= most.max() + 1e-9
    notes = " ".join(summary["privacy"]["notes"])
    for words in (
        "two data sets that differ in one user",
        "PNSA (private neighbour selection) spends 0.25 and PNCF 0.25",
        "local",
        "Trusted",
    ):
        assert words in notes
    bare = run(VARIANTS["best"]).summary["privacy"]
    assert bare["epsilon_per_rating"] is None
    assert bare["status"] == "none"
    assert bare["epsilon_claimed"] == {"per_rating": None, "per_user": None}
    assert bare["notes"][0] == "No privacy: AlterEgos and predictions reveal other users' ratings."
    local = run(VARIANTS["local"])
    assert (local.summary["privacy"]["status"], local.summary["privacy"]["trust"]) == ("proved", "local")
    assert local.summary["privacy"]["epsilon_per_rating"] == pytest.approx(2.0, rel=1e-3)
    assert local.summary["traffic"]["rounds"] == 1


def test_accounted_bytes_are_those_of_the_messages() -> None:
    config = parse_config({**SMALL, "simulation": {"backend": "local", "users_per_node": 1}})
    recording, result = recorded(config)
    for way, messages in (("uplink", recording.received), ("downlink", recording.sent)):
        sizes = [sum(map(message_size, messages[node])) for node in recording.nodes]
        assert result.traffic[f"{way}_message_bytes"].tolist() == sizes


def test_a_budget_goes_to_both_steps_or_to_the_mechanism() -> None:
    presets = ("x-map", "nx-map", "x-map-local")
    x_map, nx_map, local = (load(preset_file(name)).protocol for name in presets)
    assert (x_map.private, nx_map.private, local.private) == (True, False, True)
    spent = x_map.at_budget(MatchedBudget(0.25))
    assert (spent.replacement.epsilon, spent.recommendation.epsilon) == (0.25, 0.25)
    assert local.at_budget(MatchedBudget(0.25)).privacy.per == "rating"
    assert local.at_budget(MatchedBudget(0.25, "user")).privacy.per == "user"


def test_training_ratings_without_a_straddler_are_refused(tmp_path: Path) -> None:
    # The only user of both domains is held out, and nobody is left to learn from.
    (tmp_path / "book.dat").write_text("1\t1\t5\n1\t2\t4\n2\t1\t3\n2\t3\t1\n")
    (tmp_path / "music.dat").write_text("1\t1\t5\n3\t1\t2\n")
    dataset = {"kind": "douban", "path": str(tmp_path), "source": "book", "target": "music"}
    with pytest.raises(InputError, match="no user has training ratings in both book and music"):
        run(small(dataset=dataset, split={"kind": "cold-start", "test_fraction": 0.9}))


def test_what_is_kept_out_is_counted() -> None:
    sparse = {"kind": "synthetic-domains", "users": 60, "items": 90, "ratings": 500}
    notes = run(small(dataset=sparse, protocol__recommendation={"neighbors": 40})).summary["privacy"]["notes"]
    assert any("rated source items have no X-Sim value" in note for note in notes)
    assert any("hold fewer items than the 40 neighbours" in note for note in notes)


def test_over_the_catalogue_every_source_item_is_replaced() -> None:
    # One user rates in both domains; most items of the source have no way into the target.
    few = {"kind": "synthetic-domains", "users": 30, "items": 60, "ratings": 300, "straddling": 0.1}
    options = {"selection": "private", "epsilon": 0.6, "candidates": "catalogue"}
    result = run(small(dataset=few, split__test_fraction=0.5, protocol__replacement=options))
    notes = " ".join(result.summary["privacy"]["notes"])
    assert "their replacement is drawn uniformly from all target items" in notes
    train, _ = load_ratings(parse_config(small(dataset=few, split__test_fraction=0.5)))
    in_source = np.bincount(train.users, weights=~train.in_target[train.items], minlength=train.n_users)
    # Whoever rated in the source is asked, whatever the others rated: two messages each way.
    np.testing.assert_array_equal(result.traffic["messages"], np.where(in_source > 0, 4, 2))
    # Every replacement costs, and every prediction.
    claimed = result.summary["privacy"]["epsilon_claimed"]["per_user"]
    assert claimed == pytest.approx(0.6 * in_source.max() + 0.5 * train.in_target.sum())


def test_a_recommendation_of_more_neighbours_than_there_are_items_is_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # With another setting, all would be drawn anew.
    monkeypatch.setattr(Protocol, "identity", "")
    known = parse_config(SMALL).dataset.items
    many, more = (
        run(small(protocol__recommendation={"neighbors": k, "epsilon": 0.6})).predictions["prediction"]
        for k in (known, 10**12)
    )
    np.testing.assert_array_equal(many, more)


def test_cosine_needs_ratings_of_zero_and_more(tmp_path: Path) -> None:
    for name, items in (("one", "ab"), ("other", "cd")):
        lines = [f"{user},{items[0]},-1\n{user},{items[1]},1" for user in range(4)]
        (tmp_path / name).write_text("user,item,rating\n" + "\n".join(lines) + "\n")
    files = {"path": str(tmp_path / "one"), "target_path": str(tmp_path / "other")}
    values = small(dataset={"kind": "csv-domains", **files}, protocol__graph={"similarity": "cosine"})
    with pytest.raises(InputError, match="'cosine', with ratings that arrive as low as -1"):
        run(values)


def test_faults_are_counted_and_lose_no_other_user() -> None:
    values = small(simulation={"backend": "local", "faults": FAULTS})
    result = run(values)
    notes = " ".join(result.summary["privacy"]["notes"])
    assert "reports were missing, late or malformed" in notes
    assert "AlterEgos were missing, late or malformed" in notes
    with pytest.raises(RunError):
        run(small(simulation={"backend": "local", "faults": {"dropout": 1.0}}))


def test_a_device_refuses_malformed_requests_and_a_second_table(tmp_path: Path) -> None:
    config = parse_config(small(protocol__graph={"similarity": "cosine"}))
    train, _ = load_ratings(config)
    with open_session(config.simulation, 1) as session:
        key = session.install(
            train,
            users_per_node=train.n_users,
            keys=RunKeys.derive(1).installed,
            faults=config.simulation.faults,
            setup=config.protocol.setup(),
        )
        partition: Partition = open_population(str(session.root / key)).partition(0)
        target = {"start": train.target_start, "stop": train.target_stop}
        whole = {"round": 2, **target, "rows": b""}

        def ask(record: dict[str, Any]) -> list[bytes]:
            return alter_ego_reports(partition, ReplacementRequest.of(record), context)

        context = Context(1, 1, {}, RecordDict(), {})
        source = int(np.flatnonzero(~train.in_target)[0])
        table = {**whole, "rows": _row(train, item=source, step=5)}
        answer = ask(table)
        assert ask(table) == answer
        for other in (whole, {**table, "rows": _row(train, item=source, step=4)}):
            with pytest.raises(ValueError, match="after round 2 was answered"):
                ask(other)
        for earlier_or_later in (1, 3):
            with pytest.raises(ValueError, match="asked to replace items in round"):
                ask({**table, "round": earlier_or_later})

        context = Context(1, 1, {}, RecordDict(), {})
        assert ask(whole) == [b""] * train.n_users
        for wrong, reason in (
            ({**whole, "stop": train.n_items + 1}, "beyond the catalogue"),
            ({**whole, "rows": b"\1\2\3"}, "rows"),
            ({**whole, "rows": _row(train, item=train.target_start, step=5)}, "of the target domain itself"),
            ({**whole, "rows": _row(train, item=source, step=-5)}, "below 0, for a sensitivity of 1"),
        ):
            with pytest.raises(ValueError, match=reason):
                ask(wrong)


def _row(train: Any, item: int, step: int) -> bytes:
    from dprec.crossdomain import Candidates, RowCodec

    one = Candidates(np.array([item]), np.array([0, 1]), np.array([0]), np.array([step]))
    codec = RowCodec(train.n_items, train.target_stop - train.target_start, with_steps=True, with_means=False)
    return codec.pack(one.items, codec.rows(one), np.zeros(1, dtype=np.int64))


def test_the_directory_holds_predictions_and_the_picture(tmp_path: Path) -> None:
    run(SMALL, tmp_path)
    text = (tmp_path / "report.html").read_text()
    assert "The two domains as layers" in text
    assert "AlterEgo" in text
    assert (tmp_path / "figures" / "alter-ego.svg").is_file()
    with gzip.open(tmp_path / "predictions.csv.gz", "rt", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows
    assert all(row["item"].startswith("target:") for row in rows)


@pytest.mark.parametrize(
    "name", ["x-map-douban-book-music", "x-map-douban-music-book", "x-map-movielens-genres"]
)
def test_the_experiments_are_read(name: str) -> None:
    from simulation.comparison.planning import load_comparison

    comparison = load_comparison(CONFIGS / "experiments" / f"{name}.yaml")
    names = {cell.protocol for cell in comparison.cells}
    assert {"item-average", "user-average", "item-knn-target-only", "mf-union", "nx-map", "x-map"} <= names
    assert {cell.seed for cell in comparison.cells} == {1, 2, 3, 4, 5}
