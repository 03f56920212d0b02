"""One-bit runs from the outside: what they report, promise, send and refuse."""

import copy
from typing import Any

import numpy as np
import pytest

from dprec.accounting import PrivacyLossDistribution, compose
from dprec.completion import Link, Observations, OneBit, slope_channel
from dprec.completion.one_bit.perturbation import curvature_ratio, slope_bound_of
from dprec.completion.one_bit.solver import steepness
from simulation import run
from simulation.configuration.models import parse_config
from simulation.configuration.strict_yaml import read_yaml, replace_value
from simulation.evaluation import relative_error
from simulation.execution import load_ratings
from strategies.rounds import message_size
from tests.paths import preset_file
from tests.simulation.divisions import recorded

USERS, ITEMS, EPSILON, ROUNDS = 24, 18, 2.0, 3


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


@pytest.mark.parametrize(
    ("name", "per_rating", "claimed"),
    [
        ("one-bit-clear", None, None),
        ("one-bit-input", EPSILON, None),
        ("one-bit-objective", EPSILON, None),
        ("one-bit-gradient", EPSILON, None),
        # One changed rating can move every entry of the estimate, and the noise is that of one entry.
        ("one-bit-output", EPSILON * USERS * ITEMS, EPSILON),
    ],
)
def test_a_run_says_how_accurate_it_is_and_what_it_really_guarantees(
    name: str, per_rating: float | None, claimed: float | None
) -> None:
    result = run(signs(name), page=False)
    agree = (result.predictions["prediction"] >= 0) == (result.predictions["rating"] > 0)
    assert result.summary["accuracy"]["sign_accuracy"] == pytest.approx(agree.mean())
    assert result.summary["accuracy"]["relative_error"] > 0
    privacy = result.summary["privacy"]
    assert privacy["epsilon_per_rating"] == pytest.approx(per_rating)
    assert privacy["epsilon_claimed"]["per_rating"] == claimed
    assert (privacy["epsilon_claimed"]["per_user"] is None) == (claimed is None)


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


GAUSSIAN = {"kind": "one-bit", "link": "gaussian", "alpha": 1, "rank": 1}


def test_the_sound_calibration_keeps_its_epsilon() -> None:
    result = run(signs("one-bit-output", protocol__perturbation__calibration="sound"))
    assert result.summary["privacy"]["status"] == "proved"
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
        link = Link(1.0)
        exact *= steepness(link, 1.0) / slope_bound_of(link, 1.0, "published")
        exact += curvature_ratio(link, 1.0)
    privacy = result.summary["privacy"]
    assert privacy["status"] == "claimed"
    assert f"the exact minimiser would keep {exact:.6g}, " in privacy["notes"][0]
    assert privacy["epsilon_per_rating"] is None
    assert privacy["epsilon_claimed"] == {"per_rating": EPSILON, "per_user": EPSILON * counts.max()}
    assert np.isposinf(result.traffic["epsilon_per_rating"][counts > 0]).all()


@pytest.mark.parametrize("faults", [{}, {"dropout": 0.3}], ids=["all answer", "some do not"])
def test_gradient_traffic_is_what_its_messages_carry(faults: dict[str, float]) -> None:
    simulation = {"backend": "local", "users_per_node": 1, "faults": faults}
    changes = {"protocol__rounds": ROUNDS, "protocol__delivery": None, "simulation": simulation}
    config = parse_config(signs("one-bit-gradient", **changes))
    counts = load_ratings(config)[0].counts
    recording, result = recorded(config)
    replies = [recording.received[node] for node in recording.nodes]
    silent = np.array([["absent" in reply.content["reply"] for reply in own] for own in replies])
    assert silent.any() == bool(faults)
    down, up = (
        np.array([[message_size(each) for each in kept[node]] for node in recording.nodes])
        for kept in (recording.sent, recording.received)
    )
    for way, sizes in (("downlink", down), ("uplink", np.where(silent, 0, up))):
        assert result.traffic[f"{way}_message_bytes"].tolist() == sizes.sum(axis=1).tolist()
        by_round = [getattr(record, f"{way}_message_bytes") for record in result.rounds]
        assert by_round == sizes.sum(axis=0).tolist()
    # A row goes down only to those whose items are known, with one number of 4 bytes for each.
    known = (~silent).cumsum(axis=1) > ~silent
    rows = 4 * counts * known.sum(axis=1)
    assert result.traffic["downlink_payload_bytes"].tolist() == rows.tolist()
    channel = slope_channel(0.5, 256, EPSILON / ROUNDS)
    slopes = (~silent).sum(axis=1) * counts
    np.testing.assert_allclose(result.traffic["epsilon_per_user"], slopes * channel.epsilon)
    most, one = int(slopes.argmax()), PrivacyLossDistribution.of(channel)
    composed = compose([(one, int(slopes[most]))]).epsilon(1e-6)
    assert result.traffic["epsilon_composed"][most] == pytest.approx(composed, rel=1e-9)
    assert np.nanmax(result.traffic["epsilon_per_rating"]) <= EPSILON * (1 + 1e-6)
