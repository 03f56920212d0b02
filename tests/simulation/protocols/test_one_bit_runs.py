"""One-bit runs from the outside: what they report, promise, send and refuse."""

import copy
import csv
import gzip
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flwr.app import ConfigRecord, Message

from dprec.accounting import PrivacyLossDistribution, compose
from dprec.completion import Observations, OneBit, slope_channel
from dprec.completion.one_bit.perturbation import curvature_ratio, slope_bound_of
from dprec.completion.one_bit.solver import Gaussian, steepness
from dprec.ratings import Ratings
from simulation import compare, run
from simulation.configuration.models import parse_config
from simulation.configuration.strict_yaml import read_yaml, replace_value
from simulation.evaluation import relative_error
from simulation.execution import load_ratings
from strategies.rounds import message_size
from tests.paths import CONFIGS, preset_file
from tests.simulation.divisions import recorded

PRESETS = ("one-bit-clear", "one-bit-input", "one-bit-objective", "one-bit-gradient", "one-bit-output")
USERS, ITEMS, EPSILON, ROUNDS = 24, 18, 2.0, 3

CHANNEL = (
    "Proved: epsilon is the largest log ratio of a channel's rows, counted in the same integer weights with "
    "which devices choose what they send"
)


def signs(preset: str, **changes: Any) -> dict[str, Any]:
    """Return a preset on signs of a known matrix, with values replaced by key, dots written as __."""
    values = copy.deepcopy(read_yaml(preset_file(preset)))
    values["dataset"] = {"kind": "one-bit-synthetic", "users": USERS, "items": ITEMS, "alpha": 3, "seed": 4}
    values["split"] = {"kind": "holdout", "test_fraction": 0.4}
    values["simulation"] = {"backend": "local"}
    if "privacy" in values["protocol"]:
        values["protocol"]["privacy"]["epsilon"] = EPSILON
    for key, value in changes.items():
        replace_value(values, key.replace("__", "."), value, "test")
    return values


def stars(preset: str, **changes: Any) -> dict[str, Any]:
    """Return a preset on ratings from 1 to 5 that no hidden matrix is known of."""
    dataset = {"kind": "synthetic", "users": USERS, "items": ITEMS, "ratings": 250}
    return signs(preset, dataset=dataset, **changes)


def guarantee(result: Any) -> tuple[str, str]:
    privacy = result.summary["privacy"]
    return privacy["status"], privacy["notes"][0]


@pytest.mark.parametrize(
    ("name", "status", "trust", "per_rating", "claimed", "note"),
    [
        ("one-bit-clear", "none", "central", None, None, "No privacy: the server receives the true ratings."),
        ("one-bit-input", "proved", "local", EPSILON, None, f"{CHANNEL}."),
        (
            "one-bit-objective",
            "proved",
            "central",
            EPSILON,
            None,
            "Proved: epsilon = 2 per rating, against all but the server (objective perturbation, published "
            "calibration): the ratings enter the objective only together with the noise, a Laplace "
            "mechanism on the bits.",
        ),
        ("one-bit-gradient", "proved", "local", EPSILON, None, f"{CHANNEL}, and the rounds add up."),
        (
            "one-bit-output",
            "claimed",
            "central",
            EPSILON * USERS * ITEMS,
            EPSILON,
            "Claimed, not proved: epsilon = 2 per rating, against all but the server (output perturbation, "
            "published calibration): one changed rating can move every entry of the estimate, and the noise "
            "is that of one entry; 864 is proved.",
        ),
    ],
)
def test_a_run_says_how_accurate_it_is_and_what_it_really_guarantees(
    tmp_path: Path,
    name: str,
    status: str,
    trust: str,
    per_rating: float | None,
    claimed: float | None,
    note: str,
) -> None:
    run(signs(name), tmp_path, page=False)
    summary = json.loads((tmp_path / "summary.json").read_text())
    with gzip.open(tmp_path / "predictions.csv.gz", "rt", newline="") as file:
        rows = list(csv.DictReader(file))
    agree = [(float(row["prediction"]) >= 0) == (float(row["rating"]) > 0) for row in rows]
    assert summary["accuracy"]["sign_accuracy"] == pytest.approx(np.mean(agree))
    assert summary["accuracy"]["relative_error"] > 0
    privacy = summary["privacy"]
    assert (privacy["status"], privacy["trust"]) == (status, trust)
    assert privacy["trusts_server"] is (trust == "central")
    assert privacy["epsilon_per_rating"] == pytest.approx(per_rating)
    assert privacy["epsilon_claimed"]["per_rating"] == claimed
    assert (privacy["epsilon_claimed"]["per_user"] is None) == (claimed is None)
    assert privacy["notes"][0] == note
    assert summary["completion"] == "one-bit"


def test_noise_on_the_objective_is_charged_for_each_rating_of_a_profile() -> None:
    traffic = run(signs("one-bit-objective")).traffic
    assert traffic["epsilon_per_user"] == pytest.approx(EPSILON * traffic["ratings"])


def test_the_relative_error_is_that_of_the_whole_matrix() -> None:
    config = parse_config(
        signs("one-bit-clear", protocol__completion__biases=True, protocol__completion__bounded=False)
    )
    train, _ = load_ratings(config)
    seen = Observations.of(train.users, train.items, train.values, (USERS, ITEMS), train.scale)
    completion = OneBit(alpha=0.25, rank=2, biases=True)
    truth = config.dataset.hidden()
    assert truth is not None
    expected = relative_error(completion.fit(seen, config.seed).hidden, truth)
    assert run(config).summary["accuracy"]["relative_error"] == pytest.approx(expected)
    zero = relative_error(lambda users, items: np.zeros(users.size), truth)
    assert zero == pytest.approx(1)


def test_signs_of_ratings_have_no_relative_error_and_tell_their_cut() -> None:
    for binarization, cut in (({"kind": "mean"}, None), ({"kind": "threshold", "above": 3}, 3.0)):
        values = stars("one-bit-input", binarization=binarization)
        result = run(values)
        assert result.summary["accuracy"]["relative_error"] is None
        del values["binarization"]
        mean = load_ratings(parse_config(values))[0].mean
        assert result.summary["dataset"]["binarized_above"] == pytest.approx(mean if cut is None else cut)
        told = "no epsilon covers what the cut tells"
        uncovered = [note for note in result.summary["privacy"]["notes"] if told in note]
        assert len(uncovered) == (cut is None)
        assert set(result.predictions["rating"].tolist()) == {-1.0, 1.0}


GAUSSIAN = {"kind": "one-bit", "link": "gaussian", "alpha": 1, "rank": 1}


def test_the_sound_calibration_keeps_its_epsilon() -> None:
    result = run(signs("one-bit-output", protocol__perturbation__calibration="sound"))
    assert guarantee(result) == (
        "proved",
        "Proved: epsilon = 2 per rating, against all but the server (output perturbation, sound "
        "calibration): the noise covers the largest L1 distance between any two estimates, so it hides "
        "whole profiles.",
    )
    # The noise hides whole profiles, so a user pays no more than a rating.
    assert result.summary["privacy"]["epsilon_per_rating"] == pytest.approx(EPSILON)
    assert result.summary["privacy"]["epsilon_per_user"]["max"] == pytest.approx(EPSILON)
    # One draw for the whole profile is not composed.
    assert result.summary["privacy"]["composition"] == "sum"
    assert result.summary["privacy"]["epsilon_composed"] == result.summary["privacy"]["epsilon_per_user"]


@pytest.mark.parametrize("calibration", ["published", "sound"])
def test_what_holds_for_the_exact_minimiser_alone_is_claimed_and_not_charged(calibration: str) -> None:
    completion = {**GAUSSIAN, "bounded": True}
    values = {"kind": "objective", "calibration": calibration}
    config = signs("one-bit-objective", protocol__completion=completion, protocol__perturbation=values)
    counts = load_ratings(parse_config(config))[0].counts
    result = run(config)
    exact = EPSILON
    if calibration == "published":
        # The noise is that of the published bound; what it keeps follows from the maximum of the slopes.
        link = Gaussian(1.0)
        exact *= steepness(link, 1.0) / slope_bound_of(link, 1.0, "published")
        exact += curvature_ratio(link, 1.0)
    status, note = guarantee(result)
    assert status == "claimed"
    assert note.endswith(
        f"the exact minimiser would keep {exact:.6g}, and a solver only approximates it; nothing is proved."
    )
    privacy = result.summary["privacy"]
    assert privacy["epsilon_per_rating"] is None
    assert privacy["epsilon_claimed"] == {"per_rating": EPSILON, "per_user": EPSILON * counts.max()}
    assert np.isposinf(result.traffic["epsilon_per_rating"][counts > 0]).all()


def test_objective_perturbation_with_unbounded_entries_and_the_gaussian_link_is_claimed() -> None:
    status, note = guarantee(run(signs("one-bit-objective", protocol__completion=GAUSSIAN)))
    assert status == "claimed"
    assert "needs a gradient of zero at the optimum, and omits a Jacobian; nothing is proved." in note


def only(message: Message, record: str, key: str) -> bytes:
    """Return the one payload of a message for or from a user who is alone on its node."""
    content = message.content[record]
    assert isinstance(content, ConfigRecord)
    payloads = content[key]
    assert isinstance(payloads, list)
    (payload,) = payloads
    assert isinstance(payload, bytes)
    return payload


@pytest.mark.parametrize("faults", [{}, {"dropout": 0.3}], ids=["all answer", "some do not"])
def test_gradient_traffic_is_what_its_messages_carry(faults: dict[str, float]) -> None:
    simulation = {"backend": "local", "users_per_node": 1, "faults": faults}
    changes = {"protocol__rounds": ROUNDS, "protocol__delivery": None, "simulation": simulation}
    config = parse_config(signs("one-bit-gradient", **changes))
    train, _ = load_ratings(config)
    recording, result = recorded(config)
    asked, replies = (
        [kept[node] for node in recording.nodes] for kept in (recording.sent, recording.received)
    )
    silent = np.array([["absent" in reply.content["reply"] for reply in own] for own in replies])
    assert silent.shape == (USERS, ROUNDS)
    assert silent.any() == bool(faults)
    down = np.array(
        [[[len(only(each, "request", "rows")), message_size(each)] for each in own] for own in asked]
    )
    up = np.array(
        [
            [
                [0, 0]
                if "absent" in each.content["reply"]
                else [len(only(each, "reply", "reports")), message_size(each)]
                for each in own
            ]
            for own in replies
        ]
    )
    for direction, moved in (("uplink", up), ("downlink", down)):
        for kind, sizes in zip(("payload", "message"), np.moveaxis(moved, 2, 0), strict=True):
            np.testing.assert_array_equal(result.traffic[f"{direction}_{kind}_bytes"], sizes.sum(axis=1))
            by_round = [getattr(record, f"{direction}_{kind}_bytes") for record in result.rounds]
            assert by_round == sizes.sum(axis=0).tolist()
    # A row goes down only to those whose items are known, with one number of 4 bytes for each.
    told = np.zeros(USERS, dtype=bool)
    for place in range(ROUNDS):
        np.testing.assert_array_equal(down[:, place, 0], np.where(told, 4 * train.counts, 0))
        told |= ~silent[:, place]
    answered = (~silent).sum(axis=1)
    np.testing.assert_array_equal(result.traffic["messages"], ROUNDS + answered)
    channel = slope_channel(0.5, 256, EPSILON / ROUNDS)
    slopes = answered * train.counts
    np.testing.assert_allclose(result.traffic["epsilon_per_user"], slopes * channel.epsilon)
    most, one = int(slopes.argmax()), PrivacyLossDistribution.of(channel)
    composed = compose([(one, int(slopes[most]))]).epsilon(1e-6)
    assert result.traffic["epsilon_composed"][most] == pytest.approx(composed, rel=1e-9)
    assert np.nanmax(result.traffic["epsilon_per_rating"]) <= EPSILON * (1 + 1e-6)
    told_of = f"{int(silent.sum())} of {USERS * ROUNDS} reports were missing"
    assert any(told_of in note for note in result.summary.privacy.notes) == bool(faults)


@pytest.mark.parametrize("name", PRESETS)
def test_who_has_no_observed_rating_is_counted(name: str) -> None:
    values = signs(name, split__test_fraction=0.93)
    train, _ = load_ratings(parse_config(values))
    users, items = unrated(train)
    assert users > 0
    assert items > 0
    result = run(values)
    note = f"{users} users and {items} items without an observed rating keep the prior."
    assert note in result.summary["privacy"]["notes"]
    assert all(math.isfinite(value) for value in result.predictions["prediction"])


def unrated(train: Ratings) -> tuple[int, int]:
    raters = np.bincount(train.items, minlength=train.n_items)
    return int((train.counts == 0).sum()), int((raters == 0).sum())


def test_flips_within_the_theorems_condition_run() -> None:
    # 1 - p2 e^2 <= p1 <= (1 - p2) e^2 holds, and so does the same with the two exchanged.
    flip = {"kind": "binary-flip", "p1": 0.2, "p2": 0.3}
    result = run(signs("one-bit-input", protocol__mechanism=flip))
    assert result.summary["privacy"]["epsilon_per_rating"] == pytest.approx(math.log(0.7 / 0.2))


def test_an_experiment_metrics_every_protocol_on_the_same_matrix(tmp_path: Path) -> None:
    changes = ["dataset.users=14", "dataset.items=12", "seeds=[0]", "epsilons=[2.0]"]
    result = compare(
        CONFIGS / "experiments" / "one-bit-fig1.yaml",
        tmp_path,
        overrides=[*changes, "simulation={backend: local}"],
        page=False,
    )
    assert not result.failures
    with (tmp_path / "comparison.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 10
    assert all(float(row["relative_error"]) > 0 for row in rows)
    assert {row["train_ratings"] for row in rows} == {str(round(0.15 * 14 * 12))}
