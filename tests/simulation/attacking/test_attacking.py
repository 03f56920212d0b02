"""A run that is attacked: the same run, with what its attacks reached beside it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dprec import formats
from dprec.attacks import Attacked, Game
from simulation import run
from tests.refusals import refused_at
from tests.simulation.attacking.games import SPYING, Spying
from tests.simulation.conftest import presets

PARTS = "", "_baseline", "_bound"
ATTACKED = {"attacks": [{"kind": SPYING}]}
ON_DEVICE = {
    "kind": "one-shot",
    "privacy": {"epsilon": 1.0},
    "mechanism": {"kind": "randomized-response"},
    "completion": {"kind": "item-average"},
    "personalization": "on-device",
}


def game_of(values: dict[str, Any]) -> Game:
    run({**values, **ATTACKED})
    return Spying.said[-1]


@pytest.mark.parametrize("protocol", [None, ON_DEVICE, "pg-mf"])
def test_the_bits_of_a_run_do_not_depend_on_attacks(tiny: dict[str, Any], protocol: Any) -> None:
    values = tiny if protocol is None else {**tiny, "protocol": protocol}
    if isinstance(protocol, str):
        values = presets()[protocol]
    plain, attacked = run(values), run({**values, **ATTACKED})
    for name, column in plain.predictions.items():
        np.testing.assert_array_equal(attacked.predictions[name], column)
    for name, column in plain.traffic.items():
        np.testing.assert_array_equal(attacked.traffic[name], column)
    assert "attacks" not in plain.summary
    assert "attacks" not in plain.config.plain_values()


def test_an_attacked_secure_sum_is_that_of_devices_that_report_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = presets()["gram-secagg"]
    as_one, attacked = run(values), run({**values, **ATTACKED})
    monkeypatch.setattr("clients.population.Population.unseen", False)
    by_device = run(values)
    for name, column in by_device.predictions.items():
        np.testing.assert_array_equal(attacked.predictions[name], column)
    assert not np.array_equal(as_one.predictions["prediction"], attacked.predictions["prediction"])
    # What is learned is of other noise, and so are its compressed bytes.
    for name in ("uplink_payload_bytes", "uplink_message_bytes"):
        np.testing.assert_array_equal(attacked.traffic[name], as_one.traffic[name])


def test_another_run_has_other_noise_and_whoever_is_present(tiny: dict[str, Any]) -> None:
    present = np.arange(40) >= 10

    class Repeating(Spying):
        """Runs again."""

        def perform(self, game: Game) -> Attacked:
            said = [game.again(present, number) for number in (1, 1, 2)]
            first, same, other = (each.reports[0] for each in said)
            assert not first.counts[:10].any()
            np.testing.assert_array_equal(first.counts[10:], game.truth.counts[10:])
            drawn = [each.symbols.symbols for each in (first, same, other) if each.symbols]
            np.testing.assert_array_equal(drawn[0], drawn[1])
            kept = game.transcript.reports[0].symbols
            assert kept is not None
            honest = kept.symbols[~np.isin(game.truth.users, np.arange(10))]
            for others in (drawn[2], honest):
                assert np.mean(drawn[0] == others) < 0.5
            return super().perform(game)

    Repeating.__module__ = __name__
    run({**tiny, "attacks": [Repeating()]})


@pytest.mark.parametrize("name", ["pg-mf", "dp-item-effects", "randomized-sets"])
def test_who_is_absent_sends_nothing_under_any_protocol(name: str) -> None:
    class Without(Spying):
        """Runs again with few users."""

        def perform(self, game: Any) -> Attacked:
            absent = np.arange(40) < 10
            outcome = game._run(game.truth, "another run", absent)
            assert not outcome.traffic.uplink_payload[absent].any()
            assert outcome.traffic.uplink_payload[~absent].all()
            return super().perform(game)

    Without.__module__ = __name__
    run({**presets()[name], "attacks": [Without()]})


def test_devices_that_mask_take_part_with_nothing_in_another_run() -> None:
    """Were a quarter of them silent, no secure sum would succeed."""
    present = np.arange(40) >= 10

    class Masked(Spying):
        """Runs again with few users."""

        def perform(self, game: Game) -> Attacked:
            assert not game.hides_item_sets
            game.again(present, 1)
            return super().perform(game)

    Masked.__module__ = __name__
    run({**presets()["privirec"], "attacks": [Masked()]})


def test_figures_are_in_every_file_and_read_back(tiny: dict[str, Any], tmp_path: Path) -> None:
    attacked = run({**tiny, **ATTACKED}, tmp_path / "run", page=False)
    cells = float(game_of(tiny).truth.count)
    written = json.loads((tmp_path / "run" / "attack.json").read_text())
    reached = {key: written[key] for key in written if key.startswith(("recovered", "reported", "endless"))}
    nothing = dict.fromkeys(f"{name}{part}" for name in ("reported", "endless") for part in PARTS)
    levels = dict(zip((f"recovered_level{part}" for part in PARTS), (0.5, 0.25, 0.75), strict=True))
    assert reached == {**nothing, **levels, "reported": cells}
    assert written["schema"] == formats.NUMBER
    assert written["epsilon_per_rating"] == pytest.approx(1)
    (performed,) = written["attacks"]
    assert performed["settings"] == {"kind": SPYING, "least": 1}
    assert performed["notes"] == ["Cells are counted."]
    again = run({**tiny, **ATTACKED}, tmp_path / "run", resume=True, page=False)
    assert again.summary == attacked.summary


@pytest.mark.parametrize(
    ("attacks", "key"),
    [
        ([{"kind": "nonsense"}], "configuration: attacks[0].kind"),
        ([{"kind": SPYING, "least": -1}], "configuration: attacks[0].least"),
        ([{"kind": SPYING}, {"kind": SPYING}], "attacks"),
        ([{"kind": "attributes", "columns": ["nosuch"]}], "attacks[0].columns"),
    ],
)
def test_attacks_that_cannot_be_are_refused(tiny: dict[str, Any], attacks: list[Any], key: str) -> None:
    with refused_at(key):
        run({**tiny, "attacks": attacks})


@pytest.mark.parametrize(
    ("names", "where"),
    [(("rmse",), "attacks"), (("x", "x_bound"), "attacks"), (("x", "x"), "attacks"), ((1,), "attacks[0]")],
)
def test_figures_with_names_of_others_are_refused(
    tiny: dict[str, Any], names: Any, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Spying, "figures", lambda self: names)
    with refused_at(where):
        run({**tiny, **ATTACKED})


def test_collections_over_time_are_attacked_but_not_run_again() -> None:
    attacks = [{"kind": "rounds"}, {"kind": "shadow"}, {"kind": "promotion"}]
    summary = run({**presets()["weekly-fresh"], "attacks": attacks}).record.summary.attacks
    assert summary is not None
    rounds, *others = summary.performed
    assert "reports each" in rounds.notes[0]
    assert summary.reached["rounds_sign"].value is not None
    for each in others:
        assert "not run again" in each.notes[0]
        assert {summary.reached[name].value for name in each.figures} == {None}
