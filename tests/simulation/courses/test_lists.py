"""Protocols of lists: what they are given, what they are refused, and what a run of one leaves."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats

from dprec.completion import Profiles
from dprec.gradients import Aggregate
from dprec.lists.gram import DIAGONAL, table_items
from dprec.predictions import Lists, Predict, scored_lists
from dprec.protocols.base import Public
from dprec.protocols.gram import GramProtocol, SetServer
from dprec.randomness import ReleaseDraws
from dprec.ratings import POSITIVE
from dprec.sums import CentralAggregation, RepresentedAggregation
from simulation import evaluation
from simulation.configuration.loading import load
from simulation.execution import load_ratings
from tests.make import ON_THIS_MACHINE, POSITIVE_DATA
from tests.refusals import refused_at
from tests.simulation.conftest import run_of_sets
from tests.summing import contributions, dense, pairs


def test_a_population_by_tau_has_the_noise_bytes_and_loss_of_all_its_users() -> None:
    def figures(**changes: Any) -> dict[str, Any]:
        return run_of_sets("popularity-secagg", dataset={**POSITIVE_DATA, "copies": 600, **changes}).summary

    simulated, represented = figures(), figures(simulated_up_to=599)
    assert (simulated["dataset"]["users"], simulated["dataset"]["represents"]) == (600, None)
    assert (represented["dataset"]["users"], represented["dataset"]["represents"]) == (60, 600)
    assert simulated["privacy"]["tau"] == represented["privacy"]["tau"]
    spent = [each["privacy"]["epsilon_composed"]["max"] for each in (simulated, represented)]
    assert spent[0] == pytest.approx(spent[1], rel=1e-9)
    sent = [each["traffic"]["uplink"]["payload_mean_per_user"] for each in (simulated, represented)]
    assert sent[0] == sent[1]
    assert any(note.startswith("By tau: 60 simulated users") for note in represented["privacy"]["notes"])
    assert all("By tau" not in note for note in simulated["privacy"]["notes"])


def test_every_round_is_ranked_once_by_the_rows_of_its_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Lists, Lists]] = []

    def both_ways(predict: Predict, *arguments: Any, **named: Any) -> Lists:
        by_rows = scored_lists(predict, *arguments, **named)
        asked.append((by_rows, scored_lists(predict, *arguments, **named | {"predict_rows": None})))
        assert named["predict_rows"] is not None
        return by_rows

    monkeypatch.setattr(evaluation, "scored_lists", both_ways)
    result = run_of_sets("gram-secagg", overrides=["protocol.table.items=20"])
    assert len(asked) == len(result.rounds) == 2
    for by_rows, by_cells in asked:
        assert by_rows.items.tolist() == by_cells.items.tolist()
        assert by_rows.scores.tolist() == by_cells.scores.tolist()
    first, last = (each["accuracy"] for each in result.rounds)
    assert last == {name: result.summary["accuracy"][name] for name in first}
    assert first["ndcg_at_10"] != last["ndcg_at_10"]


def test_the_sums_of_who_represents_others_have_as_much_noise_per_user() -> None:
    config = load("gram-secagg", [f"dataset={json.dumps(POSITIVE_DATA)}"])
    train, _ = load_ratings(config)
    population = 10 * train.n_users
    suited: Any = config.protocol.suited(Public.of(train, population=population))
    assert suited == config.protocol.suited(Public(population, train.n_items, POSITIVE))
    assert suited.installed.represented().aggregation == CentralAggregation()
    aggregation = RepresentedAggregation(
        of=suited.aggregation, users=train.n_users, population=population, rounds=2
    )
    layout = pairs(300)
    nothing = Aggregate(np.zeros((layout.n_rows, 1), dtype=np.int64), None, train.n_users)
    released = aggregation.release(nothing, layout, 20.0, ReleaseDraws(1, 1))
    # A deviation of 45,150 numbers is off by 2 % with a probability below 1e-8.
    assert released.std() == pytest.approx(aggregation.deviation(layout, 20.0, train.n_users), rel=0.02)
    # Of 600 devices 60 may drop out and 5 collude; the grid adds a tenth to the variance, or less.
    assert 0.98 < released.std() / (20.0 * np.sqrt(600 / 535)) < 1.02 * np.sqrt(1.1)
    assert aggregation.counted(train.n_users) == population


def test_what_a_population_could_not_do_is_refused_where_others_represent_it() -> None:
    narrow = [
        "protocol.aggregation={kind: secure-aggregation, modulus_bits: 22}",
        "protocol.factorization={rank: 2, rounds: 1}",
    ]
    few, many = ({**POSITIVE_DATA, "copies": copies, "simulated_up_to": 599} for copies in (60, 60_000))
    run_of_sets("dp-ials", dataset=few, overrides=narrow)
    with refused_at("protocol.aggregation.modulus_bits"):
        run_of_sets("dp-ials", dataset=many, overrides=narrow)


def test_only_sums_represent_others() -> None:
    refused = {"dataset": {**POSITIVE_DATA, "positive": None, "copies": 600, "simulated_up_to": 100}}
    with refused_at("protocol.kind"):
        run_of_sets("optimal-on-device", split={"kind": "holdout"}, **refused)


BUDGET = "{epsilon: 4.0, per: user, composition: pld, delta: 1.0e-6}"


def of_two_kinds(folder: Path) -> dict[str, Any]:
    """Write 40 items of two public kinds and 300 users with 12 of one kind each; return the data set."""
    items = np.arange(40)
    kinds = ["item,kind", *(f"{item},{'ab'[item % 2]}" for item in items)]
    (folder / "items.csv").write_text("\n".join(kinds))
    draws = np.random.default_rng(5)
    sets = [draws.permutation(items[items % 2 == user % 2])[:12] for user in range(300)]
    pairs = ["user,item", *(f"{user},{item}" for user, own in enumerate(sets) for item in own)]
    (folder / "pairs.csv").write_text("\n".join(pairs))
    public = {"path": str(folder / "items.csv"), "categories": ["kind"]}
    return {"kind": "csv", "path": str(folder / "pairs.csv"), "items": public}


def test_a_device_alone_orders_items_by_what_is_public_of_them(tmp_path: Path) -> None:
    """By chance, a list of 20 of the other 30 items finds two thirds of what is held out."""
    dataset = of_two_kinds(tmp_path)
    knowing, random = (run_of_sets(name, dataset=dataset).summary for name in ("content-list", "random-list"))
    assert knowing["accuracy"]["recall_at_20"] == 1.0
    assert random["accuracy"]["recall_at_20"] < 0.8
    for summary in (knowing, random):
        assert summary["traffic"]["uplink"]["message_bytes"] == 0
        assert summary["privacy"]["epsilon_per_user"]["max"] == 0
    unknowing = run_of_sets("content-list", dataset={**dataset, "items": None})
    alone = run_of_sets("random-list", dataset={**dataset, "items": None})
    np.testing.assert_array_equal(unknowing.predictions["rank"], alone.predictions["rank"])


def test_tastes_are_learned_and_sets_hidden(tmp_path: Path) -> None:
    found = run_of_sets(
        "public-start",
        dataset=of_two_kinds(tmp_path),
        overrides=[
            "protocol.aggregation={kind: local}",
            "protocol.privacy={epsilon: 8, per: user, composition: sum, delta: 1.0e-6}",
            "protocol.table={items: 40, popularity_share: 0.2}",
        ],
    ).summary
    privacy = found["privacy"]
    assert (privacy["status"], privacy["trust"], privacy["hides_rated_items"]) == ("proved", "local", True)
    assert 0.9 * 8 < privacy["epsilon_composed"]["max"] <= 8 * (1 + 1e-6)
    assert found["traffic"]["rounds"] == 2
    # Half of the items are of a user's kind: by chance, a list of 20 from 30 finds two thirds of them.
    assert found["accuracy"]["recall_at_20"] > 0.9


def test_who_reports_to_nobody_in_particular_is_charged_once_and_others_nothing() -> None:
    faults = {"dropout": 0.1, "straggle": 0.1, "corrupt": 0.1}
    overrides = ["protocol.privacy.epsilon=2", "protocol.table.items=12"]
    simulated = {**ON_THIS_MACHINE, "faults": faults, "users_per_node": 70}
    found = run_of_sets("gram-local", copies=300, overrides=overrides, simulation=simulated)
    whole = run_of_sets(
        "gram-local", copies=300, overrides=overrides, simulation={**ON_THIS_MACHINE, "faults": faults}
    )
    np.testing.assert_array_equal(found.predictions["prediction"], whole.predictions["prediction"])
    traffic, privacy = found.traffic, found.summary["privacy"]
    assert found.summary["traffic"]["rounds"] == 2
    assert privacy["trust"] == "local"
    # A report is five bytes; of a silent device, nothing or a stray byte may arrive.
    charged = traffic["uplink_payload_bytes"] >= 5
    assert 0.85 < charged.mean() < 0.95
    assert np.array_equal(traffic["epsilon_per_user"] > 0, charged)
    assert 2 * (1 - 1e-9) < privacy["epsilon_composed"]["max"] <= 2
    assert (traffic["epsilon_composed"] == traffic["epsilon_per_user"]).all()


def test_between_any_two_sets_the_distance_is_the_root_of_two() -> None:
    notes = run_of_sets("gram-central", copies=300).summary["privacy"]["notes"]
    expected = 1.458  # of Gaussian DP of mu(1, 1e-6) times the root of 2, at the same delta
    found = [
        float(note.split("between any two profiles it is ")[1].rstrip("."))
        for note in notes
        if "any two" in note
    ]
    assert found == [pytest.approx(expected, abs=0.02)]


@pytest.mark.parametrize("name", ["gram-secagg", "gram-local", "pairs-in-blanket"])
@pytest.mark.parametrize("users", [900, 1_000, 1_050, 3_000, 100_000])
def test_a_table_by_rule_is_the_largest_that_suits_its_own_noise(name: str, users: int) -> None:
    rule: Any = load(name, ["protocol.privacy.epsilon=1"]).protocol
    public = Public(users, 300, POSITIVE)
    among = rule.suited(public)
    most = among.aggregation.affordable(among.whole_multiplier)

    def suited(size: int) -> int:
        sized = replace(among, table=replace(rule.table, items=size))
        tau = sized.tau(sized.begin(public).release(sized.rounds), users)
        return table_items(tau, 300, content=True, most_numbers=most)

    assert among.table.items == max(size for size in range(301) if suited(size) >= size)


def test_a_budget_bounds_what_a_user_adds_to_popularity() -> None:
    everything = Profiles(np.array([0, 30]), np.arange(30, dtype=np.int32), np.full(30, np.nan), 40)
    lengths = []
    for overrides in ([], [f"protocol.privacy={BUDGET}"]):
        protocol: Any = load("popularity", overrides=overrides).protocol
        device = protocol.device(b"\0", 40, POSITIVE)
        own = contributions(device, everything, device.release(1))
        lengths.append(float(np.linalg.norm(dense(own, device.release(1)))))
    assert lengths == [pytest.approx(np.sqrt(30)), pytest.approx(1, abs=1e-6)]


def mean_distance(epsilon: float, delta: float) -> float:
    """Return mu of normal noise that is (epsilon, delta)-private, by its definition."""

    def excess(mu: float) -> float:
        above, below = stats.norm.cdf([mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu])
        return float(above - np.exp(epsilon) * below - delta)

    return float(optimize.brentq(excess, 1e-3, 10.0, xtol=1e-12))


def exact_sum(sets: Any, items: Any, layout: Any) -> Any:
    """Return what sets contribute, made from the definition."""
    if layout.n_rows == sets.shape[1]:
        return (sets / np.sqrt(np.maximum(sets.sum(axis=1, keepdims=True), 1))).sum(axis=0)
    upper, of_itself = np.triu_indices(items.size), np.where(np.eye(items.size), DIAGONAL, 1.0)
    pairs = np.stack([(np.outer(own, own) * of_itself)[upper] for own in sets[:, items]])
    return (pairs / np.maximum(np.linalg.norm(pairs, axis=1, keepdims=True), DIAGONAL)).sum(axis=0)


@pytest.mark.parametrize(
    ("name", "copies", "more"),
    [("gram-central", 300, 1.0), ("gram-secagg", 300, 300 / 265), ("gram-secagg", 400, 400 / 355)],
)
def test_a_server_learns_from_sums_with_the_noise_that_epsilon_needs(
    name: str, copies: int, more: float, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    learned = []

    def learn(
        server: SetServer, layout: Any, number: int, released: Any, deviation: float, users: int
    ) -> None:
        learned.append((released[:, 0], server.device.pairs.items, layout, deviation))
        honest(server, layout, number, released, deviation, users)

    honest = SetServer.learn
    monkeypatch.setattr(SetServer, "learn", learn)
    dataset = {**POSITIVE_DATA, "users": 150, "ratings": 3000, "copies": copies}
    found = run_of_sets(
        name, dataset=dataset, overrides=["protocol.table.items=40", "protocol.table.popularity_share=0.2"]
    )
    train = load_ratings(found.config)[0]
    sets = train.to_sets().toarray()
    assert [layout.n_rows for _, _, layout, _ in learned] == [40, 820]
    protocol: Any = found.config.protocol.suited(Public.of(train, content=False))
    multipliers = protocol.multipliers
    precision = sum(multiplier**-2 for multiplier in multipliers)
    # Seeds are fixed. Skellam noise costs hardly more than Gaussian noise.
    assert 0.99 < precision / mean_distance(1.0, 1e-6) ** 2 <= 1
    told = [deviation for *_, deviation in learned]
    assert told == list(found.summary["privacy"]["noise"])
    assert found.summary["privacy"]["tau"] == pytest.approx(told[1] * np.sqrt(0.8) / copies)
    for (released, items, layout, deviation), multiplier in zip(learned, multipliers, strict=True):
        # No device drops out here, and none of them colludes: there is more noise than counts. A grid adds
        # a twentieth at most.
        grid = (deviation / multiplier) ** 2 / more
        assert grid == pytest.approx(1) if name == "gram-central" else 1 < grid <= 1.05
        noise = (released - exact_sum(sets, items, layout)) / deviation
        assert (noise**2).mean() == pytest.approx(1, rel=5.5 * np.sqrt(2 / noise.size))


def test_nobody_sends_more_than_its_bytes_where_popular_items_are_searched_for() -> None:
    dataset = {**POSITIVE_DATA, "items": 2_000}
    overrides = ["protocol.max_bytes_up=3050", "protocol.aggregation.colluders=0"]
    found = run_of_sets("popularity-secagg", dataset=dataset, overrides=overrides)
    traffic = found.summary["traffic"]
    assert traffic["rounds"] == 2
    assert 2_900 < traffic["uplink"]["payload_max_per_user"] <= 3_050
    assert found.summary["privacy"]["epsilon_composed"]["max"] <= 1.0
    assert all(each["accuracy"]["ndcg_at_10"] >= 0 for each in found.rounds)


def test_where_no_table_is_worth_having_devices_send_popularity_within_what_was_counted() -> None:
    table = {"items": 8, "popularity_share": 0.2, "groups": 2, "grouped_items": 50}
    overrides = [f"protocol.table={json.dumps(table)}", "protocol.privacy.epsilon=0.5"]
    found = run_of_sets("gram-secagg", dataset={**POSITIVE_DATA, "items": 2_000}, overrides=overrides)
    protocol, public = found.config.protocol, Public(60, 2_000, POSITIVE)
    assert isinstance(protocol, GramProtocol)
    traffic = found.summary["traffic"]
    assert traffic["rounds"] == 3
    assert traffic["uplink"]["payload_max_per_user"] == protocol.suited(public).most_bytes_up(public)
    assert 0.49 < found.summary["privacy"]["epsilon_composed"]["max"] <= 0.5
