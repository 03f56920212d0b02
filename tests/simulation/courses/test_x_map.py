"""X-Map as a protocol: what it predicts, sends, charges and refuses, however the work is divided."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import Context, RecordDict

from clients.delivery import alter_ego_reports
from clients.population import Partition, open_population
from dprec.crossdomain import Candidates, RowCodec
from dprec.errors import InputError, RunError
from dprec.exchange import ReplacementRequest
from simulation import run
from simulation.configuration.models import parse_config
from simulation.configuration.strict_yaml import replace_value
from simulation.execution import load_ratings
from strategies.rounds import message_size
from tests.builders import populated
from tests.simulation.divisions import bits, compare, divided, recorded

FAULTS = {"dropout": 0.2, "straggle": 0.1, "corrupt": 0.2}
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


ALONE = {"protocol__replacement": {"selection": "none"}, "protocol__recommendation": {"neighbors": 4}}
BEST = {"protocol__replacement": {"selection": "best"}, "protocol__recommendation": {"neighbors": 4}}
LOCAL = {
    "protocol__mechanism": {"kind": "bounded-laplace"},
    "protocol__privacy": {"epsilon": 2.0, "per": "rating"},
    "protocol__replacement": {"selection": "best", "transfer": "deviation"},
    "protocol__recommendation": {"neighbors": 4},
}
VARIANTS: dict[str, dict[str, Any]] = {
    "private": {},
    "whole catalogue": {"protocol__replacement__candidates": "catalogue"},
    "global sensitivity, cosine": {
        "protocol__recommendation__sensitivity": "global",
        "protocol__graph": {"similarity": "cosine"},
    },
    "random": {
        "protocol__replacement": {"selection": "random", "among": 3},
        "protocol__recommendation": {"neighbors": 4, "shrinkage": 1.0, "positive_only": True},
    },
    "target only": ALONE,
    "local": LOCAL,
    "local, items hidden": {
        **LOCAL,
        "protocol__mechanism": {"kind": "zheng-randomized-response"},
        "protocol__privacy": {"epsilon": 6.0, "per": "cell"},
    },
}


@pytest.mark.parametrize("name", VARIANTS)
def test_the_division_of_users_changes_no_bit(name: str, tmp_path: Path) -> None:
    values = small(dataset={"kind": "synthetic-domains", "users": 24, "items": 40, "ratings": 600})
    values = small(**{"dataset": values["dataset"], **VARIANTS[name]})
    values["simulation"]["faults"] = FAULTS if name in ("private", "local") else {}
    whole = bits(None, divided(values, "local", 1, 1), tmp_path / "1")
    for users_per_node in (7, "all"):
        folder = tmp_path / str(users_per_node)
        compare(whole, bits(None, divided(values, "local", 1, users_per_node), folder))


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
    result = run(small(**ALONE))
    train, test = load_ratings(parse_config(SMALL))
    overall = train.values[train.in_target[train.items]].mean()
    for item, prediction in zip(test.items, result.predictions["prediction"], strict=True):
        own = train.values[train.items == item]
        assert prediction == pytest.approx(own.mean() if own.size else overall)


def test_the_losses_charged_are_those_that_are_claimed() -> None:
    train, _ = load_ratings(parse_config(SMALL))
    result = run(SMALL)
    most = np.bincount(train.users[~train.in_target[train.items]], minlength=train.n_users)
    privacy = result.summary["privacy"]
    assert (privacy["status"], privacy["trust"]) == ("claimed", "central")
    assert privacy["epsilon_per_rating"] is None
    assert np.isposinf(result.traffic["epsilon_per_user"]).all()
    assert privacy["epsilon_claimed"]["per_rating"] == pytest.approx(0.6 + 0.5)
    replaced = (privacy["epsilon_claimed"]["per_user"] - 0.5 * train.in_target.sum()) / 0.6
    assert 0.5 < replaced <= most.max() + 1e-9
    assert "PNSA (private neighbour selection) spends 0.25 and PNCF 0.25" in " ".join(privacy["notes"])
    bare = run(small(**BEST)).summary["privacy"]
    assert (bare["status"], bare["epsilon_per_rating"]) == ("none", None)
    assert bare["epsilon_claimed"] == {"per_rating": None, "per_user": None}
    local = run(small(**LOCAL)).summary["privacy"]
    assert (local["status"], local["trust"]) == ("proved", "local")
    assert local["epsilon_per_rating"] == pytest.approx(2.0, rel=1e-3)


def test_accounted_bytes_are_those_of_the_messages() -> None:
    recording, result = recorded(parse_config(small(simulation__users_per_node=1)))
    for way, messages in (("uplink", recording.received), ("downlink", recording.sent)):
        sizes = [sum(map(message_size, messages[node])) for node in recording.nodes]
        assert result.traffic[f"{way}_message_bytes"].tolist() == sizes


def test_where_nobody_is_left_to_learn_from_the_run_ends_in_one_line(tmp_path: Path) -> None:
    # The only user of both domains is held out.
    (tmp_path / "book.dat").write_text("1\t1\t5\n1\t2\t4\n2\t1\t3\n2\t3\t1\n")
    (tmp_path / "music.dat").write_text("1\t1\t5\n3\t1\t2\n")
    dataset = {"kind": "douban", "path": str(tmp_path), "source": "book", "target": "music"}
    with pytest.raises(InputError, match="no user has training ratings in both book and music"):
        run(small(dataset=dataset, split={"kind": "cold-start", "test_fraction": 0.9}))
    with pytest.raises(RunError):
        run(small(simulation__faults={"dropout": 1.0}))


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


def test_a_device_refuses_malformed_requests_and_a_second_table(tmp_path: Path) -> None:
    config = parse_config(small(protocol__graph={"similarity": "cosine"}))
    train, _ = load_ratings(config)
    populated(tmp_path / "run", train, config.protocol.installed)
    partition: Partition = open_population(str(tmp_path / "run")).partition(0)
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
        ({**whole, "rows": b"\1\2\3"}, "bytes"),
        ({**whole, "rows": _row(train, item=train.target_start, step=5)}, "of the target domain itself"),
        ({**whole, "rows": _row(train, item=source, step=-5)}, "below 0, for a sensitivity of 1"),
    ):
        with pytest.raises(ValueError, match=reason):
            ask(wrong)


def test_a_device_that_reports_by_a_mechanism_replaces_nothing(tmp_path: Path) -> None:
    """Its ratings are protected by the mechanism alone, which a replacement would go around."""
    config = parse_config(small(**LOCAL))
    train, _ = load_ratings(config)
    populated(tmp_path / "run", train, config.protocol.installed)
    partition = open_population(str(tmp_path / "run")).partition(0)
    request = {"round": 2, "start": train.target_start, "stop": train.target_stop, "rows": b""}
    with pytest.raises(ValueError, match="asked for AlterEgos"):
        alter_ego_reports(partition, ReplacementRequest.of(request), Context(1, 1, {}, RecordDict(), {}))


def _row(train: Any, item: int, step: int) -> bytes:
    one = Candidates(np.array([item]), np.array([0, 1]), np.array([0]), np.array([step]))
    codec = RowCodec(train.n_items, train.target_stop - train.target_start, with_steps=True, with_means=False)
    return codec.pack(one.items, codec.rows(one), np.zeros(1, dtype=np.int64))
