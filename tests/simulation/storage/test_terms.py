"""What a summary says of a promise beside its losses: what it assumes, and what a year costs."""

from pathlib import Path
from typing import Any

import pytest
from scipy.optimize import brentq

from dprec.accounting import PrivacyLossDistribution, compose, gaussian_epsilon
from simulation import run
from simulation.storage.run_files import read_device_channel
from tests.simulation.conftest import presets

NOTHING = {
    "colluders": None,
    "dropouts": None,
    "shufflers": 0,
    "embeddings_epsilon": None,
    "embeddings_any_two": None,
    "uncovered": "",
    "proxy": False,
    "named_sets": False,
    "budgets_seen": False,
}


def terms_of(name: str, output: Path | None = None, **changed: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the terms and the losses of a preset on few users."""
    values = presets()[name]
    values["protocol"] |= changed
    summary = run(values, output, page=False).summary
    return summary["terms"], summary["privacy"]


def test_draws_of_a_year_compose_by_their_distributions(tmp_path: Path, tiny: dict[str, Any]) -> None:
    """For the user with most ratings, who draws 52 times about each."""
    result = run(tiny, tmp_path / "run", page=False)
    device, privacy = read_device_channel(tmp_path / "run"), result.summary["privacy"]
    assert device is not None
    year = 52 * int(result.traffic["ratings"].max())
    composed = compose([(PrivacyLossDistribution.of(device.channel), year)]).epsilon(privacy["delta"])
    assert result.summary["terms"] == {
        **NOTHING,
        "repetitions": 52,
        "increments": True,
        "epsilon_repeated": pytest.approx(min(composed, year), rel=1e-9),
        "any_two_repeated": None,
    }


@pytest.mark.parametrize(("per", "repeats"), [("rating", True), ("user", False)])
def test_answers_are_repeated_where_a_schedule_takes_them(per: str, repeats: bool) -> None:
    terms, _ = terms_of("blp-mf", privacy={"epsilon": 1.0, "per": per})
    assert terms["increments"] is repeats


def test_sums_of_a_year_compose_as_one_sum_with_less_noise() -> None:
    (terms, privacy) = terms_of("dp-item-effects")
    assert not terms["increments"]
    distance = sum(noise**-2 for noise in privacy["noise"]) ** 0.5
    year = gaussian_epsilon(52**0.5 * distance, privacy["delta"])
    assert terms["epsilon_repeated"] == pytest.approx(year, rel=1e-6)
    assert 1 < terms["epsilon_repeated"] < 52 * privacy["epsilon_composed"]["max"]
    assert {name: terms[name] for name in NOTHING} == NOTHING


def test_between_any_two_profiles_a_year_of_sums_is_one_sum_with_less_noise() -> None:
    (terms, privacy) = terms_of("dp-item-effects")
    delta, once = privacy["delta"], privacy["epsilon_any_two"]
    distance = brentq(lambda between: gaussian_epsilon(between, delta) - once, 0.01, 10)
    assert terms["any_two_repeated"] == pytest.approx(gaussian_epsilon(52**0.5 * distance, delta), rel=1e-6)
    assert terms["any_two_repeated"] > terms["epsilon_repeated"]


def test_secure_aggregation_assumes_few_colluders_and_dropouts() -> None:
    aggregation = {"kind": "secure-aggregation", "dropouts": 0.2, "colluders": 3}
    terms, privacy = terms_of("secagg-item-effects", aggregation=aggregation)
    assert {name: terms[name] for name in NOTHING} == {**NOTHING, "colluders": 3, "dropouts": 0.2}
    assert terms["epsilon_repeated"] < 52 * privacy["epsilon_composed"]["max"]


@pytest.mark.parametrize(
    ("name", "assumed"),
    [
        ("pairs-in-blanket", {"colluders": 5, "dropouts": 0.1, "shufflers": 2}),
        ("shuffled-on-device", {"shufflers": 2, "named_sets": True}),
        ("fmf-ldp-sets", {"proxy": True}),
        ("own-budgets-on-device", {"budgets_seen": True}),
        ("one-bit-on-device", {}),
        ("sets-only", {}),
    ],
)
def test_what_presets_assume(name: str, assumed: dict[str, Any]) -> None:
    terms, _ = terms_of(name)
    assert {key: terms[key] for key in NOTHING} == {**NOTHING, **assumed}
    assert terms["repetitions"] == 52


def test_noise_on_what_devices_are_sent_covers_item_sets() -> None:
    terms, privacy = terms_of("one-bit-on-device", item_embeddings={"epsilon": 4.0})
    assert (terms["embeddings_epsilon"], terms["embeddings_any_two"]) == (4.0, pytest.approx(5.934, abs=5e-4))
    assert any(
        "(5.934 between any two)" in note and "none of that noise" in note for note in privacy["notes"]
    )
    assert terms["uncovered"] == "items' effects, their certainty, user coefficients"


def test_nothing_costs_nothing_and_what_is_unprotected_has_no_figure() -> None:
    assert terms_of("nothing-sent")[0]["epsilon_repeated"] == 0.0
    assert terms_of("plain-mf")[0]["epsilon_repeated"] is None


def test_a_schedule_counts_its_collections_itself() -> None:
    terms, _ = terms_of("weekly-increments")
    assert terms == {**NOTHING, "collections": terms["collections"]}
